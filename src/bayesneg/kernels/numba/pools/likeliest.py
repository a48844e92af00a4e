"""The likeliest false negatives of each user out of rows of probabilities, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesneg.kernels.numba.compiling import entry_point


class LikeliestItems(NamedTuple):
    """A few items of each of b users, and the mean probability of all other unobserved items."""

    base: np.ndarray  # (b,) float64
    counts: np.ndarray  # (b,) int64, the items that are kept
    items: np.ndarray  # (b, kept) int32, ascending; any beyond ``counts``
    values: np.ndarray  # (b, kept) float32


def likeliest_items(
    probabilities: np.ndarray, users: np.ndarray, indptr: np.ndarray, indices: np.ndarray, kept: int
) -> LikeliestItems:
    """The likeliest unobserved items of users (b,), ``kept`` at most; of equal ones those with the lower number.

    Items of the lowest probability are not kept: the base rate of a user with few other items is exactly that.

    Args:
        probabilities: The probabilities (b, n_items) float32.
        users: The users (b,).
        indptr: Where the training rows of all users begin (n_users + 1,).
        indices: The training items, ascending in each row.
        kept: The number of items to keep.
    """
    b = len(users)
    found = LikeliestItems(
        np.empty(b), np.empty(b, dtype=np.int64), np.empty((b, kept), dtype=np.int32), np.empty((b, kept), np.float32)
    )
    write_likeliest(probabilities, users, indptr, indices, kept, found)
    return found


@entry_point
def write_likeliest(probabilities, users, indptr, indices, kept, found):  # type: ignore[no-untyped-def]
    n_items = probabilities.shape[1]
    candidates, values = np.empty(n_items, dtype=np.int32), np.empty(n_items, dtype=np.float32)
    for b in range(len(users)):
        row, place, stop = probabilities[b], indptr[users[b]], indptr[users[b] + 1]
        lowest = np.float32(np.inf)
        for item in range(n_items):
            lowest = min(lowest, row[item])  # training items too: then more is kept than needed, at most one value
        n, n_lowest = 0, 0
        for item in range(n_items):
            if place < stop and indices[place] == item:
                place += 1
            elif row[item] > lowest:
                candidates[n], values[n] = item, row[item]
                n += 1
            else:
                n_lowest += 1
        least, spare = np.float32(-1.0), 0  # of the least value that is kept, so many are kept
        if n > kept:
            least = np.partition(values[:n], n - kept)[n - kept]
            above = 0
            for k in range(n):
                above += values[k] > least
            spare = kept - above
        taken, rest = 0, np.float64(lowest) * n_lowest
        for k in range(n):
            take = values[k] > least
            if values[k] == least and spare > 0:
                take, spare = True, spare - 1
            if take:
                found.items[b, taken], found.values[b, taken] = candidates[k], values[k]
                taken += 1
            else:
                rest += values[k]
        n_rest = n + n_lowest - taken
        found.counts[b], found.base[b] = taken, rest / n_rest if n_rest > 0 else 0.0
