"""Student-t intervals, paired differences over users and over seeds, and Holm's correction.

Every interval and every test of the package is computed here. A value that is not finite marks a user for whom a
metric is undefined; it is left out. One value alone has no spread: its interval is (nan, nan).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from bayesneg.errors import InputError

LEVEL: Final = 0.05  # a difference is significant if its p-value lies below
Over = Literal["seeds", "users", "nothing"]


@dataclass(frozen=True)
class Estimate:
    """A mean with its Student-t interval.

    Args:
        mean: The mean of the finite values; nan where there is none.
        low: The lower end of the interval; nan where there is no interval.
        high: The upper end of the interval.
        over: What the values are taken over: seeds or users; "nothing" where there is no interval.
        n: The number of finite values.
        p_value: Of the two-sided t-test that the true mean is zero; nan where it was not computed.
    """

    mean: float
    low: float = math.nan
    high: float = math.nan
    over: Over = "nothing"
    n: int = 1
    p_value: float = math.nan

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def has_interval(self) -> bool:
        return self.over != "nothing"

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return self.has_interval and (self.low > 0 or self.high < 0)


NOT_MEASURED: Final = Estimate(math.nan, n=0)


@dataclass(frozen=True)
class PairedDifference:
    """One method minus another in one metric, judged on the same data with the same seeds.

    Args:
        over_users: Of each user's mean over the shared seeds; not measured where runs have no values per user.
        over_seeds: Of each seed's mean over the users; no interval where one seed is shared.
        n_seeds: How many seeds are shared.
    """

    over_users: Estimate
    over_seeds: Estimate
    n_seeds: int

    @property
    def mean(self) -> float:
        return self.over_users.mean

    @property
    def is_clear(self) -> bool:
        """Significant over users and, where two or more seeds are shared, over seeds."""
        return self.over_users.p_value < LEVEL and (self.n_seeds == 1 or self.over_seeds.p_value < LEVEL)

    @property
    def estimate(self) -> Estimate:
        """Over seeds where two or more are shared, else over users, with the mean of the runs' metrics."""
        if self.n_seeds > 1 or self.over_seeds.has_interval or not self.over_users.has_interval:
            return self.over_seeds
        return replace(self.over_users, mean=self.over_seeds.mean)

    def verdict(self, one: str, other: str) -> str:
        """Which of the two is better, in words: ``BNS is better``."""
        if not self.is_clear:
            return f"not shown with {self.n_seeds} {'seed' if self.n_seeds == 1 else 'seeds'}"
        winner = one if self.mean > 0 else other
        return f"{winner} is better" + ("" if self.n_seeds > 1 else ", as far as one seed can tell")


def mean_interval(values: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """The Student-t interval mean ± t · s/√n, which covers the true mean with probability ``level``.

    By hand: mean 2, s = 1, n = 3, t = 4.3027, so 2 ± 4.3027/√3.

    >>> low, high = mean_interval(np.array([1.0, 2.0, 3.0]))
    >>> round(low, 4), round(high, 4)
    (-0.4841, 4.4841)
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"level must lie between 0 and 1, got {level}; 0.95 is common")
    finite = _finite(values)
    if len(finite) < 2:
        return math.nan, math.nan
    from scipy.special import stdtrit  # the t quantile alone; scipy.stats takes seconds to import

    mean = float(finite.mean())
    half_width = float(stdtrit(len(finite) - 1, (1.0 + level) / 2.0)) * _standard_error(finite)
    return mean - half_width, mean + half_width


def estimate(values: Iterable[float], over: Over = "seeds", level: float = 0.95) -> Estimate:
    """The mean of the finite values, with an interval and a p-value where there are two or more.

    >>> found = estimate([0.41, 0.42, 0.40])
    >>> round(found.mean, 4), round(found.half_width, 4), found.over, found.n
    (0.41, 0.0248, 'seeds', 3)
    """
    finite = _finite(values)
    if len(finite) == 0:
        return NOT_MEASURED
    if len(finite) == 1:
        return Estimate(float(finite[0]))
    low, high = mean_interval(finite, level)
    return Estimate(float(finite.mean()), low, high, over, len(finite), _p_value(finite))


def paired_difference(
    a: np.ndarray, b: np.ndarray, level: float = 0.95, *, over: Literal["seeds", "users"] = "users"
) -> Estimate:
    """The mean of a − b with its interval and the p-value of the two-sided paired t-test.

    Args:
        a: (n,) one value per user or seed.
        b: (n,) the values of the other method for the same users or seeds.
        level: The probability that the interval covers the true difference.
        over: What the pairs are.

    >>> difference = paired_difference(np.array([3.0, 4.0, 8.0]), np.array([2.0, 2.0, 5.0]))
    >>> difference.mean, round(difference.p_value, 4)
    (2.0, 0.0742)
    """
    if np.shape(a) != np.shape(b):
        raise InputError(f"a paired difference needs as many values in b as in a, got {len(a)} and {len(b)}")
    return estimate(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64), over, level)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: controls the probability of any false rejection in a family of tests.

    The k-th smallest of n p-values is multiplied by n − k + 1, and none may fall below one before it. A test that
    could not be made (nan) does not belong to the family.

    >>> [round(p, 3) for p in holm([0.04, 0.01, 0.03])]
    [0.06, 0.03, 0.06]
    """
    corrected = [math.nan] * len(p_values)
    order = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    highest = 0.0
    for rank, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - rank)))
        corrected[place] = highest
    return corrected


def holm_corrected(family: Sequence[PairedDifference]) -> list[PairedDifference]:
    """The same differences with p-values corrected for the whole family, over users and over seeds separately."""
    over_users = holm([found.over_users.p_value for found in family])
    over_seeds = holm([found.over_seeds.p_value for found in family])
    return [
        replace(
            found,
            over_users=replace(found.over_users, p_value=p_users),
            over_seeds=replace(found.over_seeds, p_value=p_seeds),
        )
        for found, p_users, p_seeds in zip(family, over_users, over_seeds, strict=True)
    ]


def _finite(values: Iterable[float]) -> np.ndarray:
    numbers = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    return numbers[np.isfinite(numbers)]


def _p_value(values: np.ndarray) -> float:
    mean, error = float(values.mean()), _standard_error(values)
    if error == 0.0:  # all differences are the same number
        return 1.0 if mean == 0.0 else 0.0
    from scipy.special import stdtr

    return 2.0 * float(stdtr(len(values) - 1, -abs(mean) / error))


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))
