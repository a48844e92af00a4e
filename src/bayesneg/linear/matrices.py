"""Interactions as a SciPy sparse matrix and by item, and powers of their counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesneg.data.interactions import Interactions

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def interaction_matrix(train: Interactions, precision: Any) -> csr_array:
    """X (n_users, n_items): 1 where a user interacted with an item."""
    from scipy.sparse import csr_array

    ones = np.ones(len(train), dtype=precision)
    shape = (train.n_users, train.n_items)
    return csr_array((ones, train.indices, train.indptr), shape=shape, copy=True)  # the originals are frozen


def by_item(indptr: np.ndarray, indices: np.ndarray, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """The users of each item, ascending: where those of item i begin (n_items + 1,) int64, and users (n,) int32."""
    users = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    starts = np.concatenate(([0], np.cumsum(np.bincount(indices, minlength=n_items)))).astype(np.int64)
    return starts, users[np.argsort(indices, kind="stable")]


def power_or_zero(counts: np.ndarray, exponent: float) -> np.ndarray:
    """counts^exponent float64; 0 where the count is 0.

    >>> power_or_zero(np.array([0, 1, 4]), -0.5)
    array([0. , 1. , 0.5])
    """
    known = np.maximum(counts, 1).astype(np.float64)
    return np.where(counts > 0, known**exponent, 0.0)
