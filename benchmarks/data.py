"""The real datasets as splits; also as plain arrays, for machines that have torch but not polars.

BAYESNEG_DATA=… python -m benchmarks.data OUT.npz
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split

NAMES = ("ml-100k", "ml-1m")


def splits(arrays: str | None) -> dict[str, Split]:
    """The authors' split of ML-100K and a random 80/20 split of ML-1M."""
    if arrays is not None:
        return {name: _from_arrays(np.load(arrays), name) for name in NAMES}
    from bayesneg.data.load import load, read_split
    from bayesneg.data.splits import split
    from benchmarks.machine import data_folder

    folder = data_folder() / "bns-100k-split"
    given = read_split(folder / "100k_train.csv", folder / "100k_test.csv", name="ml-100k")
    return {"ml-100k": given, "ml-1m": split(load("ml-1m"), test=0.2, seed=0)}


def _from_arrays(stored: np.lib.npyio.NpzFile, name: str) -> Split:
    n_users, n_items = stored[f"{name}.shape"]
    user_ids, item_ids = np.arange(n_users), np.arange(n_items)

    def part(which: str) -> Interactions:
        users, items = stored[f"{name}.{which}"]
        return Interactions.from_numbers(users, items, user_ids=user_ids, item_ids=item_ids, name=name)

    return Split(train=part("train"), test=part("test"))


def main() -> None:
    stored: dict[str, np.ndarray] = {}
    for name, parts in splits(None).items():
        stored[f"{name}.shape"] = np.array([parts.train.n_users, parts.train.n_items])
        for part, data in (("train", parts.train), ("test", parts.test)):
            stored[f"{name}.{part}"] = np.stack([data.users, data.indices])
    np.savez_compressed(Path(sys.argv[1]), **stored)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
