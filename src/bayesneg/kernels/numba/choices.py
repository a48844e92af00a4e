"""The choices of ``reference``, compiled: same names, same answers.

These functions are compiled into the entry points of ``sequential`` and are not cached on their own.
"""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.compiling import kernel
from bayesneg.kernels.rules import FACTOR_TRIES

FEW = 16  # up to this many candidates F is counted by plain sweeps, above it by bucketing


@kernel
def info(x_positive: float, x_candidate: float) -> float:
    return 1.0 / (1.0 + np.exp(np.float64(x_positive) - np.float64(x_candidate)))


@kernel
def list_sizes(over, n_items, n_observed):  # type: ignore[no-untyped-def]
    return n_items - n_observed * (not over.with_observed), n_items - n_observed * (not over.of_catalogue)


@kernel
def counted_cdf(count: float, n: int) -> float:
    return count / (n + 1)


@kernel
def unbias(F: float, p: float) -> float:
    negative = (1.0 - F) * (1.0 - p)
    return negative / (negative + F * p)


@kernel
def risk(info: float, unbias: float, weight: float) -> float:
    return info * (1.0 - (1.0 + weight) * unbias)


@kernel
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


@kernel
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


@kernel
def choose_least_risk(x: np.ndarray, x_positive: float, true_negative: np.ndarray, weight: float) -> int:
    best, least = 0, np.inf
    for k in range(len(x)):
        value = risk(info(x_positive, x[k]), true_negative[k], weight)
        if value < least:
            best, least = k, value
    return best


@kernel
def choose_most_unbiased(true_negative: np.ndarray) -> int:
    best, most = 0, -np.inf
    for k in range(len(true_negative)):
        if true_negative[k] > most:
            best, most = k, true_negative[k]
    return best


@kernel
def truncated_rank(uniform: float, scale: float, n: int) -> int:
    return min(int(-scale * np.log1p(uniform * np.expm1(-n / scale))), n - 1)


@kernel
def contains(row: np.ndarray, item: int) -> bool:
    found = np.searchsorted(row, item)
    return bool(found < len(row) and row[found] == item)


@kernel
def sort_factors(items: np.ndarray, orders: np.ndarray, spreads: np.ndarray) -> None:
    for f in range(items.shape[1]):
        column = -items[:, f]
        orders[f] = np.argsort(column, kind="mergesort").astype(np.int32)
        spreads[f] = np.std(column.astype(np.float64))


@kernel
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


@kernel
def choose_from_memory(
    x: np.ndarray, x_positive: float, past: np.ndarray, past_positive: np.ndarray, variance_weight: float
) -> int:
    """``past`` (t, S) and ``past_positive`` (t,) are the scores at the last epoch ends."""
    n_past = len(past_positive)
    best, most = 0, -np.inf
    for slot in range(len(x)):
        mean, spread = 0.0, 0.0
        for t in range(n_past):
            mean += info(past_positive[t], past[t, slot]) / n_past
        for t in range(n_past):
            spread += (info(past_positive[t], past[t, slot]) - mean) ** 2 / n_past
        merit = info(x_positive, x[slot]) + variance_weight * np.sqrt(spread)
        if merit > most:
            best, most = slot, merit
    return best


@kernel
def refresh_memory(
    memory: np.ndarray, fresh: np.ndarray, x: np.ndarray, temperature: float, uniforms: np.ndarray
) -> None:
    """Changes ``memory`` in place; ``x`` holds the scores of the memory, then of the fresh items."""
    size = len(memory)
    keys = np.empty(len(x))
    for k in range(len(x)):
        keys[k] = np.float64(x[k]) / temperature - np.log(-np.log(max(uniforms[k], 1e-300)))
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
            slot += 1
