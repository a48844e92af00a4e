"""Exact ranks in a row of scores, compiled, in time that grows with the length of the row.

Scores are put into buckets of equal width, bucket by bucket; a score is then compared with those of its bucket alone,
which are few. A row whose scores crowd into few buckets is sorted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesneg.kernels.numba.compiling import kernel, reordering_kernel

BUCKETS = 2  # for each score
WINDOW = 4  # scores of a bucket that are compared without a branch
CROWDED = 64  # scores in a bucket from which on sorting is faster


class RankSpace(NamedTuple):
    """Scratch memory for rows of n scores."""

    buckets: np.ndarray  # (n,) int32
    ends: np.ndarray  # (BUCKETS · n + 2,) int32
    slots: np.ndarray  # (n + WINDOW,) float32
    places: np.ndarray  # (n,) int64


@kernel
def rank_space(n):  # type: ignore[no-untyped-def]
    return RankSpace(
        np.empty(n, dtype=np.int32),
        np.empty(BUCKETS * n + 2, dtype=np.int32),
        np.empty(n + WINDOW, dtype=np.float32),
        np.empty(n, dtype=np.int64),
    )


@kernel
def count_at_most(x, outside, space, at_most):  # type: ignore[no-untyped-def]
    """Write #{x ≤ x_k} of each score; those at the positions ``outside`` are not counted, and their number is any."""
    n_buckets, n = BUCKETS * len(x), len(x) - len(outside)
    most = fill_buckets(x, outside, n_buckets, space)
    slots, ends = space.slots, space.ends
    if most > CROWDED:
        ascending = np.sort(slots[:n])
        for k in range(len(x)):
            at_most[k] = np.searchsorted(ascending, x[k], side="right")
        return
    for k in range(len(x)):
        bucket, value = space.buckets[k], x[k]
        first, last = ends[bucket], ends[bucket + 1]
        count = first
        for j in range(first, first + WINDOW):  # beyond the bucket there are higher scores only
            count += slots[j] <= value
        for j in range(first + WINDOW, last):
            count += slots[j] <= value
        at_most[k] = min(count, n)


@kernel
def sort_row(x, outside, space):  # type: ignore[no-untyped-def]
    """Sort the scores but those ``outside`` into ``space.slots``, ascending, with their positions in ``places``."""
    n_buckets, n = BUCKETS * len(x), len(x) - len(outside)
    most = fill_buckets(x, outside, n_buckets, space)
    slots, places = space.slots, space.places
    if most > CROWDED:
        order = np.argsort(slots[:n])
        found, where = slots[:n][order], places[:n][order]
        for s in range(n):
            slots[s], places[s] = found[s], where[s]
        return
    for s in range(1, n):  # within buckets only: they are in order
        value, place, j = slots[s], places[s], s - 1
        while j >= 0 and slots[j] > value:
            slots[j + 1], places[j + 1] = slots[j], places[j]
            j -= 1
        slots[j + 1], places[j + 1] = value, place


@kernel
def fill_buckets(x, outside, n_buckets, space):  # type: ignore[no-untyped-def]
    """Put the scores into slots, bucket by bucket, infinities behind them; returns how many the fullest bucket has.

    Bucket b then begins at ``ends[b]`` and ends at ``ends[b + 1]``.
    """
    buckets, ends, slots, places = space
    low, high = extremes(x)
    scale = np.float32(n_buckets - 1) / (high - low) if high > low else np.float32(0.0)
    for k in range(len(x)):  # a number that is not finite falls into the first or last bucket
        buckets[k] = min(max(np.int32((x[k] - low) * scale), np.int32(0)), np.int32(n_buckets - 1))
    ends[:] = 0
    for k in range(len(outside)):
        ends[buckets[outside[k]] + 2] -= 1
    for k in range(len(x)):
        ends[buckets[k] + 2] += 1
    most = np.int32(0)
    for b in range(2, n_buckets + 2):
        most = max(most, ends[b])
        ends[b] += ends[b - 1]
    # ends[b + 1] is where bucket b begins, and moves to where it ends
    for k in range(len(outside)):
        buckets[outside[k]] = -1
    for k in range(len(x)):
        bucket = buckets[k]
        if bucket >= 0:
            slot = ends[bucket + 1]
            slots[slot], places[slot] = x[k], k
            ends[bucket + 1] = slot + 1
    for k in range(len(outside)):
        buckets[outside[k]] = 0
    slots[len(x) - len(outside) :] = np.inf
    return most


@reordering_kernel
def extremes(x):  # type: ignore[no-untyped-def]
    low, high = x[0], x[0]
    for k in range(1, len(x)):
        low, high = min(low, x[k]), max(high, x[k])
    return low, high
