"""Scores of a linear item model (numba): for a user, the sum of the rows of B of the user's items.

All sums run over the user's items in their order, so that a whole row and a single pair agree to the bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def dense_rows(weights: np.ndarray, indptr: np.ndarray, indices: np.ndarray, users: np.ndarray) -> np.ndarray:
    """Scores (B, n_items) float32 of users (B,); ``weights`` (n_items, n_items) are B."""
    rows = np.zeros((len(users), weights.shape[1]), dtype=np.float32)
    for place in range(len(users)):
        row = rows[place]
        for position in range(indptr[users[place]], indptr[users[place] + 1]):
            added = weights[indices[position]]
            for item in range(len(row)):
                row[item] += added[item]
    return rows


@njit(cache=True, nogil=True)
def dense_pairs(
    weights: np.ndarray, indptr: np.ndarray, indices: np.ndarray, users: np.ndarray, items: np.ndarray
) -> np.ndarray:
    """The same for pairs (P,)."""
    scores = np.zeros(len(users), dtype=np.float32)
    for place in range(len(users)):
        for position in range(indptr[users[place]], indptr[users[place] + 1]):
            scores[place] += weights[indices[position], items[place]]
    return scores


@njit(cache=True, nogil=True)
def sparse_rows(
    starts: np.ndarray,  # (n_items + 1,) row i of B is at starts[i] … starts[i + 1]
    others: np.ndarray,
    weights: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    users: np.ndarray,
) -> np.ndarray:
    """Scores (B, n_items) of users (B,) with a sparse B, by rows."""
    rows = np.zeros((len(users), len(starts) - 1), dtype=np.float32)
    for place in range(len(users)):
        for position in range(indptr[users[place]], indptr[users[place] + 1]):
            item = indices[position]
            for entry in range(starts[item], starts[item + 1]):
                rows[place, others[entry]] += weights[entry]
    return rows


@njit(cache=True, nogil=True)
def sparse_pairs(
    starts: np.ndarray,  # (n_items + 1,) column l of B is at starts[l] … starts[l + 1]
    neighbours: np.ndarray,  # the row of each entry, ascending
    weights: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    users: np.ndarray,
    items: np.ndarray,
) -> np.ndarray:
    """The same for pairs (P,); pairs of one user should be consecutive, since its items are marked once."""
    scores = np.zeros(len(users), dtype=np.float32)
    in_history = np.zeros(len(starts) - 1, dtype=np.bool_)
    marked = -1
    for place in range(len(users)):
        if users[place] != marked:
            if marked >= 0:
                in_history[indices[indptr[marked] : indptr[marked + 1]]] = False
            marked = users[place]
            in_history[indices[indptr[marked] : indptr[marked + 1]]] = True
        for position in range(starts[items[place]], starts[items[place] + 1]):
            if in_history[neighbours[position]]:
                scores[place] += weights[position]
    return scores


@njit(cache=True, nogil=True)
def sums_of(vectors: np.ndarray, indptr: np.ndarray, indices: np.ndarray, users: np.ndarray) -> np.ndarray:
    """For users (B,) the sum of their items' vectors (n_items, d): (B, d) float32."""
    sums = np.zeros((len(users), vectors.shape[1]), dtype=np.float32)
    for place in range(len(users)):
        for position in range(indptr[users[place]], indptr[users[place] + 1]):
            vector = vectors[indices[position]]
            for factor in range(len(vector)):
                sums[place, factor] += vector[factor]
    return sums


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def products(left: np.ndarray, right: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """left[row] · right[column] for pairs (P,)."""
    found = np.empty(len(rows), dtype=np.float32)
    for place in range(len(rows)):
        one, other = left[rows[place]], right[columns[place]]
        total = np.float32(0.0)
        for factor in range(len(one)):
            total += one[factor] * other[factor]
        found[place] = total
    return found
