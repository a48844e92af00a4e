"""The splits of a sweep, by dataset and view.

ML-100K is the split that the paper's authors published, where the data folder has it, Gowalla and Yelp2018 are the
splits their files come in; everything else is a random 80/20 split of seed 0. The view ``best`` moves a tenth of the
training part into validation, so that an epoch can be selected without the test part; the view ``last`` trains on all
of it, as the paper does. The view ``blind`` is for tuning: trained as ``best``, evaluated on validation data, without
the test labels; ``blind2`` to ``blind10`` hold out another random tenth each. ``ml-100k@50`` is the same split with a
random half of its training part. ``ml-100k#1`` to ``ml-100k#5`` are the folds of a five-fold cross-validation over all
pairs, ``ml-100k#6`` to ``ml-100k#10`` those of another one, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split, carve_validation, split
from bayesneg.errors import InputError
from bayesneg.experiments.cells import Blind, View
from bayesneg.seeding import stream

TEST_SHARE: Final = 0.2
VALIDATION_SHARE: Final = 0.1
FOLDS: Final = 5  # of a cross-validation
TENTHS: Final[Mapping[View, int]] = {view: seed for seed, view in enumerate(get_args(Blind))}  # its seed
COME_SPLIT: Final = ("gowalla", "yelp2018")  # as train.txt and test.txt
AUTHORS_SPLIT: Final = "bns-100k-split"  # folder of the authors' files, beside ml-100k


@dataclass(frozen=True)
class Source:
    """Where splits come from; each is read once. A copy, in another process say, reads them again."""

    data_dir: Path | None = None
    _known: dict[tuple[str, View], Split] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}

    def read(self, dataset: str) -> Split:
        """The split that a dataset's name stands for."""
        return _read(dataset, self.data_dir)

    def split(self, dataset: str, view: View) -> Split:
        if (dataset, view) not in self._known:
            self._known[dataset, view] = self._made(dataset, view)
        return self._known[dataset, view]

    def fingerprint(self, dataset: str, view: View) -> str:
        """Of the split, which a cell records."""
        return self.split(dataset, view).fingerprint

    def _made(self, dataset: str, view: View) -> Split:
        if view in TENTHS:
            return blind(carve_validation(self.split(dataset, "last"), VALIDATION_SHARE, seed=TENTHS[view]))
        if view == "best":
            return carve_validation(self.split(dataset, "last"), VALIDATION_SHARE, seed=0)
        other = re.fullmatch(r"(.+)([@#])(\d{1,3})", dataset)
        if other is not None and not Path(dataset).exists():
            whole, number = self.split(other[1], "last"), int(other[3])
            return thinned(whole, number / 100) if other[2] == "@" else folded(whole, number)
        return self.read(dataset)


def blind(split: Split) -> Split:
    """The same training part, evaluated on validation data; the test labels are not in it."""
    if split.validation is None:
        raise InputError("tuning needs a validation part; split with validation=0.1")
    return Split(split.train, split.validation, how=f"{split.how}; judged on validation")


def thinned(split: Split, share: float) -> Split:
    """The same test part with a random share of the training pairs, always the same.

    The pairs left out become the validation part, so that they are not recommended either.
    """
    if not 0 < share <= 1:
        raise InputError(f"the share of the training part must lie in (0, 1], got {share}; write NAME@50 for half")
    n_kept = max(1, round(share * len(split.train)))
    kept = np.zeros(len(split.train), dtype=bool)
    kept[stream(0, "thinned").permutation(len(split.train))[:n_kept]] = True
    left_out = None if kept.all() else split.train.select(~kept)
    how = f"{split.how}; {share:.0%} of the training part, the rest is validation"
    return replace(split, train=split.train.select(kept), validation=left_out, how=how)


def folded(split: Split, number: int) -> Split:
    """Five-fold cross-validation, stratified by user: the ``number``-th fold is the test part.

    Folds 6 to 10 are those of another random assignment, 11 to 15 of a third.
    """
    if number < 1:
        raise InputError(f"folds are numbered from 1, got {number}; write NAME#1 for the first")
    repeat, fold = divmod(number - 1, FOLDS)
    users, items = (np.concatenate((a, b)) for a, b in zip(_pairs(split.train), _pairs(split.test), strict=True))
    rng = stream(repeat, "folds")
    order = rng.permutation(len(users))
    order = order[np.argsort(users[order], kind="stable")]
    first = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=split.train.n_users))))
    position = np.arange(len(users)) - first[users[order]] + rng.integers(FOLDS, size=split.train.n_users)[users[order]]
    tested = np.empty(len(users), dtype=bool)
    tested[order] = position % FOLDS == fold

    own = split.train

    def part(kept: np.ndarray) -> Interactions:
        return Interactions.from_numbers(
            users[kept],
            items[kept],
            user_ids=own.user_ids,
            item_ids=own.item_ids,
            user_columns=own.user_columns,
            name=own.name,
        )

    return Split(part(~tested), part(tested), how=f"fold {fold + 1} of {FOLDS} over all pairs, repeat {repeat + 1}")


def _pairs(part: Interactions) -> tuple[np.ndarray, np.ndarray]:
    return part.users, part.indices


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
