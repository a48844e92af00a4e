"""A block of per-example SGD with the choice of the negative inside, compiled once per kind of rule.

``train_block``, ``learn_given`` and ``choose_block`` are the entry points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from bayesneg.kernels.numba.binning import choose_among_many, choose_at_rank
from bayesneg.kernels.numba.choices import (
    FEW,
    choose_at_factor_rank,
    choose_from_memory,
    choose_highest,
    choose_least_risk,
    choose_most_unbiased,
    counted_cdf,
    info,
    list_sizes,
    refresh_memory,
    risk,
    sort_factors,
    truncated_rank,
)
from bayesneg.kernels.numba.compiling import DIGEST, INLINED, entry_point, kernel, lent, reordering_kernel
from bayesneg.kernels.numba.early_stop import NOTHING, judge_candidates, most_promising, sweep
from bayesneg.kernels.numba.likelihoods import base_cdf, counted_unbias
from bayesneg.kernels.numba.scoring import TILE, Mirror, dot, update_mirror
from bayesneg.kernels.numba.summaries import items_above, length_of
from bayesneg.kernels.rules import (
    UNOBSERVED,
    AtFactorRank,
    AtScoreRank,
    FromMemory,
    LeastRisk,
    LeastRiskBySummary,
    MostUnbiased,
    TakeFirst,
    TakeHighest,
)


class Factors(NamedTuple):
    users: np.ndarray  # (n_users, d) float32
    items: np.ndarray  # (n_items, d) float32
    mirror: Mirror  # the items again, where the rule sweeps them


class Pace(NamedTuple):
    """How a step is taken."""

    learning_rate: float
    regularization: float
    simultaneous: bool  # items move along the old user vector, otherwise along the one just updated
    ensemble_size: int  # equal parts of the factors that each learn from their own error


class Example(NamedTuple):
    """Which example of the block a choice is for, and room to work in."""

    b: int
    user: int
    positive: int
    start: int  # the user's items are indices[start:stop]
    stop: int
    refresh: bool  # whether a rule with a memory renews it after this choice


# ------------------------------------------------------------------------------------------ one choice, by rule


def choose(rule: Any, draws: Any, example: Any, indices: Any, factors: Any, x: Any) -> int:
    """The item that ``rule`` picks; compiled code finds the implementation by the rule's type. ``x`` is scratch."""
    raise TypeError("choose is for compiled code; call reference.choose_batch from Python")


def _take_first(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    return draws.candidates[example.b, rule.position]


def _take_highest(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    b, size = example.b, draws.sizes[example.b]
    first, _, _ = score_candidates(factors.users[example.user], factors.items, draws.candidates[b, :size], x)
    if rule.top == 1:
        return draws.candidates[b, first]
    return draws.candidates[b, choose_highest(x[:size], rule.top, draws.uniforms[b, 0])]


def _least_risk(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    candidates = draws.candidates[example.b, : draws.sizes[example.b]]
    priors = draws.priors[example.b, : len(candidates)]
    if len(candidates) > FEW:
        n_items, places = len(factors.items), factors.mirror.places.of_items
        sweep(NOTHING, rule.over, example, factors, x)
        _, n = list_sizes(rule.over, n_items, example.stop - example.start)
        x_positive = dot(factors.users[example.user], factors.items[example.positive])
        return candidates[choose_among_many(x[:n_items], places[candidates], x_positive, n, priors, rule)]
    promising = most_promising(candidates, priors, rule, example, factors, x)
    if sweep(promising, rule.over, example, factors, x):
        return candidates[promising.position]
    x_candidates, true_negative = judge_candidates(candidates, priors, rule, example, factors, x)
    x_positive = dot(factors.users[example.user], factors.items[example.positive])
    return candidates[choose_least_risk(x_candidates, x_positive, true_negative, rule.weight)]


def _least_risk_by_summary(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    """Mostly the highest score wins whatever the F of the others; only where that is open all are judged."""
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


def _most_unbiased(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    candidates = draws.candidates[example.b, : draws.sizes[example.b]]
    sweep(NOTHING, rule.over, example, factors, x)
    priors = draws.priors[example.b, : len(candidates)]
    _, true_negative = judge_candidates(candidates, priors, rule, example, factors, x)
    return candidates[choose_most_unbiased(true_negative)]


def _at_score_rank(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    n = len(factors.items) - (example.stop - example.start)
    sweep(NOTHING, UNOBSERVED, example, factors, x)
    rank = truncated_rank(draws.uniforms[example.b, 0], rule.scale, n)
    return choose_at_rank(x[: len(factors.items)], factors.mirror.places.items, rank)


def _at_factor_rank(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    if rule.clock[0] % rule.period == 0:
        sort_factors(factors.items, rule.orders, rule.spreads)
    rule.clock[0] += 1
    w, row = factors.users[example.user], indices[example.start : example.stop]
    return choose_at_factor_rank(w, rule.scale, rule.orders, rule.spreads, row, draws.uniforms[example.b])


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


_CHOICES: dict[type, Callable[..., int]] = {
    TakeFirst: _take_first,
    TakeHighest: _take_highest,
    LeastRisk: _least_risk,
    LeastRiskBySummary: _least_risk_by_summary,
    MostUnbiased: _most_unbiased,
    AtScoreRank: _at_score_rank,
    AtFactorRank: _at_factor_rank,
    FromMemory: _from_memory,
}
SWEEPING = (LeastRisk, MostUnbiased, AtScoreRank)  # rules that may look at the whole catalogue for each example


@overload(choose, jit_options=INLINED)
def _choose(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    return _CHOICES[rule.instance_class]


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


# ------------------------------------------------------------------------------------------------ F from a summary


@kernel
def others_above(rule, user, z, n):  # type: ignore[no-untyped-def]
    """How many of the n items stand above one of them, by the user's summary."""
    return min(items_above(rule.knots[user], rule.ranks, z), n - 1.0)


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


# ---------------------------------------------------------------------------------------------------------- training


@kernel
def step(w: np.ndarray, h_i: np.ndarray, h_j: np.ndarray, pace: Pace) -> np.float32:
    """One ascent step of every member, each on its own factors; returns 1 − σ(x_i − x_j) of all before the step."""
    size = len(w) // pace.ensemble_size
    x = np.float32(0.0)
    for start in range(0, len(w), size):
        own = slice(start, start + size)
        x += member_step(w[own], h_i[own], h_j[own], pace)
    return np.float32(1.0 / (1.0 + np.exp(np.float64(x))))


@reordering_kernel
def member_step(w: np.ndarray, h_i: np.ndarray, h_j: np.ndarray, pace: Pace) -> np.float32:
    """One ascent step on ln σ(ensemble_size · (x_i − x_j)) − reg/2 · |·|²; returns x_i − x_j before the step."""
    x = np.float32(0.0)
    for f in range(len(w)):
        x += w[f] * (h_i[f] - h_j[f])
    gradient = np.float32(1.0 / (1.0 + np.exp(pace.ensemble_size * np.float64(x))))
    rate, decay = np.float32(pace.learning_rate), np.float32(pace.regularization)
    for f in range(len(w)):
        old, hi, hj = w[f], h_i[f], h_j[f]
        new = old + rate * (gradient * (hi - hj) - decay * old)
        along = old if pace.simultaneous else new
        w[f] = new
        h_i[f] = hi + rate * (gradient * along - decay * hi)
        h_j[f] = hj - rate * (gradient * along + decay * hj)
    return x


def _entry_points(digest: int) -> tuple[Callable[..., None], Callable[..., None], Callable[..., None]]:
    @entry_point
    def train_block(  # type: ignore[no-untyped-def]
        rule, users, positives, draws, indptr, indices, factors, pace, negatives, infos
    ):
        """Choose and learn, example after example; ``negatives`` and ``infos`` (B,) say what was chosen."""
        rule, draws, indices, factors = lent(rule), lent(draws), lent(indices), lent(factors)
        sweeping = len(factors.mirror.tiles) > 0
        x = np.empty(len(factors.items) + draws.candidates.shape[1] + TILE + digest * 0, dtype=np.float32)
        for b in range(len(users)):
            user, i = users[b], positives[b]
            negatives[b], infos[b] = -1, 0.0
            if draws.sizes[b] == 0:
                continue
            example = Example(b, user, i, indptr[user], indptr[user + 1], True)
            j = choose(rule, draws, example, indices, factors, x)
            if j < 0:
                continue
            negatives[b] = j
            infos[b] = step(factors.users[user], factors.items[i], factors.items[j], pace)
            if sweeping:
                update_mirror(factors.mirror, i, factors.items[i])
                update_mirror(factors.mirror, j, factors.items[j])

    @entry_point
    def learn_given(users, positives, negatives, factors, pace, infos):  # type: ignore[no-untyped-def]
        """The same steps for negatives (B,) that somebody else chose; −1 is skipped."""
        factors = lent(factors)
        for b in range(len(users) + digest * 0):
            infos[b] = 0.0
            if negatives[b] >= 0:
                w, h_i, h_j = factors.users[users[b]], factors.items[positives[b]], factors.items[negatives[b]]
                infos[b] = step(w, h_i, h_j, pace)

    @entry_point
    def choose_block(rule, users, positives, draws, firsts, indptr, indices, factors, negatives):  # type: ignore[no-untyped-def]
        """The choices of a whole batch on one state of the model, for a learner that takes its steps elsewhere.

        ``firsts`` are the examples that renew their user's memory once all have chosen; empty without a memory.
        """
        rule, draws, indices, factors = lent(rule), lent(draws), lent(indices), lent(factors)
        x = np.empty(len(factors.items) + draws.candidates.shape[1] + TILE + digest * 0, dtype=np.float32)
        for b in range(len(users)):
            negatives[b] = -1
            if draws.sizes[b] > 0:
                start, stop = indptr[users[b]], indptr[users[b] + 1]
                example = Example(b, users[b], positives[b], start, stop, False)
                negatives[b] = choose(rule, draws, example, indices, factors, x)
        for b in firsts:
            if draws.sizes[b] > 0:
                start, stop = indptr[users[b]], indptr[users[b] + 1]
                choose(rule, draws, Example(b, users[b], positives[b], start, stop, True), indices, factors, x)

    return train_block, learn_given, choose_block


train_block, learn_given, choose_block = _entry_points(DIGEST)
