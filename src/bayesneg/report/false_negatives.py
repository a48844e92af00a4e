"""Which sampler picks the fewest false negatives, in words: the same for a comparison and for an audit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from bayesneg.evaluation.statistics import Estimate, estimate
from bayesneg.report.groups import RunGroup
from bayesneg.report.names import joined, percent
from bayesneg.runs.pairing import paired_over_seeds
from bayesneg.runs.record import RunRecord, is_number

ONE_SEED: Final = "One seed has no interval; more seeds (--seeds) would show the variance."

RateOfRun = Callable[[RunRecord], float]


class PickRates:
    """The false-negative rates of the samplers that may be compared, lowest mean first.

    An extreme is named only where the paired difference over seeds distinguishes it from every other sampler.

    Args:
        groups: The samplers of one dataset; those that see the test labels or picked nothing are left out.
        rate: The rate of a run.
        known: Whether the ground truth is known; if not, only held-out positives count.
    """

    def __init__(self, groups: Sequence[RunGroup], rate: RateOfRun, *, known: bool) -> None:
        fair = [group for group in groups if not group.uses_test_labels and not group.is_baseline]
        found = [(group, estimate(map(rate, group.runs))) for group in fair]
        found = [pair for pair in found if is_number(pair[1].mean)]
        self._groups = {group.name: group for group, _ in sorted(found, key=lambda pair: (pair[1].mean, pair[0].name))}
        self._rate = rate
        self.of: dict[str, Estimate] = {group.name: value for group, value in found}
        self.names = list(self._groups)
        self.leaves_out = any(group.uses_test_labels for group in groups)
        self.samplers = f"the samplers{' without test labels' if self.leaves_out else ''}"
        self.noun = "false negatives" if known else "known false negatives"

    @property
    def caveat(self) -> str:
        """What one seed cannot tell, with a space before; empty where every sampler has an interval."""
        return "" if all(value.has_interval for value in self.of.values()) else f" {ONE_SEED}"

    def clauses(self) -> list[str]:
        """Who picks the fewest and who the most, as clauses of a sentence."""
        low, high = self.names[0], self.names[-1]
        if len(self.names) == 1:
            return [f"{self.text(low)} of the picks of {low} are {self.noun}"]
        if math.isclose(self.of[low].mean, self.of[high].mean):
            return [f"{joined(self.names)} pick equally many {self.noun}, {percent(self.of[low].mean)} of their picks"]
        if self.caveat:
            ends = f"{self.text(low)} of its picks, and {high} the highest, {self.text(high)}"
            return [f"{low} has the lowest rate of {self.noun}, {ends}"]
        if not any(self.differ(one, other) for one in self.names for other in self.names):
            span = f"{self.text(low)} ({low}) to {self.text(high)} ({high}) of the picks"
            return [f"{joined(self.names)} are not distinguishable in their rates of {self.noun}: {span}"]
        return [self._extreme(low, "fewest", "lowest"), self._extreme(high, "most", "highest")]

    def text(self, name: str) -> str:
        """``5.0% ± 0.2%``."""
        return percent(self.of[name].mean, self.of[name].half_width)

    def _extreme(self, name: str, count: str, rate: str) -> str:
        rivals = [other for other in self.names if other != name and not self.differ(name, other)]
        if rivals:
            doubt = f"not distinguishable from {joined(rivals)}"
            return f"{name} has the {rate} mean rate of {self.noun}, {self.text(name)} of its picks, {doubt}"
        return f"{name} picks the {count} {self.noun}, {self.text(name)} of its picks"

    def differ(self, one: str, other: str) -> bool:
        """Whether the paired difference over seeds distinguishes two samplers."""
        return paired_over_seeds(self._groups[one].runs, self._groups[other].runs, self._rate).excludes_zero
