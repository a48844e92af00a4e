"""Learned priors of the study, fitted once for each training part and kept in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import bayesneg as bn
from bayesneg.kernels.reference.pools import SparseRows


class StoredPrior(bn.Prior):
    """The likeliest items of each user and a base rate, from a file that :func:`store_prior` wrote.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        with np.load(path) as stored:
            self.rows = SparseRows(*(stored[name] for name in SparseRows._fields))
            self.n_items = int(stored["n_items"])
        counts = np.diff(self.rows.indptr)
        self.keys = np.repeat(np.arange(len(counts)), counts) * self.n_items + self.rows.items

    def __repr__(self) -> str:
        return "StoredPrior()"

    def fit(self, train: bn.Interactions) -> StoredPrior:
        return self

    def form(self) -> SparseRows:
        return self.rows

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        users, items = np.broadcast_arrays(users, items)
        wanted = users.astype(np.int64) * self.n_items + items
        place = np.searchsorted(self.keys, wanted).clip(max=max(0, len(self.keys) - 1))
        found = np.where(self.keys[place] == wanted, self.rows.values[place], self.rows.base[users])
        return found.astype(np.float64)


def store_prior(prior: Any, train: bn.Interactions, path: Path) -> None:
    """Fit a learned prior and keep its rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    form = prior.fit(train).form()
    part = path.with_suffix(".part.npz")
    np.savez(part, **form._asdict(), n_items=np.array(train.n_items))
    part.replace(path)
