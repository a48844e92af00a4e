"""Every loss of ``kernels/reference/losses.py`` in torch: values and gradients by score, on any device.

The gradients are written out, so that no graph over (B, K) scores is kept; ``bayesneg.torch.losses`` makes a loss part
of an autograd graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from bayesneg.kernels.reference.losses import (
    LEAST,
    SURROGATES,
    CosineHinges,
    DebiasedSoftmax,
    LossForm,
    LossValues,
    PairwiseLogistic,
    PairwiseSurrogate,
    PointwiseLogistic,
    SampledSoftmax,
    Scores,
    ThresholdedSoftmax,
)

MANY = 1 << 16  # scores from which on compiled code is faster than a pass over memory for each operation
_EVALUATIONS: dict[type, Callable[[Any, Scores], LossValues]] = {}


def evaluates(form: type) -> Callable[[Any], Any]:
    """Register the decorated function as the torch execution of a loss."""

    def register(function: Callable[[Any, Scores], LossValues]) -> Callable[[Any, Scores], LossValues]:
        _EVALUATIONS[form] = function
        return function

    return register


def evaluate(form: LossForm, scores: Scores) -> LossValues:
    """The loss (B,) and its gradients by the scores of positives (B,) and negatives (B, K)."""
    with torch.no_grad():
        return _EVALUATIONS[type(form)](form, scores)


@evaluates(PairwiseLogistic)
def _pairwise_logistic(form: PairwiseLogistic, scores: Scores) -> LossValues:
    share = _shares(scores.weights)
    gaps = scores.negatives - scores.positive[:, None]
    by_negatives = share * torch.sigmoid(gaps)
    return LossValues((share * softplus(gaps)).sum(dim=1), -by_negatives.sum(dim=1), by_negatives)


@evaluates(PointwiseLogistic)
def _pointwise_logistic(form: PointwiseLogistic, scores: Scores) -> LossValues:
    share, counts = _shares(scores.weights), _counted(scores)
    value = counts * softplus(-scores.positive) + (share * softplus(scores.negatives)).sum(dim=1)
    return LossValues(value, -counts * torch.sigmoid(-scores.positive), share * torch.sigmoid(scores.negatives))


@evaluates(CosineHinges)
def _cosine_hinges(form: CosineHinges, scores: Scores) -> LossValues:
    share, counts = form.negative_weight * _shares(scores.weights), _counted(scores)
    above = (scores.negatives - form.margin).clamp(min=0)
    value = counts * (1 - scores.positive).clamp(min=0) + (share * above).sum(dim=1)
    return LossValues(value, -counts * (scores.positive < 1), share * (above > 0))


@evaluates(SampledSoftmax)
def _sampled_softmax(form: SampledSoftmax, scores: Scores) -> LossValues:
    if _suits_compiled_code(scores):
        return _softmax_by_compiled_code(form, scores)
    tau, b, counts = form.temperature, form.negative_weight, _counted(scores)
    z_i = scores.positive / tau
    total, chances = _log_sum_exp(_logits(scores, 1 / tau), z_i if form.include_positive else None)
    by_positive = torch.full_like(z_i, -1 / tau)
    if form.include_positive:
        by_positive += (b / tau) * torch.exp(z_i - total)
    value = torch.where(counts > 0, b * total - z_i, 0)
    return LossValues(value, counts * by_positive, chances.mul_((counts * (b / tau))[:, None]))


def _suits_compiled_code(scores: Scores) -> bool:
    """Whether the scores are many, in host memory and in single precision."""
    if scores.negatives.device.type != "cpu" or scores.negatives.numel() < MANY or torch.compiler.is_compiling():
        return False
    given = [part for part in scores[:4] if part is not None]
    return all(part.dtype == torch.float32 for part in given) and (scores.log_q is None or scores.log_q.ndim == 1)


def _softmax_by_compiled_code(form: SampledSoftmax, scores: Scores) -> LossValues:
    from bayesneg.kernels.numba.pools.softmax import softmax_of_rows

    arrays = Scores(*(None if part is None else part.detach().contiguous().numpy() for part in scores[:4]))
    found = softmax_of_rows(form, arrays, threads=torch.get_num_threads())
    return LossValues(*(torch.from_numpy(part) for part in found))


@evaluates(ThresholdedSoftmax)
def _thresholded_softmax(form: ThresholdedSoftmax, scores: Scores) -> LossValues:
    value, by_positive, by_negatives = _sampled_softmax(form.softmax, scores)
    weight = torch.sigmoid((scores.positive - scores.threshold) / form.weight_temperature)
    slope = weight * (1 - weight) / form.weight_temperature
    return LossValues(weight * value, weight * by_positive + slope * value, by_negatives.mul_(weight[:, None]))


@evaluates(PairwiseSurrogate)
def _pairwise_surrogate(form: PairwiseSurrogate, scores: Scores) -> LossValues:
    tau, counts = form.temperature, _counted(scores)
    g, slope = _surrogate(form.surrogate, scores.negatives - scores.positive[:, None])
    bounded = g.clamp(min=LEAST)
    total, chances = _log_sum_exp(bounded.log() / tau + _log_weights(scores), None)
    by_negatives = chances * torch.where(g > LEAST, slope / bounded, 0) * (counts / tau)[:, None]
    return LossValues(torch.where(counts > 0, total, 0), -by_negatives.sum(dim=1), by_negatives)


@evaluates(DebiasedSoftmax)
def _debiased_softmax(form: DebiasedSoftmax, scores: Scores) -> LossValues:
    tau, rate, beta, counts = form.temperature, form.positive_rate, form.hardness, _counted(scores)
    z_i, n = scores.positive / tau, (scores.weights > 0).sum(dim=1).clamp(min=1)
    tilted, chances = _log_sum_exp(_logits(scores, (1 + beta) / tau), None)
    tilt, tilts = _log_sum_exp(_logits(scores, beta / tau), None)
    log_mean = torch.where(counts > 0, tilted - tilt, 0)  # log E
    highest = torch.maximum(z_i, log_mean).clamp(min=-1 / tau)  # every power below is divided by exp(highest)
    power, mean, floor = (z_i - highest).exp(), (log_mean - highest).exp(), (-1 / tau - highest).exp()
    debiased = (mean - rate * power) / (1 - rate)
    total = power + n * torch.maximum(debiased, floor)
    outer = torch.where(debiased > floor, n / (total * (1 - rate)), 0)
    by_negatives = (counts * outer * mean / tau)[:, None] * ((1 + beta) * chances - beta * tilts)
    by_positive = counts * (power / total - outer * rate * power - 1) / tau
    return LossValues(counts * (total.log() + (highest - z_i)), by_positive, by_negatives)


# ---------------------------------------------------------------------------------------------------------- shared


def _surrogate(kind: int, d: Tensor) -> tuple[Tensor, Tensor]:
    """g(d) and its derivative."""
    if SURROGATES[kind] == "relu":
        return (d + 1).clamp(min=0), (d > -1).to(d.dtype)
    if SURROGATES[kind] == "tanh":
        return d.tanh() + 1, 1 - d.tanh() ** 2
    return d.atan() + 1, 1 / (1 + d * d)


def effective_weights(items: Tensor, weights: Tensor | None, n_examples: int) -> Tensor:
    """How much each negative counts, (B, K) or (B, N): 0 where there is no item, whatever its weight.

    Args:
        items: Item numbers (B, K), or (N,), a pool that all examples share; −1 is no item.
        weights: The given weights; None stands for 1 everywhere.
        n_examples: The number B of examples.
    """
    there = (items >= 0).expand(n_examples, items.shape[-1])
    return there.float() if weights is None else weights.masked_fill(~there, 0)


def counted(weights: Tensor) -> Tensor:
    """1 (B,) for an example with a negative that counts, otherwise 0, in the type of the weights (B, K)."""
    return (weights.amax(dim=1) > 0).to(weights.dtype)


def _counted(scores: Scores) -> Tensor:
    return counted(scores.weights).to(scores.positive.dtype)


def _shares(weights: Tensor) -> Tensor:
    total = weights.sum(dim=1, keepdim=True)
    return weights / torch.where(total > 0, total, 1)


def _log_weights(scores: Scores) -> Tensor:
    found = scores.weights.log()
    return found if scores.log_q is None else found - scores.log_q


def _logits(scores: Scores, scale: float) -> Tensor:
    """scale · s_k + log ω_k − log q_k, in new memory."""
    return torch.add(_log_weights(scores), scores.negatives, alpha=scale)


def _log_sum_exp(logits: Tensor, also: Tensor | None) -> tuple[Tensor, Tensor]:
    """log Σ_k exp(z_k), with one more term ``also`` (B,), and the softmax (B, K), which takes the memory of the logits.

    −∞ and 0 for a row of −∞.
    """
    highest = logits.amax(dim=1)
    if also is not None:
        highest = torch.maximum(highest, also)
    highest = torch.where(highest > -torch.inf, highest, 0)
    powers = logits.sub_(highest[:, None]).exp_()
    total = powers.sum(dim=1)
    if also is not None:
        total = total + (also - highest).exp()
    return total.log() + highest, powers.mul_(torch.where(total > 0, 1 / total, 0)[:, None])
