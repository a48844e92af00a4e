"""A score list as a histogram, so that a query looks at a few bins only: compiled.

The rank of a score is known to within its bin. AOBPR sorts only the bin that holds its rank; BNS with many candidates
counts F only in the bins that can hold the least risk. Entries that are not counted are NaN and fall into no bin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesneg.kernels.numba.compiling import kernel
from bayesneg.kernels.numba.formulas import counted_unbias, info, risk

BINS = 256
LANES = 64  # scores compared side by side
WAYS = 4  # histograms filled in turn


class Bins(NamedTuple):
    """The entries of a list by bin: those of bin b are ``entries[starts[b] : starts[b + 1]]``."""

    numbers: np.ndarray  # (n,) int16, the bin of each entry, BINS where it is not counted
    starts: np.ndarray  # (BINS + 1,) int32
    entries: np.ndarray  # (starts[BINS],) int32


@kernel
def binned(x: np.ndarray) -> Bins:
    numbers = bin_numbers(x)
    starts, entries = sorted_by_bin(numbers)
    return Bins(numbers, starts, entries)


@kernel
def bin_numbers(x: np.ndarray) -> np.ndarray:
    """The bin of each score: 0 for the highest, BINS for NaN, monotone in the score; equal scores share a bin."""
    high, low = extremes(x)
    width = np.float32(high - low)
    spread = np.isfinite(width) and width > 0 and np.isfinite(np.float32(BINS) / width)
    per_width = np.float32(BINS - 1) / width if spread else np.float32(0.0)
    top = high if spread else np.float32(0.0)
    of_places = np.empty(len(x), dtype=np.int16)
    for place in range(len(x)):  # branch-free, so that it is vectorised
        score = x[place]
        position = (top - score) * per_width
        position = position if position < BINS - 1 else np.float32(BINS - 1)
        number = np.int32(position) if spread else np.int32(0)
        of_places[place] = np.int16(number if score == score else BINS)
    return of_places


@kernel
def sorted_by_bin(bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each bin starts (BINS + 1,), and the positions in ``bins``, bin by bin."""
    sizes = np.zeros(BINS + 1, dtype=np.int32)
    for position in range(len(bins)):
        sizes[bins[position]] += 1
    starts = np.empty(BINS + 1, dtype=np.int32)
    total = np.int32(0)
    for b in range(BINS + 1):
        starts[b] = total
        total += sizes[b]
        sizes[b] = starts[b]
    positions = np.empty(len(bins), dtype=np.int32)
    for position in range(len(bins)):
        b = bins[position]
        positions[sizes[b]] = position
        sizes[b] += 1
    return starts, positions


@kernel
def extremes(x: np.ndarray) -> tuple[np.float32, np.float32]:
    """The highest and the lowest score, NaN ignored."""
    high, low = np.full(LANES, -np.inf, dtype=np.float32), np.full(LANES, np.inf, dtype=np.float32)
    whole = len(x) - len(x) % LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            score = x[start + lane]
            high[lane] = score if score > high[lane] else high[lane]
            low[lane] = score if score < low[lane] else low[lane]
    for place in range(whole, len(x)):
        high[0] = x[place] if x[place] > high[0] else high[0]
        low[0] = x[place] if x[place] < low[0] else low[0]
    return high.max(), low.min()


@kernel
def choose_at_rank(x: np.ndarray, items: np.ndarray, rank: int) -> int:
    """The item at this rank of the scores x (n_items,) of ``items``; observed ones are NaN."""
    bins = bin_numbers(x)
    sizes = np.zeros((WAYS, BINS + 1), dtype=np.int32)  # several histograms, since equal increments wait for each other
    whole = len(x) - len(x) % WAYS
    for place in range(0, whole, WAYS):
        for way in range(WAYS):
            sizes[way, bins[place + way]] += 1
    for place in range(whole, len(x)):
        sizes[0, bins[place]] += 1
    wanted, before, size = 0, 0, _over_ways(sizes, 0)
    while before + size <= rank:
        before += size
        wanted += 1
        if wanted == BINS:
            return -1  # fewer scores than ranks: some are NaN
        size = _over_ways(sizes, wanted)
    members, found = np.empty(size, dtype=np.int64), 0
    for place in range(len(x)):
        if bins[place] == wanted:
            members[found] = place
            found += 1
    members = members[np.argsort(items[members])]  # the lower item number first on ties
    return items[members[np.argsort(-x[members], kind="mergesort")[rank - before]]]


@kernel
def _over_ways(sizes: np.ndarray, b: int) -> int:
    total = 0
    for way in range(WAYS):
        total += sizes[way, b]
    return total


@kernel
def choose_among_many(x: np.ndarray, places: np.ndarray, x_positive: float, n: int, p: np.ndarray, rule: Any) -> int:
    """Position of the candidate with the least risk; F is counted in the bins that can hold it, and in no other.

    The candidates are at ``places`` of the user's score list x. A bin gives a lower bound on the risk of all its
    candidates: F is at least that of the items below the bin, the prior at least the lowest in the bin.
    """
    bins = binned(x)
    starts, positions = sorted_by_bin(bins.numbers[places])
    bound = _bounds(x, places, x_positive, n, p, rule, bins)
    best, least = 0, np.inf
    while True:
        b = np.argmin(bound)
        if bound[b] == np.inf or bound[b] > least:
            return best
        bound[b] = np.inf
        below = bins.starts[BINS] - bins.starts[b + 1]
        members = np.sort(x[bins.entries[bins.starts[b] : bins.starts[b + 1]]])
        for k in positions[starts[b] : starts[b + 1]]:
            count = below + np.searchsorted(members, x[places[k]], side="right")
            true_negative = counted_unbias(rule.likelihood, count, n, p[k])
            value = risk(info(x_positive, x[places[k]]), true_negative, rule.weight)
            if value < least or (value == least and k < best):
                best, least = k, value


@kernel
def _bounds(
    x: np.ndarray, places: np.ndarray, x_positive: float, n: int, p: np.ndarray, rule: Any, bins: Bins
) -> np.ndarray:
    """No candidate in a bin has less risk than this (BINS,), rounding allowed for; infinite where there is none."""
    highest, lowest = np.full(BINS, -np.inf, dtype=np.float32), np.full(BINS, np.inf, dtype=np.float32)
    least_prior = np.full(BINS, 2.0)
    for k in range(len(places)):
        b, score = bins.numbers[places[k]], x[places[k]]
        if b == BINS:
            continue
        highest[b] = max(highest[b], score)
        lowest[b] = min(lowest[b], score)
        least_prior[b] = min(least_prior[b], p[k])
    bound = np.full(BINS, np.inf)
    for b in range(BINS):
        if least_prior[b] <= 1.0:
            below = bins.starts[BINS] - bins.starts[b + 1]
            share = 1.0 - (1.0 + rule.weight) * counted_unbias(rule.likelihood, below + 1, n, least_prior[b])
            value = info(x_positive, highest[b] if share < 0.0 else lowest[b]) * share
            bound[b] = value - np.abs(value) * 1e-9 - 1e-12 * (1.0 + rule.weight)
    return bound
