"""Calibration curves: from a score to the probability that a pair with this score is a hidden positive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

MIN_POOL = 32  # pairs pooled before a curve is fitted, so that no single pair gives a probability of 0 or 1
STEPS = 50  # of Newton's method, which needs about eight


class CalibrationCurve(Protocol):
    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities (…) float64 of scores (…)."""
        ...


@dataclass(frozen=True, eq=False)
class IsotonicCurve:
    """Isotonic regression: the non-decreasing least-squares fit, linear between its steps."""

    scores: np.ndarray  # (K,) ascending
    probabilities: np.ndarray  # (K,) non-decreasing

    @classmethod
    def fitted(cls, scores: np.ndarray, hidden: np.ndarray, weights: np.ndarray) -> IsotonicCurve:
        from scipy.optimize import isotonic_regression

        scores, shares, weights = pooled(scores, hidden, weights)
        found = isotonic_regression(shares, weights=weights)
        ends = np.unique(
            np.concatenate((found.blocks[:-1], found.blocks[1:] - 1))
        )  # the first and last point of each step
        return cls(scores[ends], np.clip(found.x[ends], 0.0, 1.0))

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return np.interp(scores, self.scores, self.probabilities)


@dataclass(frozen=True)
class LogisticCurve:
    """Logistic regression, for little data: σ(level + slope · asinh(score / unit)).

    The log odds grow roughly with the logarithm of an item model's scores, so the score is transformed by asinh:
    linear near 0 and logarithmic beyond ``unit``, a quarter of the scores' standard deviation.
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
    """A curve rescaled to an assumed ratio of hidden to observed positives: min(factor · p / (1 − p), 1).

    p is the value of ``curve`` at scale · score. Cross-fitting holds out one K-th of the observed positives. The truly
    hidden ones, ρ for each observed, were there too, but labelled negative. If both kinds have the same scores, a share
    K·ρ·p of the pairs at a score is truly hidden where a share p was held out; once these are observed, that is a
    share K·ρ·p / (1 − p) of the unobserved pairs, so ``factor`` is K·ρ. A model fitted to all pairs has larger scores
    than one fitted to a part; ``scale`` corrects for that.
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


def scale_odds(probabilities: np.ndarray, factor: float) -> np.ndarray:
    """The probabilities with odds multiplied by ``factor``; 0 and 1 are unchanged.

    >>> scale_odds(np.array([0.0, 0.5, 1.0]), 3.0)
    array([0.  , 0.75, 1.  ])
    >>> scale_odds(np.array([0.5, 1.0]), 0.0)
    array([0., 1.])
    """
    raised = np.asarray(probabilities * factor, dtype=np.float64)
    return _ratio(raised, 1.0 - probabilities + raised)


def hidden_share(observed: np.ndarray, hidden: float) -> np.ndarray:
    """P(hidden | unobserved) = min(hidden · r / (1 − r), 1) of pairs of which a share r is observed.

    With ``hidden`` hidden positives for each observed one, a share hidden · r of all pairs is hidden and 1 − r is
    unobserved.

    >>> hidden_share(np.array([0.0, 0.2, 0.9, 1.0]), 0.5)
    array([0.   , 0.125, 1.   , 1.   ])
    """
    left = 1.0 - np.asarray(observed, dtype=np.float64)
    return _ratio(np.minimum(hidden * observed, left), left)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole; 1 where whole is 0."""
    return np.divide(part, whole, out=np.ones(np.shape(whole)), where=np.asarray(whole) > 0)


def pooled(scores: np.ndarray, hidden: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean scores in ascending order, shares of hidden pairs and weights of pools of at least ``MIN_POOL`` pairs.

    Pairs of equal score are in one pool.
    """
    order = np.argsort(scores, kind="stable")
    scores, hidden, weights = scores[order].astype(np.float64), hidden[order], weights[order]
    first = np.searchsorted(scores, scores)  # the index of the first pair of equal score
    pools = np.unique(first // MIN_POOL, return_inverse=True)[1]
    pools = _merged(np.bincount(pools))[pools]
    weight = np.bincount(pools, weights)
    return np.bincount(pools, weights * scores) / weight, np.bincount(pools, weights * hidden) / weight, weight


def _merged(counts: np.ndarray) -> np.ndarray:
    """The new number of each pool, so that none is too small: it joins the next, the last one the previous."""
    numbers = np.empty(len(counts), dtype=np.int64)
    number = n_pairs = 0
    for place, count in enumerate(counts.tolist()):
        numbers[place] = number
        n_pairs += count
        if n_pairs >= MIN_POOL:
            number, n_pairs = number + 1, 0
    return np.minimum(numbers, max(number - 1, 0)) if n_pairs else numbers


def _spread(values: np.ndarray, weights: np.ndarray) -> float:
    """The weighted standard deviation."""
    return float(np.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)))


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return expit(logits)
