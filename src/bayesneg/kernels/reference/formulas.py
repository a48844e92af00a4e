"""The formulas behind the choices, in NumPy, one line per equation.

Notation: x are scores, p is the prior probability of a false negative, M the share of the user's score list at or
below a score, F the score CDF that the posterior uses, λ the weight of BNS, θ the share of false negatives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

SURE = 1e-9  # log odds are of probabilities clipped to [1e-9, 1 − 1e-9], so that no prior overrules all others
SHORTEST = 1e-30  # lower bound on the norm of a user's embedding where score lists are summarised
SHORTEST_UNIT = 1e-12  # lower bound on the norm of an embedding that is normalised, for cosines


class Population(NamedTuple):
    """The items that F counts, and the number of items it divides by."""

    with_observed: bool  # the user's observed items are counted too
    of_catalogue: bool  # the count is divided by the size of the catalogue


UNOBSERVED = Population(with_observed=False, of_catalogue=False)  # as the paper states
CATALOGUE = Population(with_observed=False, of_catalogue=True)
ALL = Population(with_observed=True, of_catalogue=True)


class AsCounted(NamedTuple):
    """F = M, the paper's likelihood."""


class OfMixture(NamedTuple):
    """F recovered from M, the CDF of the mixture of true and false negatives."""

    share: float  # θ


class Tabled(NamedTuple):
    """F read off a table: piecewise linear in M, constant above the last point."""

    at: np.ndarray  # (K,) float64, M at the points, ascending from 0
    values: np.ndarray  # (K,) float64, F at the points, non-decreasing
    slopes: np.ndarray  # (K,) float64, dF/dM to the right of each point


LikelihoodForm = AsCounted | OfMixture | Tabled


def info(x_positive: Any, x_candidates: Any) -> Any:
    """Gradient magnitude 1 − σ(x_i − x_l).

    >>> float(info(1.0, 1.0))
    0.5
    """
    gap = np.asarray(x_positive, dtype=np.float64) - np.asarray(x_candidates, dtype=np.float64)
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(gap))


def list_sizes(over: Population, n_items: Any, n_observed: Any) -> Any:
    """The number of items that F counts, and n, the number of items it divides by.

    >>> list_sizes(Population(with_observed=False, of_catalogue=True), 10, 3)
    (7, 10)
    """
    return n_items - n_observed * (not over.with_observed), n_items - n_observed * (not over.of_catalogue)


def counted_cdf(count: Any, n: Any) -> Any:
    """M = #{x ≤ x_l} / (n + 1), kept below 1.

    >>> counted_cdf(4, 4)
    0.8
    """
    return count / (n + 1)


def base_cdf(likelihood: LikelihoodForm, M: Any) -> Any:
    """F from M: M itself, the inverse of the mixture, or a table.

    The mixture is M = (1−θ)(2F − F²) + θF², solved for F in the form that is stable for any θ.

    >>> base_cdf(AsCounted(), 0.99), round(float(base_cdf(OfMixture(share=0.0), 0.99)), 6)
    (0.99, 0.9)
    """
    if isinstance(likelihood, AsCounted):
        return M
    if isinstance(likelihood, OfMixture):
        rest = 1.0 - likelihood.share
        return M / (rest + np.sqrt(rest * rest + (2.0 * likelihood.share - 1.0) * M))
    point = np.searchsorted(likelihood.at, M, side="right") - 1
    return likelihood.values[point] + (M - likelihood.at[point]) * likelihood.slopes[point]


def unbias(F: Any, p: Any) -> Any:
    """Posterior probability of a true negative, (1−F)(1−p) / (1 − F − p + 2Fp).

    >>> round(unbias(0.75, 0.2), 6)
    0.571429
    """
    negative = (1.0 - F) * (1.0 - p)
    return negative / (negative + F * p)


def mean_probability(parts: Any, weights: Any, logit: bool) -> Any:
    """The mean of probabilities with weights that sum to 1: Σ w_k·p_k, or σ(Σ w_k·logit(p_k)).

    >>> round(float(mean_probability([0.1, 0.3], [0.5, 0.5], False)), 6)
    0.2
    """
    if not logit:
        return sum(weight * part for weight, part in zip(weights, parts, strict=True))
    inside = [np.clip(part, SURE, 1.0 - SURE) for part in parts]
    mean = sum(weight * np.log(part / (1.0 - part)) for weight, part in zip(weights, inside, strict=True))
    return 1.0 / (1.0 + np.exp(-mean))


def counted_unbias(likelihood: LikelihoodForm, counts: Any, n: Any, p: Any) -> Any:
    """The probability of a true negative from counts of lower or equal scores."""
    return unbias(base_cdf(likelihood, counted_cdf(counts, n)), p)


def risk(info: Any, unbias: Any, weight: Any) -> Any:
    """Conditional sampling risk info · (1 − (1+λ) · unbias).

    >>> risk(0.5, 0.9, 5.0)
    -2.2
    """
    return info * (1.0 - (1.0 + weight) * unbias)


def truncated_rank(uniform: float, scale: float, n: int) -> int:
    """A rank r in 0 … n−1 with probability ∝ exp(−r/scale), by inversion.

    >>> truncated_rank(0.0, 2.0, 10), truncated_rank(0.999999, 2.0, 10)
    (0, 9)
    """
    return min(int(-scale * np.log1p(-uniform * -np.expm1(-n / scale))), n - 1)


def summarise(x: np.ndarray, weights: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The scores (K,) at ``ranks`` of a list in which each score x occurs ``weights`` times.

    >>> summarise(np.array([1.0, 4.0, 3.0]), np.array([2, 1, 1]), np.array([1, 2, 4]))
    array([4., 3., 1.])
    """
    order = np.argsort(-x, kind="stable")
    found = np.searchsorted(np.cumsum(weights[order]), ranks)
    return x[order][np.minimum(found, len(x) - 1)]


def items_above(knots: np.ndarray, ranks: np.ndarray, z: Any) -> Any:
    """The number of items that score above z: rank − 1 at the knots, linear in between.

    >>> float(items_above(np.array([4.0, 3.0, 1.0]), np.array([1, 2, 4]), 2.0))
    2.0
    """
    return np.interp(z, knots[::-1], ranks[::-1] - 1.0)
