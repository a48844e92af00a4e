"""Looking pairs up in sorted CSR rows, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def positions(indptr: np.ndarray, indices: np.ndarray, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """The position of item (B,) in the sorted row of its user (B,); −1 where it is not in the row."""
    found = np.empty(len(users), dtype=np.int64)
    for example in range(len(users)):
        low, end = indptr[users[example]], indptr[users[example] + 1]
        low += np.searchsorted(indices[low:end], items[example])
        found[example] = low if low < end and indices[low] == items[example] else -1
    return found


@njit(cache=True, nogil=True)
def contains(indptr: np.ndarray, indices: np.ndarray, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """True where item (B,) is in the sorted row of its user (B,); False for item −1."""
    found = np.empty(len(users), dtype=np.bool_)
    for example in range(len(users)):
        item = items[example]
        low, high = indptr[users[example]], indptr[users[example] + 1]
        end = high
        while low < high:
            middle = (low + high) // 2
            if indices[middle] < item:
                low = middle + 1
            else:
                high = middle
        found[example] = low < end and indices[low] == item
    return found
