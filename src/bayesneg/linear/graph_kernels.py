"""Paths item → user → item over the user–item graph (numba), without an items × items matrix.

Sums run over users and items in ascending order, so that a whole row and a single pair agree to the bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def strongest_walks(
    starts: np.ndarray,  # (n_items + 1,) the users of item i are at starts[i] … starts[i + 1]
    users: np.ndarray,
    indptr: np.ndarray,  # (n_users + 1,) the items of user u
    indices: np.ndarray,
    through: np.ndarray,  # (n_users,) float64, the factor of a walk through the user
    source: np.ndarray,  # (n_items,) float64, of a walk from the item
    target: np.ndarray,  # (n_items,) float64, of a walk to the item
    first: int,
    last: int,
    kept: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For items first … last − 1 the ``kept`` other items of largest weight; of equal ones those with the lower number.

    Returns their counts (b,), items (n,) int32, ascending in each row, and weights (n,) float64.
    """
    n_items = len(starts) - 1
    sums, reached = np.zeros(n_items), np.zeros(n_items, dtype=np.bool_)
    touched, values = np.empty(n_items, dtype=np.int32), np.empty(n_items)
    counts = np.zeros(last - first, dtype=np.int64)
    items = np.empty((last - first) * min(kept, n_items), dtype=np.int32)
    weights = np.empty(len(items))
    total = 0
    for item in range(first, last):
        n = 0
        for place in range(starts[item], starts[item + 1]):
            user = users[place]
            for position in range(indptr[user], indptr[user + 1]):
                other = indices[position]
                sums[other] += through[user]
                if other != item and not reached[other]:
                    reached[other] = True
                    touched[n] = other
                    n += 1
        touched[:n].sort()
        for k in range(n):
            values[k] = source[item] * sums[touched[k]] * target[touched[k]]
        least, spare = -1.0, 0  # of the least value that is kept, so many are kept
        if n > kept:
            least = np.partition(values[:n], n - kept)[n - kept]
            spare = kept - np.sum(values[:n] > least)
        before = total
        for k in range(n):
            take = values[k] > least
            if values[k] == least and spare > 0:
                take, spare = True, spare - 1
            if take:
                items[total], weights[total] = touched[k], values[k]
                total += 1
            sums[touched[k]], reached[touched[k]] = 0.0, False
        sums[item] = 0.0
        counts[item - first] = total - before
    return counts, items[:total].copy(), weights[:total].copy()


@njit(cache=True, nogil=True)
def _reach(
    reach: np.ndarray,  # (n_users,) float64, overwritten
    starts: np.ndarray,
    users: np.ndarray,
    item_factors: np.ndarray,
    user_factors: np.ndarray,
    history: np.ndarray,
) -> None:
    """How strongly the items of a history reach each user."""
    reach[:] = 0.0
    for item in history:
        for place in range(starts[item], starts[item + 1]):
            reach[users[place]] += item_factors[item]
    for user in range(len(reach)):
        reach[user] *= user_factors[user]


@njit(cache=True, nogil=True)
def walk_rows(
    starts: np.ndarray,  # (n_items + 1,) the users of item i are at starts[i] … starts[i + 1]
    users: np.ndarray,
    indptr: np.ndarray,  # (n_users + 1,) the items of user u
    indices: np.ndarray,
    item_factors: np.ndarray,  # (n_items,) float64, of a walk from or to the item
    user_factors: np.ndarray,  # (n_users,) float64, of a walk through the user
    rows: np.ndarray,  # where the history of each asked user begins
    histories: np.ndarray,
    asked: np.ndarray,
) -> np.ndarray:
    """Σ_i Σ_v f_i g_v f_l over items i of the history and users v with both i and l: (B, n_items) float32."""
    found = np.empty((len(asked), len(starts) - 1), dtype=np.float32)
    reach, row = np.empty(len(indptr) - 1), np.empty(len(starts) - 1)
    for b in range(len(asked)):
        _reach(reach, starts, users, item_factors, user_factors, histories[rows[asked[b]] : rows[asked[b] + 1]])
        row[:] = 0.0
        for user in range(len(reach)):
            if reach[user] != 0.0:
                for position in range(indptr[user], indptr[user + 1]):
                    row[indices[position]] += reach[user]
        for item in range(len(row)):
            found[b, item] = row[item] * item_factors[item]
    return found


@njit(cache=True, nogil=True)
def walk_pairs(
    starts: np.ndarray,
    users: np.ndarray,
    n_users: int,
    item_factors: np.ndarray,
    user_factors: np.ndarray,
    rows: np.ndarray,
    histories: np.ndarray,
    asked: np.ndarray,
    items: np.ndarray,
) -> np.ndarray:
    """The same for pairs (P,); pairs of one user should be consecutive, since its reach is computed once."""
    found = np.empty(len(asked), dtype=np.float32)
    reach, known = np.empty(n_users), -1
    for b in range(len(asked)):
        if asked[b] != known:
            known = asked[b]
            _reach(reach, starts, users, item_factors, user_factors, histories[rows[known] : rows[known + 1]])
        total = 0.0
        for place in range(starts[items[b]], starts[items[b] + 1]):
            total += reach[users[place]]
        found[b] = total * item_factors[items[b]]
    return found
