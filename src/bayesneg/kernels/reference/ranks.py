"""Ranks in users' score lists, counted plainly, a few lists at a time; for audits and thresholds."""

from __future__ import annotations

import numpy as np


def counted_below(
    x_all: np.ndarray, items: np.ndarray, left_out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """How many scores of each list lie below, and how many at or below, that of each item: (B, m) and (B, m).

    ``x_all`` (B, n_items) are whole lists, ``items`` (B, m) positions in them; ``left_out`` (B, n_items) marks what
    is not counted.

    >>> lists, items = np.array([[1.0, 3.0, 3.0, 2.0]]), np.array([[1, 3]])
    >>> counted_below(lists, items)
    (array([[2, 1]]), array([[4, 2]]))
    >>> counted_below(lists, items, left_out=np.array([[True, False, False, False]]))
    (array([[1, 0]]), array([[3, 1]]))
    """
    lists = x_all if left_out is None else np.where(left_out, np.inf, x_all)
    x = np.take_along_axis(x_all, items, axis=1)
    below, at_or_below = np.empty(items.shape, dtype=np.int64), np.empty(items.shape, dtype=np.int64)
    for column in range(items.shape[1]):
        below[:, column] = np.count_nonzero(lists < x[:, column, None], axis=1)
        at_or_below[:, column] = np.count_nonzero(lists <= x[:, column, None], axis=1)
    return below, at_or_below


def kth_highest(x: np.ndarray, k: int) -> np.ndarray:
    """The k-th highest score (B,) of each list (B, n).

    >>> kth_highest(np.array([[1.0, 3.0, 3.0, 2.0]]), 3)
    array([2.])
    """
    place = x.shape[1] - k
    return np.partition(x, place, axis=1)[:, place]


def observed_mask(users: np.ndarray, indptr: np.ndarray, indices: np.ndarray, n_items: int) -> np.ndarray:
    """True (B, n_items) where the user of a row chose the item; the caller keeps B small."""
    mask = np.zeros((len(users), n_items), dtype=bool)
    for row, user in enumerate(users):
        mask[row, indices[indptr[user] : indptr[user + 1]]] = True
    return mask
