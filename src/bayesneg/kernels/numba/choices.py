"""Every rule of ``kernels/reference/choices.py``, compiled: one choice for one example.

A rule's function is registered with :func:`chooses`; compiled code finds it by the type of the rule. These functions
are inlined into the entry points of ``sgd`` and are not cached on their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from bayesneg.kernels.numba.binning import choose_among_many, choose_at_rank
from bayesneg.kernels.numba.compiling import INLINED, kernel
from bayesneg.kernels.numba.early_stop import FEW, NOTHING, judge_candidates, most_promising, sweep, wins_anyway
from bayesneg.kernels.numba.formulas import (
    base_cdf,
    counted_cdf,
    counted_unbias,
    info,
    list_sizes,
    risk,
    truncated_rank,
)
from bayesneg.kernels.numba.scoring import dot
from bayesneg.kernels.numba.summaries import length_of, others_above
from bayesneg.kernels.reference.choices import (
    FACTOR_TRIES,
    AtFactorRank,
    AtScoreRank,
    FromMemory,
    LeastRisk,
    LeastRiskBySummary,
    MostUnbiased,
    Rule,
    TakeFirst,
    TakeHighest,
)
from bayesneg.kernels.reference.formulas import UNOBSERVED


class Example(NamedTuple):
    """The example of the block that a choice is for."""

    b: int
    user: int
    positive: int
    start: int  # the user's observed items are indices[start:stop]
    stop: int
    refresh: bool  # whether a rule with a memory refreshes it after this choice


class CompiledChoice(NamedTuple):
    """How a rule is executed by compiled code."""

    function: Callable[..., int]
    sweeps: bool  # may score the whole catalogue for one example
    remembers: bool  # refreshes a memory once per user and batch


_CHOICES: dict[type, CompiledChoice] = {}


def chooses(rule: type, *, sweeps: bool = False, remembers: bool = False) -> Callable[[Any], Any]:
    """Register the decorated function as the compiled choice of a rule."""

    def register(function: Callable[..., int]) -> Callable[..., int]:
        _CHOICES[rule] = CompiledChoice(function, sweeps, remembers)
        return function

    return register


def compiled(rule: Rule) -> CompiledChoice:
    """The compiled execution of a rule."""
    return _CHOICES[type(rule)]


def choose(rule: Any, draws: Any, example: Any, indices: Any, factors: Any, x: Any) -> int:
    """The item that ``rule`` chooses, in compiled code; ``x`` is scratch memory for scores."""
    raise TypeError("choose is for compiled code; call reference.choose_batch from Python")


@overload(choose, jit_options=INLINED)
def _choose(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    return _CHOICES[rule.instance_class].function


# ------------------------------------------------------------------------------------------------- RNS, PNS and DNS


@chooses(TakeFirst)
def _take_first(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    return draws.candidates[example.b, rule.position]


@chooses(TakeHighest)
def _take_highest(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    b, size = example.b, draws.sizes[example.b]
    first, _, _ = score_candidates(factors.users[example.user], factors.items, draws.candidates[b, :size], x)
    if rule.top == 1:
        return draws.candidates[b, first]
    return draws.candidates[b, choose_highest(x[:size], rule.top, draws.uniforms[b, 0])]


@kernel
def score_candidates(w, items, candidates, x):  # type: ignore[no-untyped-def]
    """Scores into x; the position of the highest, the earlier on ties, its score and the next lower or equal one.

    Without branches: which candidate is ahead cannot be predicted, and a wrong guess costs more than three dots.
    """
    first, highest, second = 0, np.float32(-np.inf), np.float32(-np.inf)
    for k in range(len(candidates)):
        score = dot(w, items[candidates[k]])
        x[k] = score
        second = max(second, min(score, highest))
        first = k if score > highest else first
        highest = max(highest, score)
    return first, highest, second


@kernel
def choose_highest(x: np.ndarray, top: int, uniform: float) -> int:
    wanted = int(uniform * min(top, len(x)))
    for k in range(len(x)):  # the position with exactly ``wanted`` positions ranked before it
        before = 0
        for other in range(len(x)):
            if x[other] > x[k] or (x[other] == x[k] and other < k):
                before += 1
        if before == wanted:
            return k
    return 0


# ----------------------------------------------------------------------------------------------- BNS and the posterior


@chooses(LeastRisk, sweeps=True)
def _least_risk(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    candidates = draws.candidates[example.b, : draws.sizes[example.b]]
    priors = draws.priors[example.b, : len(candidates)]
    if len(candidates) > FEW:
        n_items, slots = len(factors.items), factors.tiled.layout.slots
        sweep(NOTHING, rule.over, example, factors, x)
        _, n = list_sizes(rule.over, n_items, example.stop - example.start)
        x_positive = dot(factors.users[example.user], factors.items[example.positive])
        return candidates[choose_among_many(x[:n_items], slots[candidates], x_positive, n, priors, rule)]
    promising = most_promising(candidates, priors, rule, example, factors, x)
    if sweep(promising, rule.over, example, factors, x):
        return candidates[promising.position]
    x_candidates, true_negative = judge_candidates(candidates, priors, rule, example, factors, x)
    x_positive = dot(factors.users[example.user], factors.items[example.positive])
    return candidates[choose_least_risk(x_candidates, x_positive, true_negative, rule.weight)]


@chooses(LeastRiskBySummary)
def _least_risk_by_summary(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    """Mostly the highest score wins whatever the F of the others; otherwise every candidate is judged."""
    b, size, w = example.b, draws.sizes[example.b], factors.users[example.user]
    best, highest, second = score_candidates(w, factors.items, draws.candidates[b, :size], x)
    if size > 1:
        n_counted, n = list_sizes(rule.over, len(factors.items), example.stop - example.start)
        x_positive, length = dot(w, factors.items[example.positive]), length_of(w)
        count = n_counted - others_above(rule, example.user, highest / length, n_counted)
        F = base_cdf(rule.likelihood, counted_cdf(count, n))
        if not wins_anyway(F, draws.priors[b, best], x_positive, highest, second, rule.weight):
            least = np.inf
            for k in range(size):
                count = n_counted - others_above(rule, example.user, x[k] / length, n_counted)
                true_negative = counted_unbias(rule.likelihood, count, n, draws.priors[b, k])
                value = risk(info(x_positive, x[k]), true_negative, rule.weight)
                if value < least:
                    best, least = k, value
    return draws.candidates[b, best]


@chooses(MostUnbiased, sweeps=True)
def _most_unbiased(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    candidates = draws.candidates[example.b, : draws.sizes[example.b]]
    sweep(NOTHING, rule.over, example, factors, x)
    priors = draws.priors[example.b, : len(candidates)]
    _, true_negative = judge_candidates(candidates, priors, rule, example, factors, x)
    return candidates[choose_most_unbiased(true_negative)]


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


# --------------------------------------------------------------------------------------------------------------- AOBPR


@chooses(AtScoreRank, sweeps=True)
def _at_score_rank(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    n = len(factors.items) - (example.stop - example.start)
    sweep(NOTHING, UNOBSERVED, example, factors, x)
    rank = truncated_rank(draws.uniforms[example.b, 0], rule.scale, n)
    return choose_at_rank(x[: len(factors.items)], factors.tiled.layout.items, rank)


@chooses(AtFactorRank)
def _at_factor_rank(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    if rule.clock[0] % rule.period == 0:
        sort_factors(factors.items, rule.orders, rule.spreads)
    rule.clock[0] += 1
    w, row = factors.users[example.user], indices[example.start : example.stop]
    return choose_at_factor_rank(w, rule.scale, rule.orders, rule.spreads, row, draws.uniforms[example.b])


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
def contains(row: np.ndarray, item: int) -> bool:
    found = np.searchsorted(row, item)
    return bool(found < len(row) and row[found] == item)


# ---------------------------------------------------------------------------------------------------------------- SRNS


@chooses(FromMemory, remembers=True)
def _from_memory(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    b, w = example.b, factors.users[example.user]
    size = 0
    while size < rule.memory.shape[1] and rule.memory[example.user, size] >= 0:
        size += 1
    memory = rule.memory[example.user, :size]
    for k in range(size):
        x[k] = dot(w, factors.items[memory[k]])
    past, past_positive = np.empty((rule.n_past, size), dtype=np.float32), np.empty(rule.n_past, dtype=np.float32)
    for t in range(rule.n_past):
        past_w = rule.past_users[t, example.user]
        past_positive[t] = dot(past_w, rule.past_items[t, example.positive])
        for k in range(size):
            past[t, k] = dot(past_w, rule.past_items[t, memory[k]])
    x_positive = dot(w, factors.items[example.positive])
    chosen = memory[choose_from_memory(x[:size], x_positive, past, past_positive, rule.variance_weight)]
    fresh = np.empty(draws.candidates.shape[1] - rule.memory.shape[1], dtype=np.int32)
    n_fresh = 0
    for k in range(draws.sizes[b]):
        item = draws.candidates[b, k]
        if n_fresh < len(fresh) and not np.any(memory == item):
            fresh[n_fresh] = item
            x[size + n_fresh] = dot(w, factors.items[item])
            n_fresh += 1
    if example.refresh:
        refresh_memory(memory, fresh[:n_fresh], x[: size + n_fresh], rule.temperature, draws.uniforms[b])
    return chosen


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
