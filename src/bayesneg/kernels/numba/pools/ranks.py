"""Exact ranks in a row of scores, compiled, in time that grows with the length of the row.

Scores are put into buckets of equal width, bucket by bucket; a score is then compared with those of its bucket alone,
which are few. A row whose scores crowd into few buckets is sorted. Positions are unsigned numbers: of a signed one
compiled code asks at each use whether it is negative, which takes half the time again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesneg.kernels.numba.compiling import kernel, reordering_kernel

BUCKETS = 2  # for each score
WINDOW = 4  # scores of a bucket that are compared without a branch
CROWDED = 64  # scores in a bucket from which on sorting is faster
ZERO, ONE, TWO = np.uint32(0), np.uint32(1), np.uint32(2)


class RankSpace(NamedTuple):
    """Scratch memory for rows of n scores."""

    buckets: np.ndarray  # (n,) uint32
    ends: np.ndarray  # (BUCKETS · n + 3,) uint32, with a last bucket for scores that do not count
    slots: np.ndarray  # (n + WINDOW,) float32
    places: np.ndarray  # (n,) int32


@kernel
def rank_space(n):  # type: ignore[no-untyped-def]
    return RankSpace(
        np.empty(n, dtype=np.uint32),
        np.empty(BUCKETS * n + 3, dtype=np.uint32),
        np.empty(n + WINDOW, dtype=np.float32),
        np.empty(n, dtype=np.int32),
    )


@kernel
def count_at_most(x, outside, space, at_most):  # type: ignore[no-untyped-def]
    """Write #{x ≤ x_k} of each score, uint32; those at the positions ``outside`` do not count, and theirs is any."""
    buckets, ends, slots, _ = space
    n = np.uint32(len(x) - len(outside))
    most = find_buckets(x, outside, space)
    for k in range(len(x)):
        slot = ends[buckets[k] + ONE]
        slots[slot] = x[k]
        ends[buckets[k] + ONE] = slot + ONE
    slots[n:] = np.inf
    if most > CROWDED:
        ascending = np.sort(slots[:n])
        for k in range(len(x)):
            at_most[k] = np.searchsorted(ascending, x[k], side="right")
        return
    for k in range(len(x)):
        value, first, last = x[k], ends[buckets[k]], ends[buckets[k] + ONE]
        count = first
        for j in range(WINDOW):  # beyond the bucket there are higher scores only
            count += np.uint32(slots[first + np.uint32(j)] <= value)
        for j in range(first + np.uint32(WINDOW), last):
            count += np.uint32(slots[j] <= value)
        at_most[k] = min(count, n)


@kernel
def sort_row(x, outside, space):  # type: ignore[no-untyped-def]
    """Sort the scores but those ``outside`` into ``space.slots``, ascending, with their positions in ``places``."""
    buckets, ends, slots, places = space
    n = len(x) - len(outside)
    most = find_buckets(x, outside, space)
    for k in range(len(x)):
        slot = ends[buckets[k] + ONE]
        slots[slot], places[slot] = x[k], k
        ends[buckets[k] + ONE] = slot + ONE
    if most > CROWDED:
        order = np.argsort(slots[:n])
        slots[:n], places[:n] = slots[:n][order], places[:n][order]
        return
    for s in range(1, n):  # within buckets only: they are in order
        value, place, j = slots[s], places[s], s - 1
        while j >= 0 and slots[j] > value:
            slots[j + 1], places[j + 1] = slots[j], places[j]
            j -= 1
        slots[j + 1], places[j + 1] = value, place


@kernel
def find_buckets(x, outside, space):  # type: ignore[no-untyped-def]
    """Find the bucket of each score; those ``outside`` are in the last one. Returns how many the fullest other has.

    ``ends[b + 1]`` is where bucket b begins; once its scores are in their slots, it is where it ends.
    """
    buckets, ends = space.buckets, space.ends
    n_buckets = BUCKETS * len(x)
    low, high = extremes(x)
    scale = np.float32(n_buckets - 1) / (high - low) if high > low else np.float32(0.0)
    for k in range(len(x)):  # a number that is not finite falls into the first or last bucket
        buckets[k] = min(max(np.int32((x[k] - low) * scale), np.int32(0)), np.int32(n_buckets - 1))
    for k in outside:
        buckets[k] = n_buckets
    ends[:] = 0
    for k in range(len(x)):
        ends[buckets[k] + TWO] += ONE
    most = ZERO
    for b in range(2, n_buckets + 2):
        most = max(most, ends[b])
    passed = ZERO
    for b in range(2, n_buckets + 2):
        passed += ends[b]
        ends[b] = passed
    return most


@reordering_kernel
def extremes(x):  # type: ignore[no-untyped-def]
    low, high = x[0], x[0]
    for k in range(1, len(x)):
        low, high = min(low, x[k]), max(high, x[k])
    return low, high
