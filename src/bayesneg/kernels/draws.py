"""Candidates for many examples at once, compiled: same names and same draws as in ``reference``.

Nothing is rejected and nothing can loop: a uniform number is turned into a rank among the items the user has not
chosen, and the rank into an item by a binary search over the user's sorted row.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def number_outside(ascending: np.ndarray, size: int, rank: int) -> int:
    """The ``rank``-th whole number that is not among the first ``size`` of the ascending array."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] - middle > rank:
            high = middle
        else:
            low = middle + 1
    return rank + low


@njit(cache=True, nogil=True)
def uniform_candidates(
    users: np.ndarray, indptr: np.ndarray, indices: np.ndarray, n_items: int, uniforms: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Unobserved items (B, m) without replacement from uniforms (B, m), and how many of each row are valid (B,)."""
    n_examples, m = uniforms.shape
    candidates = np.full((n_examples, m), -1, dtype=np.int32)
    sizes = np.empty(n_examples, dtype=np.int32)
    drawn = np.empty(m, dtype=np.int64)  # ranks of this example, kept ascending
    for b in range(n_examples):
        row = indices[indptr[users[b]] : indptr[users[b] + 1]]
        n = n_items - len(row)
        sizes[b] = min(n, m)
        if n <= m:
            for rank in range(n):
                candidates[b, rank] = number_outside(row, len(row), rank)
            continue
        for k in range(m):
            rank = number_outside(drawn, k, int(uniforms[b, k] * (n - k)))
            place = k
            while place > 0 and drawn[place - 1] > rank:
                drawn[place] = drawn[place - 1]
                place -= 1
            drawn[place] = rank
            candidates[b, k] = number_outside(row, len(row), rank)
    return candidates, sizes


@njit(cache=True, nogil=True)
def weighted_items(
    users: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    mass: np.ndarray,
    row_mass: np.ndarray,
    n_weighted: int,
    uniforms: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """One unobserved item (B, 1) per example, with probability ∝ its weight, and whether there is one (B,).

    ``mass`` (n_items + 1,) are the cumulated weights from 0, ``row_mass`` (n + n_users,) the cumulated weights of each
    user's own row from 0, ``n_weighted`` how many items have a weight at all. Every observed item has a weight.
    """
    n_examples = len(users)
    n_items = len(mass) - 1
    candidates = np.full((n_examples, 1), -1, dtype=np.int32)
    sizes = np.zeros(n_examples, dtype=np.int32)
    for b in range(n_examples):
        user = users[b]
        row = indices[indptr[user] : indptr[user + 1]]
        inside = row_mass[indptr[user] + user : indptr[user + 1] + user + 1]
        if n_weighted <= len(row):
            continue
        target = uniforms[b, 0] * (mass[n_items] - inside[len(row)])
        low, high = 0, len(row)  # how many observed items lie before the target
        while low < high:
            middle = (low + high) // 2
            if mass[row[middle]] - inside[middle] > target:
                high = middle
            else:
                low = middle + 1
        item = np.searchsorted(mass, target + inside[low], side="right") - 1
        candidates[b, 0] = _weighted_outside(item, row, mass)
        sizes[b] = 1
    return candidates, sizes


@njit(cache=True, nogil=True)
def _weighted_outside(item: int, row: np.ndarray, mass: np.ndarray) -> int:
    """``item`` itself, unless rounding put the draw on a neighbour that has no weight or is observed."""
    n_items = len(mass) - 1
    for step in range(n_items):
        place = (item + step) % n_items
        if mass[place + 1] > mass[place]:
            found = np.searchsorted(row, place)
            if found == len(row) or row[found] != place:
                return place
    return -1
