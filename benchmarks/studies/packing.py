"""Splits as plain arrays, for a machine that cannot read tables; fingerprints stay the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.experiments.datasets import Source
from benchmarks.studies.splits import StudySource


@dataclass(frozen=True)
class PackedSource(StudySource):
    """Splits from the file that :func:`pack` wrote."""

    arrays: Path = Path("data.npz")

    def read(self, dataset: str) -> Split:
        return _from_arrays(self.arrays, dataset)


def pack(source: Source, datasets: Iterable[str], path: Path) -> None:
    """Write the splits to ``path``."""
    stored: dict[str, np.ndarray] = {}
    for dataset in datasets:
        parts = source.split(dataset, "last")
        own = {
            "train": np.stack((parts.train.users, parts.train.indices)),
            "test": np.stack((parts.test.users, parts.test.indices)),
            "user_ids": _plain(parts.train.user_ids),
            "item_ids": _plain(parts.train.item_ids),
            "how": np.array(parts.how),
            **{f"column.{name}": values.astype(str) for name, values in parts.train.user_columns.items()},
        }
        stored |= {f"{dataset}/{name}": array for name, array in own.items()}
    np.savez_compressed(path, **stored)  # type: ignore[arg-type]


def _from_arrays(path: Path, dataset: str) -> Split:
    with np.load(path, allow_pickle=False) as stored:
        own = {name.removeprefix(f"{dataset}/"): stored[name] for name in stored if name.startswith(f"{dataset}/")}
    if not own:
        raise InputError(f"{path} holds no dataset {dataset}; pack it there")
    columns = {name.removeprefix("column."): own[name] for name in own if name.startswith("column.")}

    def part(pairs: np.ndarray) -> Interactions:
        ids = {"user_ids": own["user_ids"], "item_ids": own["item_ids"], "user_columns": columns}
        return Interactions.from_numbers(pairs[0], pairs[1], **ids, name=dataset)

    return Split(train=part(own["train"]), test=part(own["test"]), how=str(own["how"]))


def _plain(ids: np.ndarray) -> np.ndarray:
    """Identifiers without Python objects; a fingerprint looks at their text alone."""
    return ids.astype(str) if ids.dtype == object else ids
