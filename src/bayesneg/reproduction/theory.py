"""The paper's theory as functions that can be checked: order statistics, and what unbias is on average.

Two scores of one density f with distribution function F, in order: the lower belongs to the true negative and has the
density g = 2f(1 − F), the higher to the false one and has h = 2fF. Unobserved items are a mixture of both, with a
share θ of false negatives; in terms of F its density is 2(1 − θ)(1 − F) + 2θF on [0, 1].
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np

from bayesneg.kernels.reference.formulas import unbias


class Base(Protocol):
    """A distribution of scores, such as those of ``scipy.stats``."""

    def pdf(self, x: Any) -> Any: ...

    def cdf(self, x: Any) -> Any: ...


def bases() -> dict[str, Any]:
    """The three that the paper draws: two symmetric, one not."""
    from scipy import stats

    return {"Gaussian N(0, 1)": stats.norm(), "Student t(5)": stats.t(5), "Gamma(2, 1)": stats.gamma(2)}


def true_negative_density(base: Base, x: Any) -> Any:
    """g(x) = 2 f(x) (1 − F(x)), the density of the lower of two."""
    return 2.0 * base.pdf(x) * (1.0 - base.cdf(x))


def false_negative_density(base: Base, x: Any) -> Any:
    """h(x) = 2 f(x) F(x), the density of the higher of two."""
    return 2.0 * base.pdf(x) * base.cdf(x)


@cache
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Nodes on [0, 1], and the weights of an integral over it."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    return (nodes + 1.0) / 2.0, weights / 2.0


def mean_unbias_under_mixture(theta: float) -> float:
    """The mean of unbias over unobserved items, F being the base's: exactly 1 − θ, as the paper's lemma says.

    >>> round(mean_unbias_under_mixture(0.2), 12)
    0.8
    """
    f, weights = _quadrature()
    density = 2.0 * (1.0 - theta) * (1.0 - f) + 2.0 * theta * f
    return float(np.sum(weights * density * unbias(f, theta)))


def mean_unbias_under_uniform(theta: float) -> float:
    """The same where F is uniform, as a counted F is: not 1 − θ, so the lemma does not hold for it.

    1/(1 − r) + r·ln r/(1 − r)², with r = θ/(1 − θ); 1/2 at θ = 1/2, and its limits 1 and 0 at θ = 0 and 1.

    >>> round(mean_unbias_under_uniform(0.01), 3)
    0.963
    """
    if theta in (0.0, 1.0):
        return 1.0 - theta
    r = theta / (1.0 - theta)
    beyond = r - 1.0
    if abs(beyond) < 1e-3:  # where the two terms nearly cancel: the first of its series
        return 0.5 - beyond / 6.0 + beyond**2 / 12.0
    return float(1.0 / (1.0 - r) + r * np.log(r) / (1.0 - r) ** 2)
