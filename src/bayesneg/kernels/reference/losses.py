"""Every built-in loss with its gradient, in NumPy: a function of scores.

Notation: s_i is the score of the positive, s_k those of the negatives, d_k = s_k − s_i, ω_k the weight of a negative
and q_k how often it is drawn, 1 if uniformly. A negative of weight 0 does not count, and an example without one that
counts has loss and gradients 0. A loss is a plain tuple of numbers, which numba and torch execute too.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

LEAST = 1e-12  # lower bound on a surrogate before its logarithm


class Scores(NamedTuple):
    """The scores of B examples and what goes with them; arrays of NumPy or torch.

    Args:
        positive: Scores of the positives, (B,).
        negatives: Scores of the negatives, (B, K).
        weights: Weights of the negatives, (B, K); 0 where a negative does not count.
        log_q: Log of how often each negative is drawn against a uniform draw, (K,) or (B, K); None is 0.
        threshold: The user's K-th highest score, (B,), for losses that ask for it.
    """

    positive: Any
    negatives: Any
    weights: Any
    log_q: Any = None
    threshold: Any = None


class LossValues(NamedTuple):
    """The loss of B examples and its derivatives by the scores.

    Args:
        value: The loss of each example, (B,).
        by_positive: Its derivative by the score of the positive, (B,).
        by_negatives: Its derivatives by the scores of the negatives, (B, K).
    """

    value: Any
    by_positive: Any
    by_negatives: Any


class LossForm(Protocol):
    """A loss as plain numbers; every implementation is a ``NamedTuple``."""

    def evaluate(self, scores: Scores) -> LossValues:
        """The specification: values and gradients of a batch."""
        ...


# --------------------------------------------------------------------------------- means over weighted negatives


class PairwiseLogistic(NamedTuple):
    """BPR: Σ_k ω_k · softplus(d_k) / Σ_k ω_k."""

    def evaluate(self, scores: Scores) -> LossValues:
        share = shares(scores.weights)
        gaps = scores.negatives - scores.positive[:, None]
        by_negatives = share * sigmoid(gaps)
        return LossValues((share * softplus(gaps)).sum(axis=1), -by_negatives.sum(axis=1), by_negatives)


class PointwiseLogistic(NamedTuple):
    """softplus(−s_i) + Σ_k ω_k · softplus(s_k) / Σ_k ω_k."""

    def evaluate(self, scores: Scores) -> LossValues:
        share, counts = shares(scores.weights), counted(scores.weights)
        value = counts * softplus(-scores.positive) + (share * softplus(scores.negatives)).sum(axis=1)
        return LossValues(value, -counts * sigmoid(-scores.positive), share * sigmoid(scores.negatives))


class CosineHinges(NamedTuple):
    """CCL: relu(1 − s_i) + w · Σ_k ω_k · relu(s_k − m) / Σ_k ω_k."""

    margin: float  # m
    negative_weight: float  # w

    def evaluate(self, scores: Scores) -> LossValues:
        share, counts = self.negative_weight * shares(scores.weights), counted(scores.weights)
        above = np.maximum(scores.negatives - self.margin, 0.0)
        value = counts * np.maximum(1.0 - scores.positive, 0.0) + (share * above).sum(axis=1)
        return LossValues(value, -counts * (scores.positive < 1.0), share * (above > 0.0))


# ------------------------------------------------------------------------------------------ softmax and its kin


class SampledSoftmax(NamedTuple):
    """−s_i/τ + b · log(Σ_k ω_k · exp(s_k/τ − log q_k) [+ exp(s_i/τ)])."""

    temperature: float  # τ
    negative_weight: float  # b
    include_positive: bool

    def evaluate(self, scores: Scores) -> LossValues:
        tau, b, counts = self.temperature, self.negative_weight, counted(scores.weights)
        logits = scores.negatives / tau + log_weights(scores)
        if self.include_positive:
            logits = np.column_stack((logits, scores.positive / tau))
        total, chances = log_sum_exp(logits)
        by_negatives = counts[:, None] * (b / tau) * chances[:, : scores.negatives.shape[1]]
        by_positive = np.full(len(counts), -1.0 / tau)
        if self.include_positive:
            by_positive = by_positive + (b / tau) * chances[:, -1]
        value = np.where(counts, -scores.positive / tau + b * np.where(counts, total, 0.0), 0.0)
        return LossValues(value, counts * by_positive, by_negatives)


class ThresholdedSoftmax(NamedTuple):
    """SL@K: σ((s_i − β_u)/τ_w) · softmax loss, β_u the user's K-th highest score."""

    softmax: SampledSoftmax
    weight_temperature: float  # τ_w

    def evaluate(self, scores: Scores) -> LossValues:
        value, by_positive, by_negatives = self.softmax.evaluate(scores)
        weight = sigmoid((scores.positive - scores.threshold) / self.weight_temperature)
        slope = weight * (1.0 - weight) / self.weight_temperature
        return LossValues(weight * value, weight * by_positive + slope * value, weight[:, None] * by_negatives)


class PairwiseSurrogate(NamedTuple):
    """PSL: log Σ_k ω_k · g(d_k)^(1/τ) with g = relu(d + 1), tanh(d) + 1 or atan(d) + 1."""

    temperature: float  # τ
    surrogate: int  # the position in SURROGATES

    def evaluate(self, scores: Scores) -> LossValues:
        tau, counts = self.temperature, counted(scores.weights)
        g, slope = surrogate_of(self.surrogate, scores.negatives - scores.positive[:, None])
        total, chances = log_sum_exp(np.log(np.maximum(g, LEAST)) / tau + log_weights(scores))
        by_negatives = counts[:, None] * chances * np.where(g > LEAST, slope / np.maximum(g, LEAST), 0.0) / tau
        return LossValues(np.where(counts, total, 0.0), -by_negatives.sum(axis=1), by_negatives)


class DebiasedSoftmax(NamedTuple):
    """DCL and HCL: −s_i/τ + log(exp(s_i/τ) + n · max((E − τ⁺ · exp(s_i/τ)) / (1 − τ⁺), exp(−1/τ))).

    n is the number of negatives that count. E is the mean of exp(s_k/τ) weighted by ω_k · exp(β · s_k/τ): β = 0 is
    DCL, β > 0 is HCL.
    """

    temperature: float  # τ
    positive_rate: float  # τ⁺
    hardness: float  # β

    def evaluate(self, scores: Scores) -> LossValues:
        tau, rate, beta, counts = self.temperature, self.positive_rate, self.hardness, counted(scores.weights)
        z, z_i, n = scores.negatives / tau, scores.positive / tau, np.maximum((scores.weights > 0).sum(axis=1), 1)
        tilted, chances = log_sum_exp((1.0 + beta) * z + log_weights(scores))
        tilt, tilts = log_sum_exp(beta * z + log_weights(scores))
        log_mean = np.where(counts, tilted, 0.0) - np.where(counts, tilt, 0.0)  # log E
        highest = np.maximum(np.maximum(z_i, log_mean), -1.0 / tau)  # every power below is divided by exp(highest)
        power, mean, floor = np.exp(z_i - highest), np.exp(log_mean - highest), np.exp(-1.0 / tau - highest)
        debiased = (mean - rate * power) / (1.0 - rate)
        total = power + n * np.maximum(debiased, floor)
        outer = np.where(debiased > floor, n / (total * (1.0 - rate)), 0.0)  # by E
        by_negatives = (counts * outer * mean)[:, None] * ((1.0 + beta) * chances - beta * tilts) / tau
        by_positive = counts * (-1.0 + power / total - outer * rate * power) / tau
        return LossValues(counts * (np.log(total) + (highest - z_i)), by_positive, by_negatives)


# ---------------------------------------------------------------------------------------------------------- shared

SURROGATES = ("relu", "tanh", "atan")


def surrogate_of(kind: int, d: Any) -> tuple[Any, Any]:
    """g(d) and its derivative."""
    if SURROGATES[kind] == "relu":
        return np.maximum(d + 1.0, 0.0), (d > -1.0).astype(np.float64)
    if SURROGATES[kind] == "tanh":
        return np.tanh(d) + 1.0, 1.0 - np.tanh(d) ** 2
    return np.arctan(d) + 1.0, 1.0 / (1.0 + d * d)


def counted(weights: Any) -> Any:
    """1 (B,) for an example with a negative that counts, otherwise 0."""
    return (weights > 0).any(axis=1).astype(np.float64)


def shares(weights: Any) -> Any:
    """ω_k / Σ_k ω_k, 0 for an example without a negative that counts."""
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


def log_weights(scores: Scores) -> Any:
    """log ω_k − log q_k, −∞ where the weight is 0."""
    with np.errstate(divide="ignore"):
        found = np.log(scores.weights)
    return found if scores.log_q is None else found - scores.log_q


def log_sum_exp(logits: Any) -> tuple[Any, Any]:
    """log Σ_k exp(z_k) (B,) and the softmax (B, K); −∞ and 0 for a row of −∞."""
    highest = logits.max(axis=1, keepdims=True)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    powers = np.exp(logits - highest)
    total = powers.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return (np.log(total) + highest)[:, 0], powers / np.where(total > 0, total, 1.0)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)) without overflow."""
    return np.logaddexp(0.0, x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(−x)) without overflow."""
    return np.exp(-np.logaddexp(0.0, -x))
