"""The result of an evaluation: means, one value per user, and confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bayesneg.errors import InputError
from bayesneg.evaluation.statistics import mean_interval
from bayesneg.notebooks import html_table, with_half_width

if TYPE_CHECKING:
    import polars as pl


V = TypeVar("V")


class ByMetric(dict[str, V]):
    """Metric → what was found; asking for another metric says which there are.

    >>> ByMetric({"ndcg@5": 0.1})["ndcg@7"]
    Traceback (most recent call last):
    bayesneg.errors.InputError: 'ndcg@7' was not evaluated; this report has ndcg@5; evaluate(k=7) gives lists of 7
    """

    def __missing__(self, key: str) -> V:
        name, _, length = str(key).partition("@")
        known = {each.partition("@")[0] for each in self}
        hint = f"; evaluate(k={length}) gives lists of {length}" if name in known and length.isdecimal() else ""
        raise InputError(f"{key!r} was not evaluated; this report has {', '.join(self)}{hint}")


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationReport:
    """Ranking quality of one scorer on one part of a split, under keys like ``"ndcg@20"`` and ``"auc"``.

    Args:
        part: ``"test"`` or ``"validation"``.
        mean: Mean of each metric over users; also coverage, which is one number for all users together.
        values: Metric → one value per user, (n_users,) float64, NaN where it is undefined for a user.
        user_ids: Raw ids of the evaluated users, those with at least one item in the part, (n_users,).
        n_users_without_training: Number of evaluated users without a training interaction.
        n_users_not_evaluated: Number of users with an item in the part who were not drawn for a sample.
    """

    part: str
    mean: dict[str, float]
    values: Mapping[str, np.ndarray]
    user_ids: np.ndarray
    n_users_without_training: int
    n_users_not_evaluated: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", ByMetric(self.mean))
        object.__setattr__(self, "values", ByMetric(self.values))

    @property
    def n_users(self) -> int:
        """Number of evaluated users."""
        return len(self.user_ids)

    @cached_property
    def per_user(self) -> pl.DataFrame:
        """A frame with one row per evaluated user: the raw id in ``user``, then one column per metric."""
        import polars as pl

        return pl.DataFrame({"user": self.user_ids.tolist(), **self.values})

    def interval(self, key: str, *, level: float = 0.95) -> tuple[float, float]:
        """The Student t confidence interval of a mean over users.

        Args:
            key: A metric, such as ``"ndcg@20"``.
            level: Confidence level, strictly between 0 and 1.

        Returns:
            Lower and upper end; (nan, nan) for a single user.
        """
        if key in self.values:
            return mean_interval(self.values[key], level)
        if key in self.mean:
            raise InputError(f"{key} has no interval: it is one number for all users together")
        raise InputError(f"{key!r} was not evaluated; this report has {', '.join(self.mean)}")

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values, for JSON.

        Returns:
            Means and 95% confidence intervals, None where undefined.
        """
        return {
            "part": self.part,
            "n_users": self.n_users,
            "n_users_without_training": self.n_users_without_training,
            "n_users_not_evaluated": self.n_users_not_evaluated,
            "mean": {key: _or_none(value) for key, value in self.mean.items()},
            "interval": {key: [_or_none(end) for end in self.interval(key)] for key in self.values},
        }

    def _repr_html_(self) -> str:
        intervals = {key: self.interval(key) for key in self.values}
        return metrics_html(f"{self.part}: {self.n_users:,} users", self.mean, intervals, self._notes())

    def _notes(self) -> list[str]:
        """What a reader should know of the users."""
        found = []
        if self.n_users_without_training:
            found.append(f"{self.n_users_without_training:,} of these users have no training interactions")
        if self.n_users_not_evaluated:
            found.append(f"drawn at random of {self.n_users + self.n_users_not_evaluated:,} users")
        return found

    def __str__(self) -> str:
        """A short table: a line per metric, a column per k."""
        cutoffs = list(dict.fromkeys(key.partition("@")[2] for key in self.mean if "@" in key))
        names = list(dict.fromkeys(key.partition("@")[0] for key in self.mean))
        lines = [f"{self.part}: {self.n_users:,} users"]
        if cutoffs:
            lines.append(" " * 10 + "".join(f"{'@' + k:>10}" for k in cutoffs))
        for name in names:
            keys = [f"{name}@{k}" for k in cutoffs] if name not in self.mean else [name]
            lines.append(f"{name:<10}" + "".join(f"{_short(self.mean[key]):>10}" for key in keys))
        return "\n".join([*lines, *self._notes()])

    __repr__ = __str__


def metrics_html(
    title: str,
    mean: Mapping[str, float | None],
    intervals: Mapping[str, Sequence[float | None] | None],
    notes: Sequence[str] = (),
) -> str:
    """A table for a notebook: a row per metric, a column per list length, with 95% intervals over users."""
    lengths = list(dict.fromkeys(key.partition("@")[2] for key in mean if "@" in key)) or [""]
    names = list(dict.fromkeys(key.partition("@")[0] for key in mean))

    def cell(key: str) -> str:
        low, high = intervals.get(key) or (None, None)
        return with_half_width(mean[key], math.nan if low is None or high is None else (high - low) / 2)

    rows = [
        (name, *("" for _ in lengths[1:]), cell(name))
        if name in mean
        else (name, *(cell(key) if (key := f"{name}@{length}") in mean else "" for length in lengths))
        for name in names
    ]
    return html_table(title, ("mean ± 95%", *(f"@{length}" if length else "" for length in lengths)), rows, notes=notes)


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _short(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"
