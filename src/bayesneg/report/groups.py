"""Which runs belong together.

Runs of one sampler and loss that differ only in their seed form a *group*: a row of the table, a line in a plot.
Groups that were judged on the same dataset form a *study*; numbers are compared inside a study only.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bayesneg.errors import InputError
from bayesneg.runs.record import RunRecord, is_number


def as_records(given: Any) -> list[RunRecord]:
    """The records of runs and records, one or several."""
    from bayesneg.runs.run import Run  # imports numba, which the help of a command does without

    several = [given] if isinstance(given, Run | RunRecord) else given
    if not isinstance(several, Iterable) or isinstance(several, str):
        raise InputError(f"records must be runs, as bn.fit and bn.compare return them, got {given!r:.60}")
    found = [each.record if isinstance(each, Run) else each for each in several]
    for each in found:
        if not isinstance(each, RunRecord):
            raise InputError(f"records: each must be a run or the record of one, got {each!r:.60}")
    return found


@dataclass(frozen=True)
class RunGroup:
    """The runs of one sampler, one per seed; ``name`` is unique in the study."""

    name: str
    runs: tuple[RunRecord, ...]

    @property
    def uses_test_labels(self) -> bool:
        return any(run.uses_test_labels for run in self.runs)

    @property
    def is_baseline(self) -> bool:
        return all(run.is_baseline for run in self.runs)

    @property
    def loss(self) -> str:
        """The loss with its settings; empty for a baseline."""
        return self.runs[0].loss

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.seed for run in self.runs)

    @property
    def marked_name(self) -> str:
        """The name, marked where the sampler sees what no fair one may see."""
        return f"{self.name} (sees test labels)" if self.uses_test_labels else self.name


def unsaid_losses(groups: Sequence[RunGroup]) -> dict[str, str]:
    """Name of a group → its loss, where losses differ and the name does not say it.

    >>> runs = [RunRecord(label=name, seed=0, dataset="toy", loss=name) for name in ("BPR", "Softmax")]
    >>> unsaid_losses([RunGroup("one", (runs[0],)), RunGroup("BNS + Softmax", (runs[1],))])
    {'one': 'BPR'}
    """
    trained = [group for group in groups if not group.is_baseline]
    if len({group.loss for group in trained}) < 2:
        return {}
    return {group.name: group.loss for group in trained if group.loss not in group.name}


def studies(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """The runs by dataset, in the order given."""
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(run.dataset, []).append(run)
    return found


def run_groups(runs: Sequence[RunRecord]) -> list[RunGroup]:
    """The groups of one study, in the order of their first run, each with its runs by seed.

    A seed counts once per group: a run given twice is dropped, and a second, different run of the same
    sampler and seed (other epochs, say) starts a group of its own; no interval shrinks by counting twice.
    """
    if len(studies(runs)) > 1:
        raise InputError(f"runs of several datasets cannot be compared: {', '.join(studies(runs))}; see studies()")
    several_models = len({run.model for run in runs if not run.is_baseline}) > 1
    losses: dict[str, set[str]] = {}
    models: dict[str, set[str]] = {}
    for run in runs:
        losses.setdefault(run.label, set()).add(run.loss)
        models.setdefault(run.label, set()).add(run.model)
    found: dict[tuple[str, int], list[RunRecord]] = {}
    for run in runs:
        is_said = len(models[run.label]) == 1 and run.label.startswith(f"{run.model.partition(' ')[0]} ")
        named = several_models and run.model and not run.is_baseline and not is_said
        name = f"{run.label} · {run.model}" if named else run.label
        name += f" · {run.loss}" if len(losses[run.label]) > 1 else ""
        place = 1
        while any(other.seed == run.seed for other in found.get((name, place), ())):
            place += 1
        earlier = [other for at in range(1, place) for other in found[name, at] if other.seed == run.seed]
        if not any(_same_result(run, other) for other in earlier):
            found.setdefault((name, place), []).append(run)
    return [
        RunGroup(name if place == 1 else f"{name} [{place}]", tuple(sorted(own, key=lambda run: run.seed)))
        for (name, place), own in found.items()
    ]


def _same_result(a: RunRecord, b: RunRecord) -> bool:
    return (a.spec, a.final, a.epochs) == (b.spec, b.final, b.epochs)


def final_value(run: RunRecord, key: str) -> float:
    """The final metric; NaN where it was not or could not be measured."""
    value = run.final.get(key)
    return float(value) if value is not None and is_number(value) else math.nan


def median_seconds(group: RunGroup) -> float:
    """Of an epoch, over all epochs and seeds; NaN where no run recorded them."""
    seconds = [value for run in group.runs for value in run.at_epochs("seconds").values()]
    return statistics.median(seconds) if seconds else math.nan
