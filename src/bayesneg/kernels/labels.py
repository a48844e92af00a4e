"""Looking pairs up in sorted CSR rows (numba): is an item in a user's row, and which items are not."""

from __future__ import annotations

import numpy as np
from numba import njit


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


@njit(cache=True, nogil=True)
def nth_absent(indptr: np.ndarray, indices: np.ndarray, users: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Item number ``ranks`` (B,), from 0, of those that are not in the sorted row of the user: (B,) int64."""
    items = np.empty(len(users), dtype=np.int64)
    for example in range(len(users)):
        rank = ranks[example]
        start = indptr[users[example]]
        low, high = start, indptr[users[example] + 1]
        while low < high:  # indices[p] − (p − start) absent items come before position p
            middle = (low + high) // 2
            if indices[middle] - (middle - start) <= rank:
                low = middle + 1
            else:
                high = middle
        items[example] = rank + (low - start)
    return items
