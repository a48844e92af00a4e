"""Rules that answer with several negatives and a weight for each, with their executable specification in NumPy.

The draws are those of one choice; what differs is how many candidates are taken. A negative that is not there (the user
has fewer unobserved items) is item −1 with weight 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.posterior import PosteriorRule
from bayesneg.kernels.reference.choices.resampled import resample, resampling_mass
from bayesneg.kernels.reference.formulas import counted_unbias, info, risk

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch


class Several(NamedTuple):
    """Negatives of B examples."""

    items: np.ndarray  # (B, K) int32, −1 where there is none
    weights: np.ndarray  # (B, K) float64, 0 where there is none


@runtime_checkable
class Selection(Protocol):
    """How several negatives are selected from draws and scores; every implementation is a ``NamedTuple``."""

    def select(self, draws: Draws, batch: Batch) -> Several:
        """The specification: the negatives of a batch with their weights."""
        ...


class TakeAll(NamedTuple):
    """Every candidate, with weight 1: RNS and PNS with several negatives."""

    def select(self, draws: Draws, batch: Batch) -> Several:
        return weighted(draws, np.ones(draws.candidates.shape))


class TakeSeveralHighest(NamedTuple):
    """``negatives`` of the ``top`` highest-scored candidates, uniformly without replacement: DNS."""

    top: int
    negatives: int

    def select(self, draws: Draws, batch: Batch) -> Several:
        x = batch.score(np.maximum(draws.candidates, 0))
        items = np.full((len(x), self.negatives), -1, dtype=np.int32)
        for b, size in enumerate(draws.sizes):
            best = np.argsort(-x[b, :size], kind="stable")[: self.top]
            for k in range(min(self.negatives, len(best))):
                other = k + int(draws.uniforms[b, k] * (len(best) - k))
                best[[k, other]] = best[[other, k]]
                items[b, k] = draws.candidates[b, best[k]]
        return Several(items, (items >= 0).astype(np.float64))


class TakeSeveralResampled(NamedTuple):
    """``negatives`` candidates, drawn with replacement ∝ exp(x/τ − log q): SIR with several negatives."""

    temperature: float  # τ
    log_q: np.ndarray  # (n_items,) log-probabilities of the proposal, up to a constant; empty where it is uniform
    negatives: int

    def select(self, draws: Draws, batch: Batch) -> Several:
        x = batch.score(np.maximum(draws.candidates, 0))
        items = np.full((len(x), self.negatives), -1, dtype=np.int32)
        for b in np.flatnonzero(draws.sizes):
            candidates = draws.candidates[b, : draws.sizes[b]]
            mass = resampling_mass(x[b, : len(candidates)], candidates, self.temperature, self.log_q)
            items[b] = [candidates[resample(mass, uniform)] for uniform in draws.uniforms[b, : self.negatives]]
        return Several(items, (items >= 0).astype(np.float64))


class LeastRisks(NamedTuple):
    """The ``negatives`` candidates of least sampling risk, in that order: BNS with several negatives."""

    rule: Any  # LeastRisk or LeastRiskBySummary
    negatives: int

    def select(self, draws: Draws, batch: Batch) -> Several:
        x_positive, x, true_negative = judged(self.rule, draws, batch)
        risks = risk(info(x_positive[:, None], x), true_negative, self.rule.weight)
        risks[np.arange(x.shape[1]) >= draws.sizes[:, None]] = np.inf
        order = np.argsort(risks, axis=1, kind="stable")[:, : self.negatives]
        there = np.arange(order.shape[1]) < draws.sizes[:, None]
        items = np.where(there, np.take_along_axis(draws.candidates, order, axis=1), -1)
        return Several(items.astype(np.int32), there.astype(np.float64))


class PosteriorWeights(NamedTuple):
    """Every candidate, weighted by its posterior probability of a true negative."""

    rule: Any  # LeastRisk or LeastRiskBySummary
    ramp: bool  # the ramp of the risk, otherwise unbias itself

    def select(self, draws: Draws, batch: Batch) -> Several:
        _, _, true_negative = judged(self.rule, draws, batch)
        return weighted(draws, weight_of(true_negative, self.rule.weight, self.ramp))


def select_batch(rule: Selection, draws: Draws, batch: Batch) -> Several:
    """The negatives that the rule selects for each pair of the batch."""
    return rule.select(draws, batch)


def weighted(draws: Draws, weights: np.ndarray) -> Several:
    """All candidates that were drawn, with these weights (B, m)."""
    there = np.arange(draws.candidates.shape[1]) < draws.sizes[:, None]
    return Several(np.where(there, draws.candidates, -1).astype(np.int32), np.where(there, weights, 0.0))


def judged(rule: PosteriorRule, draws: Draws, batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The positives' scores (B,), the candidates' scores (B, m) and their unbias (B, m)."""
    items = np.column_stack((batch.positives, np.maximum(draws.candidates, 0)))  # (B, 1 + m)
    x, counts, n = rule.counts(batch, items)
    return x[:, 0], x[:, 1:], counted_unbias(rule.likelihood, counts[:, 1:], n[:, None], draws.priors)


def weight_of(unbias: Any, weight: Any, ramp: bool) -> Any:
    """ω = unbias, or the ramp clip(((1 + λ) · unbias − 1) / λ, 0, 1) of the sampling risk.

    >>> weight_of(np.array([0.1, 0.6]), 5.0, True).round(6)
    array([0.  , 0.52])
    """
    return ((1.0 + weight) * unbias - 1.0).clip(0.0, weight) / weight if ramp else unbias
