"""The rules of BNS and the posterior, compiled."""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.binning import choose_among_many
from bayesneg.kernels.numba.choices.base import chooses
from bayesneg.kernels.numba.compiling import kernel
from bayesneg.kernels.numba.early_stop import FEW, NOTHING, judge_candidates, most_promising, sweep, wins_anyway
from bayesneg.kernels.numba.formulas import base_cdf, counted_cdf, counted_unbias, info, list_sizes, risk
from bayesneg.kernels.numba.scoring import dot, score_candidates
from bayesneg.kernels.numba.summaries import length_of, others_above
from bayesneg.kernels.reference.choices.posterior import LeastRisk, LeastRiskBySummary, MostUnbiased


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
