"""Every rule of ``kernels/reference/selections.py``, compiled: the negatives of one example with their weights.

A rule writes K items and K weights; a negative that is not there is item −1 with weight 0. A rule of ``choices/``
selects one negative of weight 1. These functions are inlined into entry points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from bayesneg.kernels.numba.choices.base import Example, choose, compiled
from bayesneg.kernels.numba.choices.resampled import resample, resampling_mass
from bayesneg.kernels.numba.compiling import INLINED, entry_point, kernel, lent
from bayesneg.kernels.numba.early_stop import NOTHING, judge_candidates, sweep
from bayesneg.kernels.numba.formulas import counted_unbias, info, list_sizes, risk
from bayesneg.kernels.numba.scoring import TILE, dot, score_candidates
from bayesneg.kernels.numba.summaries import length_of, others_above
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.posterior import LeastRisk, LeastRiskBySummary
from bayesneg.kernels.reference.selections import (
    LeastRisks,
    PosteriorWeights,
    TakeAll,
    TakeSeveralHighest,
    TakeSeveralResampled,
)


class Given(NamedTuple):
    """Negatives that were selected before, as by a custom sampler."""

    items: np.ndarray  # (B, K) int32
    weights: np.ndarray  # (B, K) float64


class CompiledSelection(NamedTuple):
    """What the caller of a compiled selection must know."""

    negatives: int  # K, the negatives of an example
    sweeps: bool  # may score the whole catalogue for one example


def compiled_selection(rule: Any, draws: Draws) -> CompiledSelection:
    """The size of a selection from these draws, and whether it needs the items in tiles."""
    m = draws.candidates.shape[1]
    if isinstance(rule, Given):
        return CompiledSelection(rule.items.shape[1], sweeps=False)
    if isinstance(rule, TakeAll):
        return CompiledSelection(m, sweeps=False)
    if isinstance(rule, TakeSeveralHighest | TakeSeveralResampled):
        return CompiledSelection(rule.negatives, sweeps=False)
    if isinstance(rule, LeastRisks):
        return CompiledSelection(min(rule.negatives, m), compiled(rule.rule).sweeps)
    if isinstance(rule, PosteriorWeights):
        return CompiledSelection(m, compiled(rule.rule).sweeps)
    return CompiledSelection(1, compiled(rule).sweeps)


def select(rule: Any, draws: Any, example: Any, indices: Any, factors: Any, x: Any, items: Any, weights: Any) -> None:
    """Write the items (K,) and weights (K,) that ``rule`` selects, in compiled code; ``x`` is scratch memory."""
    raise TypeError("select is for compiled code; call reference.select_batch from Python")


@overload(select, jit_options=INLINED)
def _select(rule, draws, example, indices, factors, x, items, weights):  # type: ignore[no-untyped-def]
    return _SELECTIONS.get(rule.instance_class, _select_one)


@entry_point
def select_block(rule, users, positives, draws, indptr, indices, factors, items, weights):  # type: ignore[no-untyped-def]
    """The selections (B, K) of a batch on one state of the model."""
    rule, draws, indices, factors = lent(rule), lent(draws), lent(indices), lent(factors)
    x = np.empty(len(factors.items) + draws.candidates.shape[1] + TILE, dtype=np.float32)
    for b in range(len(users)):
        start, stop = indptr[users[b]], indptr[users[b] + 1]
        example = Example(b, users[b], positives[b], start, stop, True)
        if draws.sizes[b] > 0:
            select(rule, draws, example, indices, factors, x, items[b], weights[b])
        else:
            items[b], weights[b] = -1, 0.0


def _select_one(rule, draws, example, indices, factors, x, items, weights):  # type: ignore[no-untyped-def]
    items[0] = choose(rule, draws, example, indices, factors, x)
    weights[0] = 1.0 if items[0] >= 0 else 0.0


def _given(rule, draws, example, indices, factors, x, items, weights):  # type: ignore[no-untyped-def]
    items[:], weights[:] = rule.items[example.b], rule.weights[example.b]


def _take_all(rule, draws, example, indices, factors, x, items, weights):  # type: ignore[no-untyped-def]
    take_candidates(draws, example.b, items)
    for k in range(len(items)):
        weights[k] = 1.0 if items[k] >= 0 else 0.0


def _take_several_highest(rule, draws, example, indices, factors, x, items, weights):  # type: ignore[no-untyped-def]
    b, w = example.b, factors.users[example.user]
    candidates = draws.candidates[b, : draws.sizes[b]]
    for k in range(len(candidates)):
        x[k] = -dot(w, factors.items[candidates[k]])
    best = np.argsort(x[: len(candidates)], kind="mergesort")[: rule.top]
    items[:], weights[:] = -1, 0.0
    for k in range(min(len(items), len(best))):
        other = k + int(draws.uniforms[b, k] * (len(best) - k))
        best[k], best[other] = best[other], best[k]
        items[k], weights[k] = candidates[best[k]], 1.0


def _take_several_resampled(rule, draws, example, indices, factors, x, items, weights):  # type: ignore[no-untyped-def]
    b = example.b
    candidates = draws.candidates[b, : draws.sizes[b]]
    score_candidates(factors.users[example.user], factors.items, candidates, x)
    mass = resampling_mass(rule, x, candidates)
    for k in range(len(items)):
        items[k], weights[k] = candidates[resample(mass, draws.uniforms[b, k])], 1.0


def _least_risks(rule, draws, example, indices, factors, x, items, weights):  # type: ignore[no-untyped-def]
    candidates = draws.candidates[example.b, : draws.sizes[example.b]]
    x_candidates, risks = judge(rule.rule, draws, example, factors, x)
    x_positive = dot(factors.users[example.user], factors.items[example.positive])
    for k in range(len(risks)):
        risks[k] = risk(info(x_positive, x_candidates[k]), risks[k], rule.rule.weight)
    order = np.argsort(risks, kind="mergesort")
    items[:], weights[:] = -1, 0.0
    for k in range(min(len(items), len(order))):
        items[k], weights[k] = candidates[order[k]], 1.0


def _posterior_weights(rule, draws, example, indices, factors, x, items, weights):  # type: ignore[no-untyped-def]
    _, true_negative = judge(rule.rule, draws, example, factors, x)
    take_candidates(draws, example.b, items)
    weights[:] = 0.0
    for k in range(len(true_negative)):
        weights[k] = weight_of(true_negative[k], rule.rule.weight, rule.ramp)


_SELECTIONS: dict[type, Callable[..., Any]] = {
    Given: _given,
    TakeAll: _take_all,
    TakeSeveralHighest: _take_several_highest,
    TakeSeveralResampled: _take_several_resampled,
    LeastRisks: _least_risks,
    PosteriorWeights: _posterior_weights,
}


@kernel
def take_candidates(draws, b, items):  # type: ignore[no-untyped-def]
    for k in range(len(items)):
        items[k] = draws.candidates[b, k] if k < draws.sizes[b] else -1


@kernel
def weight_of(unbias: float, weight: float, ramp: bool) -> float:
    if not ramp:
        return unbias
    return min(max((1.0 + weight) * unbias - 1.0, 0.0), weight) / weight


# ----------------------------------------------------------------------- scores and unbias of an example's candidates


def judge(rule: Any, draws: Any, example: Any, factors: Any, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """The candidates' scores (m,) and their unbias (m,), in compiled code."""
    raise TypeError("judge is for compiled code; call reference.judged from Python")


def _judge_by_list(rule, draws, example, factors, x):  # type: ignore[no-untyped-def]
    candidates = draws.candidates[example.b, : draws.sizes[example.b]]
    priors = draws.priors[example.b, : len(candidates)]
    sweep(NOTHING, rule.over, example, factors, x)
    return judge_candidates(candidates, priors, rule, example, factors, x)


def _judge_by_summary(rule, draws, example, factors, x):  # type: ignore[no-untyped-def]
    b, size, w = example.b, draws.sizes[example.b], factors.users[example.user]
    n_counted, n = list_sizes(rule.over, len(factors.items), example.stop - example.start)
    length, true_negative = length_of(w), np.empty(size, dtype=np.float64)
    for k in range(size):
        x[k] = dot(w, factors.items[draws.candidates[b, k]])
        count = n_counted - others_above(rule, example.user, x[k] / length, n_counted)
        true_negative[k] = counted_unbias(rule.likelihood, count, n, draws.priors[b, k])
    return x[:size], true_negative


_JUDGES: dict[type, Callable[..., Any]] = {LeastRisk: _judge_by_list, LeastRiskBySummary: _judge_by_summary}


@overload(judge, jit_options=INLINED)
def _judge(rule, draws, example, factors, x):  # type: ignore[no-untyped-def]
    return _JUDGES[rule.instance_class]
