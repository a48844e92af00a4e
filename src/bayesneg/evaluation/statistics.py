"""How sure a mean is: Student t intervals over users or over seeds, and paired differences.

A value of nan marks a user for whom a metric is undefined and is left out. One value alone says nothing about
its spread: the interval is then (nan, nan).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesneg.errors import InputError


class Difference(NamedTuple):
    """The mean of a − b with its interval, and the p-value of "no difference" (two-sided paired t-test)."""

    mean: float
    low: float
    high: float
    p_value: float
    n: int


def mean_interval(values: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """The interval mean ± t · s/√n that holds the true mean with probability ``level``.

    By hand: mean 2, s = 1, n = 3, t = 4.3027, so 2 ± 4.3027/√3.

    >>> low, high = mean_interval(np.array([1.0, 2.0, 3.0]))
    >>> round(low, 4), round(high, 4)
    (-0.4841, 4.4841)
    """
    defined = _defined(values)
    half = _half_width(defined, level)
    mean = float(defined.mean()) if len(defined) > 1 else math.nan
    return mean - half, mean + half


def paired_difference(a: np.ndarray, b: np.ndarray, level: float = 0.95) -> Difference:
    """How much more ``a`` (n,) is than ``b`` (n,) on average, each pair from the same user or seed.

    >>> difference = paired_difference(np.array([3.0, 4.0, 8.0]), np.array([2.0, 2.0, 5.0]))
    >>> difference.mean, round(difference.p_value, 4)
    (2.0, 0.0742)
    """
    if np.shape(a) != np.shape(b):
        raise InputError(f"a paired difference needs as many values in b as in a, got {len(a)} and {len(b)}")
    differences = _defined(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64))
    low, high = mean_interval(differences, level)
    mean = float(differences.mean()) if len(differences) else math.nan
    return Difference(mean, low, high, _p_value(differences), len(differences))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of a family of tests, raised so that one false finding among all of them stays as unlikely.

    Holm's step-down: the k-th smallest of n is multiplied by n − k + 1, and none may fall below one before it.
    A test that could not be made (nan) is no member of the family.

    >>> [round(p, 3) for p in holm([0.04, 0.01, 0.03])]
    [0.06, 0.03, 0.06]
    """
    raised = [math.nan] * len(p_values)
    order = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    highest = 0.0
    for rank, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - rank)))
        raised[place] = highest
    return raised


def _defined(values: np.ndarray) -> np.ndarray:
    numbers = np.asarray(values, dtype=np.float64)
    return numbers[~np.isnan(numbers)]


def _half_width(values: np.ndarray, level: float) -> float:
    if not 0.0 < level < 1.0:
        raise InputError(f"level must lie between 0 and 1, got {level}; 0.95 is common")
    if len(values) < 2:
        return math.nan
    from scipy.special import stdtrit  # the t quantile alone; scipy.stats takes seconds to import

    return float(stdtrit(len(values) - 1, (1.0 + level) / 2.0)) * _standard_error(values)


def _p_value(values: np.ndarray) -> float:
    if len(values) < 2:
        return math.nan
    mean, error = float(values.mean()), _standard_error(values)
    if error == 0.0:  # all differences are one and the same number
        return 1.0 if mean == 0.0 else 0.0
    from scipy.special import stdtr

    return 2.0 * float(stdtr(len(values) - 1, -abs(mean) / error))


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))
