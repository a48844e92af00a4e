"""Calibration: from a score to the probability that a pair with this score is a hidden positive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol, Self

import numpy as np

LEAST = 32  # pairs pooled before anything is fitted, so that no single pair is believed for certain
STEPS = 50  # of Newton's method, which needs about eight


class CalibrationCurve(Protocol):
    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities (…) float64 of scores (…)."""
        ...

    def with_odds(self, factor: float) -> Self:
        """The curve with all odds multiplied by ``factor``."""
        ...


@dataclass(frozen=True, eq=False)
class IsotonicCurve:
    """The non-decreasing curve of least squares, straight between its steps."""

    scores: np.ndarray  # (K,) ascending
    probabilities: np.ndarray  # (K,) non-decreasing

    @classmethod
    def fitted(cls, scores: np.ndarray, hidden: np.ndarray, weights: np.ndarray) -> IsotonicCurve:
        from scipy.optimize import isotonic_regression

        scores, shares, weights = pooled(scores, hidden, weights)
        found = isotonic_regression(shares, weights=weights)
        ends = np.unique(np.concatenate((found.blocks[:-1], found.blocks[1:] - 1)))  # where each step begins and ends
        return cls(scores[ends], np.clip(found.x[ends], 0.0, 1.0))

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return np.interp(scores, self.scores, self.probabilities)

    def with_odds(self, factor: float) -> IsotonicCurve:
        return replace(self, probabilities=with_odds(self.probabilities, factor))


@dataclass(frozen=True)
class LogisticCurve:
    """σ(level + slope · score): two numbers, for little data."""

    level: float
    slope: float

    @classmethod
    def fitted(cls, scores: np.ndarray, hidden: np.ndarray, weights: np.ndarray) -> LogisticCurve:
        scores, shares, weights = pooled(scores, hidden, weights)
        middle, spread = float(np.average(scores, weights=weights)), float(scores.std()) or 1.0
        design = np.column_stack((np.ones(len(scores)), (scores - middle) / spread))
        rate = np.clip(np.average(shares, weights=weights), 1e-12, 1 - 1e-12)
        found = np.array([np.log(rate / (1 - rate)), 0.0])
        for _ in range(STEPS):
            expected = _sigmoid(design @ found)
            gradient = design.T @ (weights * (shares - expected))
            curvature = (design * (weights * expected * (1 - expected))[:, None]).T @ design
            step = np.linalg.solve(curvature + 1e-9 * np.eye(2), gradient)
            found += np.clip(step, -2.0, 2.0)
            if np.abs(step).max() < 1e-9:
                break
        slope = found[1] / spread
        return cls(float(found[0] - slope * middle), float(slope))

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return _sigmoid(self.level + self.slope * np.asarray(scores, dtype=np.float64))

    def with_odds(self, factor: float) -> LogisticCurve:
        return replace(self, level=self.level + float(np.log(factor)))


CURVES: Final[dict[str, Callable[..., CalibrationCurve]]] = {
    "isotonic": IsotonicCurve.fitted,
    "logistic": LogisticCurve.fitted,
}


def with_odds(probabilities: np.ndarray, factor: float) -> np.ndarray:
    """The probabilities whose odds are ``factor`` times as high; 0 and 1 stay.

    >>> with_odds(np.array([0.0, 0.5, 1.0]), 3.0)
    array([0.  , 0.75, 1.  ])
    """
    return probabilities * factor / (1.0 - probabilities + probabilities * factor)


def pooled(scores: np.ndarray, hidden: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean scores ascending, shares of hidden pairs and weights of pools of at least ``LEAST`` pairs.

    Pairs of equal score are in one pool.
    """
    order = np.argsort(scores, kind="stable")
    scores, hidden, weights = scores[order].astype(np.float64), hidden[order], weights[order]
    first = np.searchsorted(scores, scores)  # the place of the first pair of equal score
    pools = np.unique(first // LEAST, return_inverse=True)[1]
    weight = np.bincount(pools, weights)
    return np.bincount(pools, weights * scores) / weight, np.bincount(pools, weights * hidden) / weight, weight


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return expit(logits)
