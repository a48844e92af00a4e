"""The splits of a sweep, by dataset and view.

ML-100K is the split that the paper's authors published, where the data folder has it, Gowalla and Yelp2018 are the
splits their files come in; everything else is a random 80/20 split of seed 0. The view ``best`` moves a tenth of the
training part into validation, so that an epoch can be selected without the test part; the view ``last`` trains on all
of it, as the paper does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bayesneg.data.splits import Split, carve_validation, split
from bayesneg.errors import InputError

TEST_SHARE: Final = 0.2
VALIDATION_SHARE: Final = 0.1
COME_SPLIT: Final = ("gowalla", "yelp2018")  # as train.txt and test.txt
AUTHORS_SPLIT: Final = "bns-100k-split"  # folder of the authors' files, beside ml-100k


@dataclass(frozen=True)
class Source:
    """Where splits come from; each is read once. A copy, in another process say, reads them again."""

    data_dir: Path | None = None
    _known: dict[tuple[str, str], Split] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}

    def split(self, dataset: str, view: str) -> Split:
        if (dataset, view) not in self._known:
            self._known[dataset, view] = self.make(dataset, view)
        return self._known[dataset, view]

    def fingerprint(self, dataset: str, view: str) -> str:
        """Of the split, which a cell records."""
        return self.split(dataset, view).fingerprint

    def make(self, dataset: str, view: str) -> Split:
        """Read or derive a split; the source of a study may know other datasets and views."""
        if view == "best":
            return carve_validation(self.split(dataset, "last"), VALIDATION_SHARE, seed=0)
        return self.read(dataset)

    def read(self, dataset: str) -> Split:
        """The split that a dataset's name denotes."""
        return _read(dataset, self.data_dir)


def blind(split: Split) -> Split:
    """The same training part, evaluated on validation data; the test labels are not in it."""
    if split.validation is None:
        raise InputError("tuning needs a validation part; split with validation=0.1")
    return Split(split.train, split.validation, how=f"{split.how}; evaluated on validation data")


def _read(dataset: str, data_dir: Path | None) -> Split:
    from bayesneg.data.catalogue import data_folder, where
    from bayesneg.data.load import load, read_split

    if dataset in COME_SPLIT and (folder := where(dataset, data_dir=data_dir)) is not None:
        return read_split(folder / "train.txt", folder / "test.txt", name=dataset, format="adjacency")
    authors = data_folder(data_dir) / AUTHORS_SPLIT
    if dataset == "ml-100k" and authors.is_dir():
        train, test, users = (authors / name for name in ("100k_train.csv", "100k_test.csv", "mapping_users.csv"))
        return read_split(train, test, user_file=users, name=dataset)
    return split(load(dataset, data_dir=data_dir), test=TEST_SHARE, seed=0)
