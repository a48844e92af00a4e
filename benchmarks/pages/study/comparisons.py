"""The paired tests of the study: differences of NDCG@20 over users, with Holm's correction within each family.

A test whose runs are missing belongs to its family all the same, with p = 1: a corrected p-value is as large as it can
become by the runs that are still to come, and never larger once they are there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bayesneg.evaluation.statistics import LEVEL, NOT_MEASURED, Estimate, holm, paired_difference
from benchmarks.pages.study.records import OURS, RIVALS, Dataset, FinalRuns, Records, pairs
from benchmarks.pages.text import signed
from benchmarks.studies.negatives import plan
from benchmarks.studies.negatives.contenders import BASELINES
from benchmarks.studies.negatives.plan import EQUAL

DRAWS: Final = {"bsl": "uniform", "in-batch": "in-batch"}  # by the contender without weights
LEFT: Final = 0.001  # a ceiling below this is reported and left


@dataclass(frozen=True)
class Comparison:
    """One contender minus another on the test part; ``difference.p_value`` is not corrected, ``holm`` is."""

    family: str
    dataset: str
    model: str
    one: str
    other: str
    difference: Estimate
    holm: float = math.nan

    @property
    def is_measured(self) -> bool:
        return self.difference.n > 0

    @property
    def verdict(self) -> str:
        if not self.is_measured:
            return "not run"
        if not self.holm < LEVEL:
            return "not shown"
        return "above" if self.difference.mean > 0 else "below"

    @property
    def text(self) -> str:
        """The difference with its interval and its corrected p-value."""
        if not self.is_measured:
            return "–"
        return f"{with_interval(self.difference)}, {p_text(self.holm)}"

    def row(self) -> dict[str, Any]:
        """For the table of all tests."""
        found = self.difference
        return {
            "family": self.family,
            "dataset": self.dataset,
            "model": self.model,
            "one": self.one,
            "other": self.other,
            "users": found.n,
            "difference": found.mean,
            "low": found.low,
            "high": found.high,
            "p": f"{found.p_value:.3g}",
            "p_holm": f"{self.holm:.3g}",
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Combination:
    """A dataset, a model and a draw: what the weights bring at the setting of the contender without them."""

    records: Records
    without: str
    posterior: Comparison
    oracle: Comparison

    @property
    def draw(self) -> str:
        return DRAWS[self.without]

    @property
    def title(self) -> str:
        return f"{self.records.title}, {self.draw}"

    @property
    def is_left(self) -> bool:
        """Whether even a perfect prior brings next to nothing."""
        return self.oracle.is_measured and self.oracle.difference.mean < LEFT

    @property
    def has_failed(self) -> bool:
        """As the plan says: the interval of the posterior is not above 0 while that of the oracle is."""
        if not (self.posterior.is_measured and self.oracle.is_measured):
            return False
        return self.oracle.difference.low > 0 and not self.posterior.difference.low > 0


def weighted(without: str, kind: str) -> str:
    """The contender with the weights of a kind, posterior or oracle, for the one without.

    >>> weighted("in-batch", "oracle")
    'in-batch oracle'
    """
    return next(name for name, base in EQUAL.items() if base == without and name.endswith(kind))


def combinations(found: Sequence[Dataset]) -> list[Combination]:
    """The sixteen of the plan, with those that are not run yet."""
    families: dict[str, list[Comparison]] = {"posterior": [], "oracle": []}
    places = []
    for _, records in pairs(found):
        for without in DRAWS:
            places.append((records, without))
            for kind, family in families.items():
                name = weighted(without, kind)
                own, other = records.final(name, equal=True), records.final(without)
                family.append(_compared(f"equal setting, {kind}", records, (name, own), (without, other)))
    both = zip(*(corrected(family) for family in families.values()), strict=True)
    return [Combination(*place, *tests) for place, tests in zip(places, both, strict=True)]


def secondary(dataset: Dataset, records: Records) -> list[Comparison]:
    """Each at its own best setting: ours against all others, and the best on validation against the baselines."""
    searched = plan.SEARCHING if records.names_follow else records.names
    rivals = [*(name for name in RIVALS if name in searched), *BASELINES]
    wanted = [(one, other) for one in OURS if one in searched for other in rivals]
    if records.best is not None:
        wanted += [(records.best.name, other) for other in BASELINES]
    family = [
        _compared("own best setting", records, (one, records.final(one)), (other, _runs_of(dataset, records, other)))
        for one, other in dict.fromkeys(wanted)
    ]
    return corrected(family)


def against(dataset: Dataset, records: Records, one: str, other: str) -> Comparison:
    """A comparison outside the families of the plan; its p-value is not corrected."""
    return _compared("", records, (one, records.final(one)), (other, _runs_of(dataset, records, other)))


def _runs_of(dataset: Dataset, records: Records, name: str) -> FinalRuns | None:
    return (dataset.baselines if name in BASELINES else records).final(name)


def _compared(
    family: str, records: Records, one: tuple[str, FinalRuns | None], other: tuple[str, FinalRuns | None]
) -> Comparison:
    (name, own), (rival, runs) = one, other
    found = NOT_MEASURED if own is None or runs is None else paired_difference(own.per_user, runs.per_user)
    return Comparison(family, records.dataset, records.model, name, rival, found)


def corrected(family: Sequence[Comparison]) -> list[Comparison]:
    """With Holm's correction over the whole family, the tests that are still to come included."""
    adjusted = holm([one.difference.p_value if one.is_measured else 1.0 for one in family])
    return [
        replace(one, holm=p if one.is_measured else math.nan) for one, p in zip(family, adjusted, strict=True)
    ]  # fmt: skip


def with_interval(found: Estimate) -> str:
    return f"{signed(found.mean)} ({signed(found.low)} to {signed(found.high)})"


def p_text(p: float) -> str:
    """
    >>> p_text(0.0000012), p_text(0.0321), p_text(1.0)
    ('p < 0.001', 'p = 0.032', 'p = 1')
    """
    if math.isnan(p):
        return "p not computed"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3g}" if p == 1.0 else f"p = {p:.3f}"
