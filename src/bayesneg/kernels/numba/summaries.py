"""The rank of a score, read off a short summary of the user's score list: compiled.

A summary holds the scores at a few ranks, dense at the top and geometric below, divided by the norm of the user's
embedding: it stays valid while the embedding grows, and only a turn makes it stale. Large catalogues are summarised
from a pool: all items that can score high for some user, and a thinning sample of the others with weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesneg.kernels.numba.compiling import entry_point, kernel, lent, reordering_kernel
from bayesneg.kernels.reference.formulas import SHORTEST

KNOTS = 32  # ranks of a summary, at most
REACH = 2.0  # standard deviations
BINS = 256  # between the highest and the lowest score of a list; a knot is off by no more than one
FEW_BINS = 64  # fewer filled bins resolve scores too coarsely


class Pool(NamedTuple):
    """The items that a score list is summarised from."""

    items: np.ndarray  # (P,) int32
    weights: np.ndarray  # (P,) int32, the number of items of the catalogue that each represents
    slots: np.ndarray  # (n_items,) int32, the position of an item in the pool, −1 outside


def knot_ranks(n_items: int) -> np.ndarray:
    """The ranks of a summary, from 1 to n_items: each of the first few, then geometrically.

    >>> knot_ranks(1000).tolist()[:12], knot_ranks(1000).tolist()[-3:]
    ([1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 16, 19], [674, 821, 1000])
    """
    best = np.arange(1, 2)
    for points in range(1, 4 * KNOTS):
        ranks = np.unique(np.geomspace(1, n_items, points).round().astype(np.int64))
        if len(ranks) > KNOTS:
            break
        best = ranks
    return best


def pool_of(users: np.ndarray, items: np.ndarray, size: int) -> Pool:
    """The pool: all items of a small catalogue, mostly those that score high for some users of a larger one.

    Items are ranked by the mean plus two standard deviations of their score over the normalised user embeddings.
    """
    if len(items) <= size:
        return thinned(np.arange(len(items)), size)
    directions = users / np.maximum(np.linalg.norm(users, axis=1, keepdims=True), np.float32(SHORTEST))
    mean = directions.mean(axis=0)
    covariance = directions.T @ directions / len(directions) - np.outer(mean, mean)
    variance = np.einsum("id,id->i", items @ covariance, items)
    reach = items @ mean + REACH * np.sqrt(np.maximum(variance, 0.0))
    return thinned(np.argsort(-reach, kind="stable"), size)


def thinned(order: np.ndarray, size: int) -> Pool:
    """The first ``size`` items of ``order``, every second of the next as many, every fourth of the next twice as many…

    >>> thinned(np.arange(16), 4).items.tolist(), thinned(np.arange(16), 4).weights.tolist()
    ([0, 1, 2, 3, 5, 7, 10, 14], [1, 1, 1, 1, 2, 2, 4, 4])
    """
    chosen, weights = [np.arange(min(size, len(order)))], [np.ones(min(size, len(order)), dtype=np.int64)]
    first, step = size, 2
    while first < len(order):
        last = min(2 * first, len(order))
        bounds = np.linspace(first, last, max(1, (last - first) // step) + 1).astype(np.int64)
        chosen.append((bounds[:-1] + bounds[1:]) // 2)
        weights.append(np.diff(bounds))
        first, step = 2 * first, 2 * step
    items = order[np.concatenate(chosen)].astype(np.int32)
    slots = np.full(len(order), -1, dtype=np.int32)
    slots[items] = np.arange(len(items), dtype=np.int32)
    return Pool(items, np.concatenate(weights).astype(np.int32), slots)


@reordering_kernel
def length_of(w: np.ndarray) -> Any:
    total = np.float32(0.0)
    for f in range(len(w)):
        total += w[f] * w[f]
    return max(np.sqrt(total), np.float32(SHORTEST))


@reordering_kernel
def share_moved(now: np.ndarray, then: np.ndarray) -> Any:
    """|now − then| / |then|."""
    total = np.float32(0.0)
    for f in range(len(now)):
        total += (now[f] - then[f]) * (now[f] - then[f])
    return np.sqrt(total) / length_of(then)


@entry_point
def due_users(
    users: np.ndarray, epoch: int, vectors: np.ndarray, then: np.ndarray, made: np.ndarray, moved: float
) -> np.ndarray:
    """The users, each once, without a summary of this epoch or more than ``moved`` away from ``then``; marks them."""
    due, seen = np.empty(len(users), dtype=np.int32), np.zeros(len(vectors), dtype=np.bool_)
    n_due = 0
    for user in users:
        if seen[user]:
            continue
        seen[user] = True
        if made[user] != epoch or share_moved(vectors[user], then[user]) > moved:
            made[user] = epoch
            then[user] = vectors[user]
            due[n_due] = user
            n_due += 1
    return due[:n_due]


@entry_point
def summarise(x, highest, lowest, users, vectors, pool, indptr, indices, over_all, ranks, knots):  # type: ignore[no-untyped-def]
    """Write the knots of ``users`` (B,) from their scores x (B, P) of the pool's items, from highest to lowest (B,).

    Scores are counted in equal bins; a knot lies as deep in its bin as its rank does. Where few bins are filled, as
    when one item scores far above the others, bins with several knots are counted again in finer ones.
    """
    pool = lent(pool)
    outside = x.shape[1]  # the slot of all items that are not in the pool, without weight and bin
    bins, weights = np.empty(outside + 1, dtype=np.int32), np.append(pool.weights, np.int32(0))
    counts, first = np.empty(BINS + 1, dtype=np.int32), np.empty(BINS + 1, dtype=np.int32)
    for b in range(len(users)):
        user, top, row = users[b], highest[b], x[b]
        length, width = length_of(vectors[user]), (top - lowest[b]) / np.float32(BINS - 1)
        per_score = np.float32(1.0) / width
        if not (np.isfinite(width) and np.isfinite(per_score)):  # all scores are equal, or some are no numbers
            knots[user] = top / length
            continue
        counts[:], bins[outside] = 0, BINS
        for place in range(len(row)):
            bins[place] = np.int32((top - row[place]) * per_score)
        for place in range(len(row)):
            counts[np.uint32(bins[place])] += weights[place]
        if not over_all:
            for observed in range(indptr[user], indptr[user + 1]):
                place = pool.slots[np.uint32(indices[observed])]
                inside = np.uint32(place if place >= 0 else outside)
                counts[np.uint32(bins[inside])] -= weights[inside]
                bins[inside] = BINS
        above, filled, k = 0, 0, 0
        for bin in range(BINS):
            first[bin] = k
            while k < len(ranks) and ranks[k] <= above + counts[bin]:
                share = np.float32(ranks[k] - above - 0.5) / np.float32(counts[bin])
                knots[user, k] = max(top - (bin + share) * width, lowest[b]) / length
                k += 1
            above += counts[bin]
            filled += counts[bin] > 0
        first[BINS] = k
        for rest in range(k, len(ranks)):
            knots[user, rest] = lowest[b] / length
        if filled < FEW_BINS:
            spread_knots(row, bins, counts, weights, first, top, width, length, ranks, knots[user])


@kernel
def spread_knots(row, bins, counts, weights, first, top, width, length, ranks, knots):  # type: ignore[no-untyped-def]
    """Place the knots of a bin that has several, ``first`` to the next bin's, by counting in finer bins."""
    slots, finer = np.full(BINS + 1, -1, dtype=np.int32), np.zeros((KNOTS // 2, BINS), dtype=np.int32)
    per_score = np.float32(1.0) / width
    n_slots = 0
    for bin in range(BINS):
        if first[bin + 1] - first[bin] > 1:
            slots[bin] = n_slots
            n_slots += 1
    for place in range(len(row)):
        if slots[bins[place]] >= 0:
            depth = (top - row[place]) * per_score - np.float32(bins[place])  # from 0 to 1
            finer[slots[bins[place]], max(0, min(int(depth * BINS), BINS - 1))] += weights[place]
    above = 0
    for bin in range(BINS):
        if slots[bin] >= 0:
            reached, k = above, first[bin]
            for part in range(BINS):
                inside = finer[slots[bin], part]
                while k < first[bin + 1] and ranks[k] <= reached + inside:
                    share = np.float32(ranks[k] - reached - 0.5) / np.float32(inside)
                    knots[k] = (top - (bin + (part + share) / np.float32(BINS)) * width) / length
                    k += 1
                reached += inside
        above += counts[bin]


@kernel
def items_above(knots: np.ndarray, ranks: np.ndarray, z: float) -> Any:
    """The number of items above a score divided by the norm of the user's embedding, linear between two knots."""
    passed = np.int32(0)
    for k in range(len(knots)):
        passed += np.int32(knots[k] > z)
    if passed == 0:
        return 0.0
    if passed == len(knots):
        return ranks[passed - 1] - 1.0
    upper, lower = knots[passed - 1], knots[passed]
    share = (np.float64(upper) - z) / (np.float64(upper) - lower)
    return ranks[passed - 1] - 1.0 + share * (ranks[passed] - ranks[passed - 1])


@kernel
def others_above(rule, user, z, n):  # type: ignore[no-untyped-def]
    """The number of the n items above one of them, by the user's summary."""
    return min(items_above(rule.knots[user], rule.ranks, z), n - 1.0)
