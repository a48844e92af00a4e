"""A candidate resampled towards the softmax of the scores: the rule of SIR."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesneg.kernels.reference.choices.base import Chooser, Draws

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch


class TakeResampled(NamedTuple):
    """One candidate, drawn ∝ exp(x/τ − log q)."""

    temperature: float  # τ
    log_q: np.ndarray  # (n_items,) log-probabilities of the proposal, up to a constant; empty where it is uniform

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        x = batch.score(np.maximum(draws.candidates, 0))  # (B, m)

        def choose(b: int) -> int:
            candidates = draws.candidates[b, : draws.sizes[b]]
            mass = resampling_mass(x[b, : len(candidates)], candidates, self.temperature, self.log_q)
            return candidates[resample(mass, draws.uniforms[b, 0])]

        return choose


def resampling_mass(x: np.ndarray, candidates: np.ndarray, temperature: float, log_q: np.ndarray) -> np.ndarray:
    """The running sum (m,) of exp(x/τ − log q), up to a factor."""
    logits = x.astype(np.float64) / temperature
    if len(log_q):
        logits = logits - log_q[candidates]
    return np.cumsum(np.exp(logits - logits.max()))


def resample(mass: np.ndarray, uniform: float) -> int:
    """Position drawn from a running sum of weights by a uniform number.

    >>> resample(np.array([1.0, 1.0, 4.0]), 0.24), resample(np.array([1.0, 1.0, 4.0]), 0.25)
    (0, 2)
    """
    return min(int(np.searchsorted(mass, uniform * mass[-1], side="right")), len(mass) - 1)
