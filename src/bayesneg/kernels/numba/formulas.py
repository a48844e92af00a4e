"""The formulas of ``kernels/reference/formulas.py``, compiled: same names, same numbers.

These functions are inlined into the entry points of ``sgd`` and are not cached on their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload

from bayesneg.kernels.numba.compiling import INLINED, kernel
from bayesneg.kernels.reference.formulas import AsCounted, OfMixture, Tabled


@kernel
def info(x_positive: float, x_candidate: float) -> float:
    return 1.0 / (1.0 + np.exp(np.float64(x_positive) - np.float64(x_candidate)))


@kernel
def list_sizes(over, n_items, n_observed):  # type: ignore[no-untyped-def]
    return n_items - n_observed * (not over.with_observed), n_items - n_observed * (not over.of_catalogue)


@kernel
def counted_cdf(count: float, n: int) -> float:
    return count / (n + 1)


@kernel
def unbias(F: float, p: float) -> float:
    negative = (1.0 - F) * (1.0 - p)
    return negative / (negative + F * p)


@kernel
def risk(info: float, unbias: float, weight: float) -> float:
    return info * (1.0 - (1.0 + weight) * unbias)


@kernel
def truncated_rank(uniform: float, scale: float, n: int) -> int:
    return min(int(-scale * np.log1p(uniform * np.expm1(-n / scale))), n - 1)


# ------------------------------------------------------------ F from counts and back, by the likelihood's type


def base_cdf(likelihood: Any, M: Any) -> Any:
    """F where the share M was counted."""
    raise TypeError("this base_cdf is for compiled code; call that of reference from Python")


def shares_below(likelihood: Any, F: Any) -> Any:
    """The counted share below which F is certainly not reached; above 1 where it never is."""
    raise TypeError("shares_below is for compiled code")


def _as_counted(likelihood, M):  # type: ignore[no-untyped-def]
    return M


def _of_mixture(likelihood, M):  # type: ignore[no-untyped-def]
    rest = 1.0 - likelihood.share
    return M / (rest + np.sqrt(rest * rest + (2.0 * likelihood.share - 1.0) * M))


def _tabled(likelihood, M):  # type: ignore[no-untyped-def]
    point = np.searchsorted(likelihood.at, M, side="right") - 1
    return likelihood.values[point] + (M - likelihood.at[point]) * likelihood.slopes[point]


def _below_as_counted(likelihood, F):  # type: ignore[no-untyped-def]
    return F


def _below_of_mixture(likelihood, F):  # type: ignore[no-untyped-def]
    return F * (2.0 * (1.0 - likelihood.share) + (2.0 * likelihood.share - 1.0) * F)


def _below_tabled(likelihood, F):  # type: ignore[no-untyped-def]
    wanted = F - 1e-12  # beyond rounding: on a level stretch a hair decides between its two ends
    point = np.searchsorted(likelihood.values, wanted) - 1  # the last below
    if point < 0:
        return 0.0
    if likelihood.slopes[point] == 0.0:
        return 2.0
    return likelihood.at[point] + (wanted - likelihood.values[point]) / likelihood.slopes[point]


_FORWARD: dict[type, Callable[..., Any]] = {AsCounted: _as_counted, OfMixture: _of_mixture, Tabled: _tabled}
_BACK: dict[type, Callable[..., Any]] = {
    AsCounted: _below_as_counted,
    OfMixture: _below_of_mixture,
    Tabled: _below_tabled,
}


@overload(base_cdf, jit_options=INLINED)
def _base_cdf(likelihood, M):  # type: ignore[no-untyped-def]
    return _FORWARD[likelihood.instance_class]


@overload(shares_below, jit_options=INLINED)
def _shares_below(likelihood, F):  # type: ignore[no-untyped-def]
    return _BACK[likelihood.instance_class]


@kernel
def counted_unbias(likelihood, counts, n, p):  # type: ignore[no-untyped-def]
    return unbias(base_cdf(likelihood, counted_cdf(counts, n)), p)
