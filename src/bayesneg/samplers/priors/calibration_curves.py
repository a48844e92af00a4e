"""Calibration: from a score to the probability that a pair with this score is a hidden positive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

LEAST = 32  # pairs pooled before anything is fitted, so that no single pair is believed for certain
STEPS = 50  # of Newton's method, which needs about eight


class CalibrationCurve(Protocol):
    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities (…) float64 of scores (…)."""
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


@dataclass(frozen=True)
class LogisticCurve:
    """σ(level + slope · asinh(score / unit)): two numbers, for little data.

    Log odds do not grow in proportion to the scores of an item model but to about their logarithm, so the score is
    stretched near 0 and pressed together beyond ``unit``, a quarter of the scores' standard deviation.
    """

    level: float
    slope: float
    unit: float = 1.0

    @classmethod
    def fitted(cls, scores: np.ndarray, hidden: np.ndarray, weights: np.ndarray) -> LogisticCurve:
        scores, shares, weights = pooled(scores, hidden, weights)
        unit = 0.25 * _spread(scores, weights) or 1.0
        stretched = np.arcsinh(scores / unit)
        middle, spread = float(np.average(stretched, weights=weights)), _spread(stretched, weights) or 1.0
        design = np.column_stack((np.ones(len(scores)), (stretched - middle) / spread))
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
        return cls(float(found[0] - slope * middle), float(slope), unit)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return _sigmoid(self.level + self.slope * np.arcsinh(np.asarray(scores, dtype=np.float64) / self.unit))


@dataclass(frozen=True)
class HiddenCurve:
    """min(factor · p / (1 − p), 1) with p read off ``curve`` at scale · score.

    Cross-fitting hid one K-th of the observed positives. The truly hidden ones, ρ for each observed, were there too,
    but counted among the others. If both kinds look alike, K·ρ·p of the pairs at a score are truly hidden where p are
    the fold's; and once these are observed, that is a share K·ρ·p / (1 − p) of what is left: ``factor`` is K·ρ. A
    model that saw every pair has larger scores than one that saw a part; ``scale`` takes them back.
    """

    curve: CalibrationCurve
    factor: float
    scale: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return hidden_share(self.curve(self.scale * scores), self.factor)


CURVES: Final[dict[str, Callable[..., CalibrationCurve]]] = {
    "isotonic": IsotonicCurve.fitted,
    "logistic": LogisticCurve.fitted,
}


def with_odds(probabilities: np.ndarray, factor: float) -> np.ndarray:
    """The probabilities whose odds are ``factor`` times as high; 0 and 1 stay.

    >>> with_odds(np.array([0.0, 0.5, 1.0]), 3.0)
    array([0.  , 0.75, 1.  ])
    >>> with_odds(np.array([0.5, 1.0]), 0.0)
    array([0., 1.])
    """
    raised = np.asarray(probabilities * factor, dtype=np.float64)
    return _ratio(raised, 1.0 - probabilities + raised)


def hidden_share(observed: np.ndarray, hidden: float) -> np.ndarray:
    """min(hidden · r / (1 − r), 1): P(hidden | unobserved) of pairs of which a share r is observed.

    With ``hidden`` hidden positives for each observed one, hidden · r of all such pairs are hidden, and 1 − r are left.

    >>> hidden_share(np.array([0.0, 0.2, 0.9, 1.0]), 0.5)
    array([0.   , 0.125, 1.   , 1.   ])
    """
    left = 1.0 - np.asarray(observed, dtype=np.float64)
    return _ratio(np.minimum(hidden * observed, left), left)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole; 1 where there is nothing."""
    return np.divide(part, whole, out=np.ones(np.shape(whole)), where=np.asarray(whole) > 0)


def pooled(scores: np.ndarray, hidden: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean scores ascending, shares of hidden pairs and weights of pools of at least ``LEAST`` pairs.

    Pairs of equal score are in one pool.
    """
    order = np.argsort(scores, kind="stable")
    scores, hidden, weights = scores[order].astype(np.float64), hidden[order], weights[order]
    first = np.searchsorted(scores, scores)  # the place of the first pair of equal score
    pools = np.unique(first // LEAST, return_inverse=True)[1]
    pools = _joined(np.bincount(pools))[pools]
    weight = np.bincount(pools, weights)
    return np.bincount(pools, weights * scores) / weight, np.bincount(pools, weights * hidden) / weight, weight


def _joined(counts: np.ndarray) -> np.ndarray:
    """The new number of each pool, so that none is too small: a short one joins the next, the last the one before."""
    numbers = np.empty(len(counts), dtype=np.int64)
    number = n_pairs = 0
    for place, count in enumerate(counts.tolist()):
        numbers[place] = number
        n_pairs += count
        if n_pairs >= LEAST:
            number, n_pairs = number + 1, 0
    return np.minimum(numbers, max(number - 1, 0)) if n_pairs else numbers


def _spread(values: np.ndarray, weights: np.ndarray) -> float:
    """The weighted standard deviation."""
    return float(np.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)))


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return expit(logits)
