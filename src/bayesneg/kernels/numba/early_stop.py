"""Sweeps over the catalogue that stop as soon as the choice is proved: compiled.

docs/explanation/equations.md has the proof behind :func:`most_promising`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesneg.kernels.numba.compiling import kernel
from bayesneg.kernels.numba.formulas import counted_unbias, info, list_sizes, risk, shares_below
from bayesneg.kernels.numba.scoring import TILE, count_above, dot, rounding, score_tile

FEW = 16  # up to this many candidates a choice counts F for each, above it only in some bins
COMPARED = 256  # up to this many candidates are compared with the whole list one by one, more of them are sorted


class Promising(NamedTuple):
    """The candidate that wins if enough unobserved items score above it."""

    position: int  # −1 where no early proof is possible
    threshold: float  # an item counts as above only beyond rounding
    above_needed: float


NOTHING = Promising(-1, np.inf, np.inf)


@kernel
def most_promising(candidates, priors, rule, example, factors, x):  # type: ignore[no-untyped-def]
    """The condition that proves the least risk without counting every F. It never changes the choice.

    Risk grows with the counted share, so no candidate has less than at the lowest there is, 1/(n+1). The one that is
    best there wins for sure if its risk is below the others' bounds even at a share that is certainly too high; and
    that is at most (n_counted − g)/(n+1) once g of these are seen to score higher. Solved for g; ``noise`` keeps
    rounding out.
    """
    w = factors.users[example.user]
    n_counted, n = list_sizes(rule.over, len(factors.items), example.stop - example.start)
    x_positive = dot(w, factors.items[example.positive])
    noise = rounding(w, factors.items[example.positive])
    best, least, second = -1, np.inf, np.inf
    for k in range(len(candidates)):
        h = factors.items[candidates[k]]
        x[k] = dot(w, h)
        noise = max(noise, rounding(w, h))
        bound = risk(info(x_positive, x[k]), counted_unbias(rule.likelihood, 1, n, priors[k]), rule.weight)
        if bound < least:
            best, least, second = k, bound, least
        elif bound < second:
            second = bound
    if len(candidates) == 1:
        return Promising(0, -np.inf, -1.0)
    if best < 0 or not noise < 1e-3:
        return NOTHING
    gain, p = info(x_positive, x[best]), priors[best]
    if gain == 0.0:
        return NOTHING
    target = second - np.abs(second) * (8.0 * noise + 1e-9) - 1e-12 * (1.0 + rule.weight)
    unbias_needed = (1.0 - target / gain) / (1.0 + rule.weight)
    if not unbias_needed < 1.0:
        return NOTHING
    if unbias_needed <= 0.0:
        return Promising(best, -np.inf, -1.0)  # it wins at any F
    odds = unbias_needed * p
    allowed = shares_below(rule.likelihood, 1.0 - odds / ((1.0 - p) * (1.0 - unbias_needed) + odds))
    above_needed = n_counted - (n + 1) * allowed + 1e-6  # beyond rounding
    return Promising(best, np.float64(x[best]) + 2.0 * noise, above_needed)


@kernel
def sweep(promising, over, example, factors, x):  # type: ignore[no-untyped-def]
    """Score tile after tile into x, by slot, NaN where an item is not counted; True if the choice was proved early."""
    w, rows = factors.users[example.user], factors.tiled.layout.rows
    n_items = len(factors.items)
    if promising.above_needed < 0.0:
        return True
    above, observed = 0, example.start
    for tile in range((n_items + TILE - 1) // TILE):
        low, high = tile * TILE, (tile + 1) * TILE
        score_tile(w, factors.tiled.values, tile, x[low:high])
        if not over.with_observed:
            while observed < example.stop and rows[observed] < high:
                x[rows[observed]] = np.nan
                observed += 1
        if promising.position >= 0 and high <= n_items:
            above += count_above(x[low:high], promising.threshold)
            if above > promising.above_needed:
                return True
    return False


@kernel
def judge_candidates(candidates, priors, rule, example, factors, x):  # type: ignore[no-untyped-def]
    """The candidates' scores and their unbias, with F counted over the swept list in x."""
    n_items, slots = len(factors.items), factors.tiled.layout.slots
    _, n = list_sizes(rule.over, n_items, example.stop - example.start)
    x_candidates, counts = np.empty(len(candidates), dtype=np.float32), np.empty(len(candidates), dtype=np.int64)
    for k in range(len(candidates)):
        x_candidates[k] = x[slots[candidates[k]]]
    count_at_most(x[:n_items], x_candidates, counts)
    true_negative = np.empty(len(candidates), dtype=np.float64)
    for k in range(len(candidates)):
        true_negative[k] = counted_unbias(rule.likelihood, counts[k], n, priors[k])
    return x_candidates, true_negative


@kernel
def count_at_most(x: np.ndarray, x_candidates: np.ndarray, counts: np.ndarray) -> None:
    """counts_l = #{x ≤ x_l}, in integers. Entries of x that must not count are NaN or +inf above every candidate."""
    if len(x_candidates) <= COMPARED:
        for k in range(len(x_candidates)):
            threshold = x_candidates[k]
            count = np.int32(0)
            for l in range(len(x)):  # noqa: E741
                count += np.int32(x[l] <= threshold)
            counts[k] = count
        return
    order = np.argsort(x_candidates)
    ascending = x_candidates[order]
    below = np.zeros(len(order) + 1, dtype=np.int64)
    for value in x:
        if value <= ascending[-1]:
            below[np.searchsorted(ascending, value)] += 1
    total = 0
    for k in range(len(order)):
        total += below[k]
        counts[order[k]] = total


@kernel
def wins_anyway(F, p, x_positive, highest, second, weight):  # type: ignore[no-untyped-def]
    """Whether the candidate of highest score has the least risk even if every other is certainly a true negative.

    Their risk is at least −λ/B and its own is (1 − (1+λ) · unbias)/A, with 1/A and 1/B its info and that of the second
    highest; multiply every denominator away. A millionth covers rounding.
    """
    A = np.float32(1.0) + np.exp(x_positive - highest)
    B = np.float32(1.0) + np.exp(x_positive - second)
    gap = B - A - np.float32(1e-6) * B
    return (1.0 - F) * (1.0 - p) * weight * gap > (B + weight * A) * p * F
