"""The losses of ``kernels/reference/losses.py``, compiled: one example at a time.

A loss reads the score of the positive and those of K negatives, writes its derivatives by the negatives' scores into
``by_negatives`` (K,), and returns its value and its derivative by the positive's score. ``log_q`` (K,) is empty where
the draw is uniform; ``threshold`` is read by losses that ask for it. A loss is found by the type of its form; entry
points that train take any of them as ``AnyLoss``, so that they are compiled once for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from bayesneg.kernels.numba.compiling import INLINED, entry_point, kernel
from bayesneg.kernels.reference.losses import (
    LEAST,
    CosineHinges,
    DebiasedSoftmax,
    LossForm,
    PairwiseLogistic,
    PairwiseSurrogate,
    PointwiseLogistic,
    SampledSoftmax,
    ThresholdedSoftmax,
)

_LOSSES: dict[type, Callable[..., Any]] = {}


def _evaluates(form: type) -> Callable[[Any], Any]:
    """Register the decorated function as the compiled evaluation of a form."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _LOSSES[form] = function
        return function

    return register


def evaluate(
    form: Any, positive: Any, negatives: Any, weights: Any, log_q: Any, threshold: Any, by_negatives: Any
) -> tuple[float, float]:
    """The loss of one example and its derivative by the positive's score, in compiled code."""
    raise TypeError("this evaluate is for compiled code; call form.evaluate from Python")


@overload(evaluate, jit_options=INLINED)
def _evaluate(form, positive, negatives, weights, log_q, threshold, by_negatives):  # type: ignore[no-untyped-def]
    return _LOSSES[form.instance_class]


class AnyLoss(NamedTuple):
    """A built-in loss by number, for compiled code that serves them all."""

    kind: int  # the position in FORMS
    numbers: tuple[float, float, float, float]  # the fields of the form, as ``any_loss`` orders them


def any_loss(form: LossForm) -> AnyLoss:
    """The loss by number.

    >>> any_loss(CosineHinges(0.8, 150.0))
    AnyLoss(kind=2, numbers=(0.8, 150.0, 0.0, 0.0))
    """
    fields = (*form.softmax, form.weight_temperature) if isinstance(form, ThresholdedSoftmax) else tuple(form)  # type: ignore[arg-type]
    a, b, c, d = (*(float(field) for field in fields), 0.0, 0.0, 0.0, 0.0)[:4]
    return AnyLoss(FORMS.index(type(form)), (a, b, c, d))


@njit(nogil=True, error_model="numpy")
def evaluate_any(loss, positive, negatives, weights, log_q, threshold, by_negatives):  # type: ignore[no-untyped-def]
    """As ``evaluate``, for a loss by number."""
    a, b, c, d = loss.numbers
    if loss.kind == 0:
        return evaluate(PairwiseLogistic(), positive, negatives, weights, log_q, threshold, by_negatives)
    if loss.kind == 1:
        return evaluate(PointwiseLogistic(), positive, negatives, weights, log_q, threshold, by_negatives)
    if loss.kind == 2:
        return evaluate(CosineHinges(a, b), positive, negatives, weights, log_q, threshold, by_negatives)
    if loss.kind == 3:
        form = SampledSoftmax(a, b, c > 0.0)
        return evaluate(form, positive, negatives, weights, log_q, threshold, by_negatives)
    if loss.kind == 4:
        thresholded = ThresholdedSoftmax(SampledSoftmax(a, b, c > 0.0), d)
        return evaluate(thresholded, positive, negatives, weights, log_q, threshold, by_negatives)
    if loss.kind == 5:
        return evaluate(PairwiseSurrogate(a, int(b)), positive, negatives, weights, log_q, threshold, by_negatives)
    return evaluate(DebiasedSoftmax(a, b, c), positive, negatives, weights, log_q, threshold, by_negatives)


@entry_point
def evaluate_block(  # type: ignore[no-untyped-def]
    loss, positive, negatives, weights, log_q, threshold, value, by_positive, by_negatives
):
    """The losses of B examples: scores (B,), (B, K), weights (B, K), log_q (B, K) or (B, 0), threshold (B,)."""
    for b in range(len(positive)):
        value[b], by_positive[b] = evaluate_any(
            loss, positive[b], negatives[b], weights[b], log_q[b], threshold[b], by_negatives[b]
        )


# --------------------------------------------------------------------------------- means over weighted negatives


@_evaluates(PairwiseLogistic)
def _pairwise_logistic(form, positive, negatives, weights, log_q, threshold, by_negatives):  # type: ignore[no-untyped-def]
    per_weight = share_of_1(weights)
    value, by_positive = 0.0, 0.0
    for k in range(len(negatives)):
        share = weights[k] * per_weight
        loss, slope = softplus(negatives[k] - positive)
        value += share * loss
        by_negatives[k] = share * slope
        by_positive -= share * slope
    return value, by_positive


@_evaluates(PointwiseLogistic)
def _pointwise_logistic(form, positive, negatives, weights, log_q, threshold, by_negatives):  # type: ignore[no-untyped-def]
    per_weight = share_of_1(weights)
    value, slope = softplus(-positive)
    if per_weight == 0.0:
        value, slope = 0.0, 0.0
    by_positive = -slope
    for k in range(len(negatives)):
        share = weights[k] * per_weight
        loss, slope = softplus(negatives[k])
        value += share * loss
        by_negatives[k] = share * slope
    return value, by_positive


@_evaluates(CosineHinges)
def _cosine_hinges(form, positive, negatives, weights, log_q, threshold, by_negatives):  # type: ignore[no-untyped-def]
    per_weight = form.negative_weight * share_of_1(weights)
    pulled = per_weight > 0.0 and positive < 1.0
    value, by_positive = (1.0 - positive, -1.0) if pulled else (0.0, 0.0)
    for k in range(len(negatives)):
        above = negatives[k] - form.margin
        by_negatives[k] = weights[k] * per_weight if above > 0.0 else 0.0
        value += by_negatives[k] * above
    return value, by_positive


# ------------------------------------------------------------------------------------------ softmax and its kin


@_evaluates(SampledSoftmax)
def _sampled_softmax(form, positive, negatives, weights, log_q, threshold, by_negatives):  # type: ignore[no-untyped-def]
    per_tau = 1.0 / form.temperature
    highest = -np.inf
    for k in range(len(negatives)):
        by_negatives[k] = negatives[k] * per_tau - (log_q[k] if len(log_q) > 0 else 0.0)
        if weights[k] > 0.0:
            highest = max(highest, by_negatives[k])
    if highest == -np.inf:
        by_negatives[:] = 0.0
        return 0.0, 0.0
    own = 0.0
    if form.include_positive:
        highest = max(highest, positive * per_tau)
        own = np.exp(positive * per_tau - highest)
    total = own + powers(by_negatives, weights, highest)
    slope = form.negative_weight * per_tau / total
    for k in range(len(negatives)):
        by_negatives[k] *= slope
    return form.negative_weight * (np.log(total) + highest) - positive * per_tau, own * slope - per_tau


@_evaluates(ThresholdedSoftmax)
def _thresholded_softmax(form, positive, negatives, weights, log_q, threshold, by_negatives):  # type: ignore[no-untyped-def]
    value, by_positive = evaluate(form.softmax, positive, negatives, weights, log_q, threshold, by_negatives)
    _, weight = softplus((positive - threshold) / form.weight_temperature)
    for k in range(len(negatives)):
        by_negatives[k] *= weight
    return weight * value, weight * by_positive + value * weight * (1.0 - weight) / form.weight_temperature


@_evaluates(PairwiseSurrogate)
def _pairwise_surrogate(form, positive, negatives, weights, log_q, threshold, by_negatives):  # type: ignore[no-untyped-def]
    per_tau = 1.0 / form.temperature
    highest = -np.inf
    for k in range(len(negatives)):
        g, _ = surrogate(form.surrogate, negatives[k] - positive)
        by_negatives[k] = np.log(max(g, LEAST)) * per_tau - (log_q[k] if len(log_q) > 0 else 0.0)
        if weights[k] > 0.0:
            highest = max(highest, by_negatives[k])
    if highest == -np.inf:
        by_negatives[:] = 0.0
        return 0.0, 0.0
    total = powers(by_negatives, weights, highest)
    by_positive = 0.0
    for k in range(len(negatives)):
        g, slope = surrogate(form.surrogate, negatives[k] - positive)
        by_negatives[k] *= slope / g * per_tau / total if g > LEAST else 0.0
        by_positive -= by_negatives[k]
    return np.log(total) + highest, by_positive


@_evaluates(DebiasedSoftmax)
def _debiased_softmax(form, positive, negatives, weights, log_q, threshold, by_negatives):  # type: ignore[no-untyped-def]
    per_tau, rate, beta = 1.0 / form.temperature, form.positive_rate, form.hardness
    highest, n = -np.inf, 0
    for k in range(len(negatives)):
        if weights[k] > 0.0:
            highest = max(highest, negatives[k] * per_tau)
            n += 1
    if n == 0:
        by_negatives[:] = 0.0
        return 0.0, 0.0
    tilted, tilt = 0.0, 0.0  # divided by exp((1 + β) · highest) and exp(β · highest)
    for k in range(len(negatives)):
        by_negatives[k] = 0.0
        if weights[k] > 0.0:
            z = negatives[k] * per_tau - highest
            mass = weights[k] * np.exp(beta * z - (log_q[k] if len(log_q) > 0 else 0.0))
            by_negatives[k] = mass
            tilt += mass
            tilted += mass * np.exp(z)
    shift = max(positive * per_tau, np.log(tilted / tilt) + highest, -per_tau)  # of the powers below
    mean, own, floor = (
        tilted / tilt * np.exp(highest - shift),
        np.exp(positive * per_tau - shift),
        np.exp(-per_tau - shift),
    )
    debiased = (mean - rate * own) / (1.0 - rate)
    total = own + n * max(debiased, floor)
    outer = n / (total * (1.0 - rate)) if debiased > floor else 0.0
    for k in range(len(negatives)):
        if weights[k] > 0.0:
            chance = by_negatives[k] * np.exp(negatives[k] * per_tau - highest) / tilted
            by_negatives[k] = outer * mean * per_tau * ((1.0 + beta) * chance - beta * by_negatives[k] / tilt)
    return np.log(total) + (shift - positive * per_tau), (own / total - 1.0 - outer * rate * own) * per_tau


FORMS: tuple[type, ...] = tuple(_LOSSES)

# ---------------------------------------------------------------------------------------------------------- shared


@kernel
def share_of_1(weights: np.ndarray) -> float:
    """1 / Σ_k ω_k, 0 for an example without a negative that counts."""
    total = 0.0
    for weight in weights:
        total += weight
    return 1.0 / total if total > 0.0 else 0.0


@kernel
def powers(logits: np.ndarray, weights: np.ndarray, highest: float) -> float:
    """Replace each logit z_k by ω_k · exp(z_k − highest), 0 where the weight is 0; returns their sum."""
    total = 0.0
    for k in range(len(logits)):
        logits[k] = weights[k] * np.exp(logits[k] - highest) if weights[k] > 0.0 else 0.0
        total += logits[k]
    return total


@kernel
def softplus(x: float) -> tuple[float, float]:
    """log(1 + exp(x)) and its derivative σ(x), without overflow."""
    power = np.exp(-np.abs(x))
    return max(x, 0.0) + np.log1p(power), (1.0 if x >= 0.0 else power) / (1.0 + power)


@kernel
def surrogate(kind: int, d: float) -> tuple[float, float]:
    """g(d) and its derivative, by the position in ``SURROGATES``."""
    if kind == 0:
        return (d + 1.0, 1.0) if d > -1.0 else (0.0, 0.0)
    if kind == 1:
        return np.tanh(d) + 1.0, 1.0 - np.tanh(d) ** 2
    return np.arctan(d) + 1.0, 1.0 / (1.0 + d * d)
