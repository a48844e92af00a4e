"""One block of per-example SGD with the choice of the negative inside, compiled.

``train_block`` is compiled once per kind of rule and kept on disk. The choices carry the names of ``reference`` and
are tested equal to it. numba's cache notices changes of this file only, so everything that ``train_block`` calls
stands here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from bayesneg.kernels.rules import (
    FACTOR_TRIES,
    SNAPSHOTS,
    AtFactorRank,
    AtScoreRank,
    Draws,
    FromMemory,
    LeastRisk,
    MostUnbiased,
    Rule,
    TakeFirst,
    TakeHighest,
)

# Sums may be reordered into vector lanes; infinities and NaN keep their meaning.
REORDER = {"reassoc", "contract", "nsz"}
FEW = 16  # up to this many candidates F is counted by plain sweeps, above it by bucketing


class Factors(NamedTuple):
    users: np.ndarray  # (n_users, d) float32
    items: np.ndarray  # (n_items, d) float32
    columns: np.ndarray  # (d, n_items) float32, the items again factor by factor, or (0, 0) where no rule sweeps them


# ------------------------------------------------------------------------------------------------------------ scores


@njit(cache=True, nogil=True, fastmath=REORDER)
def dot(a: np.ndarray, b: np.ndarray) -> Any:
    total = np.float32(0.0)
    for f in range(len(a)):
        total += a[f] * b[f]
    return total


@njit(cache=True, nogil=True, fastmath=REORDER)
def score_all(w: np.ndarray, columns: np.ndarray, x: np.ndarray) -> None:
    """x_l = w · h_l for the whole catalogue, eight factors at a time so that x is read and written seldom."""
    d, n_items = columns.shape
    x[:] = 0.0
    whole = d - d % 8
    for f in range(0, whole, 8):
        w0, w1, w2, w3 = w[f], w[f + 1], w[f + 2], w[f + 3]
        w4, w5, w6, w7 = w[f + 4], w[f + 5], w[f + 6], w[f + 7]
        c0, c1, c2, c3 = columns[f], columns[f + 1], columns[f + 2], columns[f + 3]
        c4, c5, c6, c7 = columns[f + 4], columns[f + 5], columns[f + 6], columns[f + 7]
        for l in range(n_items):  # noqa: E741
            x[l] += (
                w0 * c0[l] + w1 * c1[l] + w2 * c2[l] + w3 * c3[l] + w4 * c4[l] + w5 * c5[l] + w6 * c6[l] + w7 * c7[l]
            )
    for f in range(whole, d):
        for l in range(n_items):  # noqa: E741
            x[l] += w[f] * columns[f, l]


@njit(cache=True, nogil=True)
def count_at_most(x: np.ndarray, x_candidates: np.ndarray, counts: np.ndarray) -> None:
    """counts_l = #{x ≤ x_l}, in integers. Entries of x that must not count are NaN or +inf above every candidate."""
    if len(x_candidates) <= FEW:
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


# ----------------------------------------------------------------------------------------------------------- choices


@njit(cache=True, nogil=True)
def info(x_positive: float, x_candidate: float) -> float:
    return 1.0 / (1.0 + np.exp(np.float64(x_positive) - np.float64(x_candidate)))


@njit(cache=True, nogil=True, error_model="numpy")
def unbias(F: float, p: float) -> float:
    negative = (1.0 - F) * (1.0 - p)
    return negative / (negative + F * p)


@njit(cache=True, nogil=True)
def choose_highest(x: np.ndarray, top: int, uniform: float) -> int:
    if top == 1:
        return int(np.argmax(x))
    wanted = int(uniform * min(top, len(x)))
    for k in range(len(x)):  # the position with exactly ``wanted`` positions ranked before it
        before = 0
        for other in range(len(x)):
            if x[other] > x[k] or (x[other] == x[k] and other < k):
                before += 1
        if before == wanted:
            return k
    return 0


@njit(cache=True, nogil=True)
def choose_least_risk(
    x: np.ndarray, x_positive: float, counts: np.ndarray, n: int, p: np.ndarray, weight: float
) -> int:
    best, least = 0, np.inf
    for k in range(len(x)):
        risk = info(x_positive, x[k]) * (1.0 - (1.0 + weight) * unbias(counts[k] / (n + 1), p[k]))
        if risk < least:
            best, least = k, risk
    return best


@njit(cache=True, nogil=True)
def choose_most_unbiased(counts: np.ndarray, n: int, p: np.ndarray) -> int:
    best, most = 0, -np.inf
    for k in range(len(counts)):
        value = unbias(counts[k] / (n + 1), p[k])
        if value > most:
            best, most = k, value
    return best


@njit(cache=True, nogil=True)
def truncated_rank(uniform: float, scale: float, n: int) -> int:
    return min(int(-scale * np.log1p(uniform * np.expm1(-n / scale))), n - 1)


@njit(cache=True, nogil=True)
def choose_at_rank(x: np.ndarray, row: np.ndarray, rank: int) -> int:
    """x is overwritten at the observed items. The value at the rank comes from a partial sort, ties by item number."""
    for item in row:
        x[item] = -np.inf
    value = np.partition(x, len(x) - 1 - rank)[len(x) - 1 - rank]
    above = 0
    for score in x:
        above += score > value
    observed = 0
    for item in range(len(x)):
        while observed < len(row) and row[observed] < item:
            observed += 1
        if x[item] == value and not (observed < len(row) and row[observed] == item):
            if above == rank:
                return item
            above += 1
    return -1


@njit(cache=True, nogil=True)
def contains(row: np.ndarray, item: int) -> bool:
    found = np.searchsorted(row, item)
    return bool(found < len(row) and row[found] == item)


@njit(cache=True, nogil=True)
def sort_factors(items: np.ndarray, orders: np.ndarray, spreads: np.ndarray) -> None:
    for f in range(items.shape[1]):
        column = -items[:, f]
        orders[f] = np.argsort(column, kind="mergesort").astype(np.int32)
        spreads[f] = np.std(column.astype(np.float64))


@njit(cache=True, nogil=True)
def choose_at_factor_rank(
    w: np.ndarray, scale: float, orders: np.ndarray, spreads: np.ndarray, row: np.ndarray, uniforms: np.ndarray
) -> int:
    d, n_items = orders.shape
    total = 0.0
    for f in range(d):
        total += np.abs(np.float64(w[f])) * spreads[f]
    rank, factor = 0, 0
    for attempt in range(FACTOR_TRIES):
        rank = truncated_rank(uniforms[2 * attempt], scale, n_items)
        target = uniforms[2 * attempt + 1] * total
        mass = 0.0
        for f in range(d):
            mass += np.abs(np.float64(w[f])) * spreads[f]
            factor = f
            if mass > target:
                break
        item = orders[factor, rank] if w[factor] > 0 else orders[factor, n_items - 1 - rank]
        if not contains(row, item):
            return item
    for step in range(n_items):
        place = (rank + step) % n_items
        item = orders[factor, place] if w[factor] > 0 else orders[factor, n_items - 1 - place]
        if not contains(row, item):
            return item
    return -1


@njit(cache=True, nogil=True)
def choose_from_memory(
    x: np.ndarray, x_positive: float, past_items: np.ndarray, past_positive: np.ndarray, variance_weight: float
) -> int:
    best, most = 0, -np.inf
    for slot in range(len(x)):
        seen, total = 0, 0.0
        for t in range(SNAPSHOTS):
            value = info(past_positive[t], past_items[slot, t])
            if np.isfinite(value):
                seen += 1
                total += value
        spread = 0.0
        for t in range(SNAPSHOTS):
            value = info(past_positive[t], past_items[slot, t])
            if np.isfinite(value):
                spread += (value - total / seen) ** 2
        merit = info(x_positive, x[slot]) + variance_weight * np.sqrt(spread / max(seen, 1))
        if merit > most:
            best, most = slot, merit
    return best


@njit(cache=True, nogil=True)
def refresh_memory(
    memory: np.ndarray, past: np.ndarray, fresh: np.ndarray, x: np.ndarray, temperature: float, uniforms: np.ndarray
) -> None:
    """``x`` holds the scores of the memory, then of the fresh items; only as many stay as the memory had."""
    size = len(x) - len(fresh)
    keys = np.empty(len(x))
    for k in range(len(x)):
        keys[k] = x[k] / temperature - np.log(-np.log(max(uniforms[k], 1e-300)))
    kept = np.argsort(-keys, kind="mergesort")[:size]
    stays = np.zeros(size, dtype=np.bool_)
    for k in kept:
        if k < size:
            stays[k] = True
    slot = 0
    for k in kept:
        if k >= size:
            while stays[slot]:
                slot += 1
            memory[slot] = fresh[k - size]
            past[slot] = np.nan
            slot += 1


# ------------------------------------------------------------- the same choices for one example of a block, by rule


def choose(
    rule: Any, draws: Any, b: Any, user: Any, positive: Any, position: Any, row: Any, factors: Any, x: Any
) -> int:
    """The item that ``rule`` picks for example ``b``; compiled code finds the implementation by the rule's type."""
    raise TypeError("choose is for compiled code; call reference.choose_batch from Python")


def _take_first(rule, draws, b, user, positive, position, row, factors, x):  # type: ignore[no-untyped-def]
    return draws.candidates[b, rule.position]


def _take_highest(rule, draws, b, user, positive, position, row, factors, x):  # type: ignore[no-untyped-def]
    size = draws.sizes[b]
    for k in range(size):
        x[k] = dot(factors.users[user], factors.items[draws.candidates[b, k]])
    return draws.candidates[b, choose_highest(x[:size], rule.top, draws.uniforms[b, 0])]


def _least_risk(rule, draws, b, user, positive, position, row, factors, x):  # type: ignore[no-untyped-def]
    size = draws.sizes[b]
    n, x_positive, x_candidates, counts = _counts(rule.over_all, draws, b, user, positive, row, factors, x)
    best = choose_least_risk(x_candidates, x_positive, counts, n, draws.priors[b, :size], rule.weight)
    return draws.candidates[b, best]


def _most_unbiased(rule, draws, b, user, positive, position, row, factors, x):  # type: ignore[no-untyped-def]
    size = draws.sizes[b]
    n, _, _, counts = _counts(rule.over_all, draws, b, user, positive, row, factors, x)
    return draws.candidates[b, choose_most_unbiased(counts, n, draws.priors[b, :size])]


@njit(cache=True, nogil=True)
def _counts(over_all, draws, b, user, positive, row, factors, x):  # type: ignore[no-untyped-def]
    """How many scores of the user's list lie at or below each candidate's, with those scores."""
    n_items, size = factors.columns.shape[1], draws.sizes[b]
    scores = x[:n_items]
    score_all(factors.users[user], factors.columns, scores)
    x_positive = scores[positive]
    x_candidates = x[n_items : n_items + size]
    for k in range(size):
        x_candidates[k] = scores[draws.candidates[b, k]]
    n = n_items
    if not over_all:
        n -= len(row)
        for item in row:
            scores[item] = np.nan  # compares as false: observed items do not count
    counts = np.empty(size, dtype=np.int64)
    count_at_most(scores, x_candidates, counts)
    return n, x_positive, x_candidates, counts


def _at_score_rank(rule, draws, b, user, positive, position, row, factors, x):  # type: ignore[no-untyped-def]
    scores = x[: factors.columns.shape[1]]
    score_all(factors.users[user], factors.columns, scores)
    return choose_at_rank(scores, row, truncated_rank(draws.uniforms[b, 0], rule.scale, len(scores) - len(row)))


def _at_factor_rank(rule, draws, b, user, positive, position, row, factors, x):  # type: ignore[no-untyped-def]
    if rule.clock[0] % rule.period == 0:
        sort_factors(factors.items, rule.orders, rule.spreads)
    rule.clock[0] += 1
    return choose_at_factor_rank(factors.users[user], rule.scale, rule.orders, rule.spreads, row, draws.uniforms[b])


def _from_memory(rule, draws, b, user, positive, position, row, factors, x):  # type: ignore[no-untyped-def]
    w, memory = factors.users[user], rule.memory[user]
    size = 0
    while size < len(memory) and memory[size] >= 0:
        x[size] = dot(w, factors.items[memory[size]])
        size += 1
    fresh = np.empty(draws.candidates.shape[1] - len(memory), dtype=np.int32)
    n_fresh = 0
    for k in range(draws.sizes[b]):
        item = draws.candidates[b, k]
        if n_fresh < len(fresh) and not np.any(memory[:size] == item):
            fresh[n_fresh] = item
            x[size + n_fresh] = dot(w, factors.items[item])
            n_fresh += 1
    past = rule.item_scores[user]
    slot = choose_from_memory(
        x[:size], dot(w, factors.items[positive]), past, rule.positive_scores[position], rule.variance_weight
    )
    chosen = memory[slot]
    refresh_memory(memory, past, fresh[:n_fresh], x[: size + n_fresh], rule.temperature, draws.uniforms[b])
    return chosen


_CHOICES: dict[type, Callable[..., int]] = {
    TakeFirst: _take_first,
    TakeHighest: _take_highest,
    LeastRisk: _least_risk,
    MostUnbiased: _most_unbiased,
    AtScoreRank: _at_score_rank,
    AtFactorRank: _at_factor_rank,
    FromMemory: _from_memory,
}
SWEEPING = (LeastRisk, MostUnbiased, AtScoreRank)  # rules that score the whole catalogue for each example


@overload(choose)
def _choose(rule, draws, b, user, positive, position, row, factors, x):  # type: ignore[no-untyped-def]
    return _CHOICES[rule.instance_class]


# ---------------------------------------------------------------------------------------------------------- training


@njit(cache=True, nogil=True, fastmath=REORDER)
def step(
    w: np.ndarray, h_i: np.ndarray, h_j: np.ndarray, learning_rate: float, regularization: float, simultaneous: bool
) -> np.float32:
    """One ascent step on ln σ(x_i − x_j) − reg/2 · |·|²; returns 1 − σ(x_i − x_j) before the step.

    ``simultaneous`` moves the items along the old w, otherwise along the w just updated.
    """
    x = np.float32(0.0)
    for f in range(len(w)):
        x += w[f] * (h_i[f] - h_j[f])
    gradient = np.float32(1.0 / (1.0 + np.exp(np.float64(x))))
    rate, decay = np.float32(learning_rate), np.float32(regularization)
    for f in range(len(w)):
        old, hi, hj = w[f], h_i[f], h_j[f]
        new = old + rate * (gradient * (hi - hj) - decay * old)
        along = old if simultaneous else new
        w[f] = new
        h_i[f] = hi + rate * (gradient * along - decay * hi)
        h_j[f] = hj - rate * (gradient * along + decay * hj)
    return gradient


@njit(cache=True, nogil=True)
def train_block(
    rule: Rule,
    users: np.ndarray,
    positives: np.ndarray,
    positions: np.ndarray,
    draws: Draws,
    indptr: np.ndarray,
    indices: np.ndarray,
    factors: Factors,
    learning_rate: float,
    regularization: float,
    simultaneous: bool,
    negatives: np.ndarray,
    infos: np.ndarray,
) -> None:
    """Choose and learn, example after example; ``negatives`` and ``infos`` (B,) say what was chosen."""
    sweeping = factors.columns.size > 0
    x = np.empty(len(factors.items) + draws.candidates.shape[1], dtype=np.float32)
    for b in range(len(users)):
        user, i = users[b], positives[b]
        negatives[b], infos[b] = -1, 0.0
        if draws.sizes[b] == 0:
            continue
        row = indices[indptr[user] : indptr[user + 1]]
        j = choose(rule, draws, b, user, i, positions[b], row, factors, x)
        if j < 0:
            continue
        negatives[b] = j
        infos[b] = step(
            factors.users[user], factors.items[i], factors.items[j], learning_rate, regularization, simultaneous
        )
        if sweeping:
            for f in range(factors.items.shape[1]):
                factors.columns[f, i] = factors.items[i, f]
                factors.columns[f, j] = factors.items[j, f]


@njit(cache=True, nogil=True)
def learn_given(
    users: np.ndarray,
    positives: np.ndarray,
    negatives: np.ndarray,
    factors: Factors,
    learning_rate: float,
    regularization: float,
    simultaneous: bool,
    infos: np.ndarray,
) -> None:
    """The same steps for negatives (B,) that somebody else chose; −1 is skipped."""
    for b in range(len(users)):
        infos[b] = 0.0
        if negatives[b] >= 0:
            infos[b] = step(
                factors.users[users[b]],
                factors.items[positives[b]],
                factors.items[negatives[b]],
                learning_rate,
                regularization,
                simultaneous,
            )
