"""How the study chooses a setting: on validation splits, never on test labels.

Every setting of a search is evaluated on the first random tenths of the training part; the best four, and EASE with
every l2, on more. The setting and epoch with the best mean over the tenths are chosen. Settings outside the search are
ignored, and nothing is chosen while an evaluation is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord
from benchmarks.studies.splits import TENTHS

MAIN: Final = "ndcg@20"
FINALISTS: Final = 4  # settings that are evaluated on the other tenths too

Setting = tuple[dict[str, Any], dict[str, Any]]  # of the sampler, of the model
Runs = dict[str, list[RunRecord]]  # tenth → runs evaluated on it, by seed


class SearchSpace(NamedTuple):
    """The settings of a search and the tenths that they are evaluated on."""

    settings: Sequence[Setting]
    epochs: int
    ease: Sequence[dict[str, Any]]  # its settings
    n_first: int = 1  # tenths that every setting is evaluated on
    n_all: int = 3  # tenths that the finalists and EASE are evaluated on

    @property
    def first(self) -> list[str]:
        return list(TENTHS)[: self.n_first]

    @property
    def all(self) -> list[str]:
        return list(TENTHS)[: self.n_all]


class TrialRuns(NamedTuple):
    """A setting and its runs on validation splits."""

    setting: Setting
    epochs: int
    runs: Runs

    @property
    def best(self) -> tuple[float, int]:
        """The highest mean over all its tenths, and its epoch."""
        return self.on(list(self.runs))

    def on(self, views: Sequence[str]) -> tuple[float, int]:
        """The highest mean over some tenths (each the mean of its runs), and the first epoch that has it."""
        curves = [[_curve(record) for record in self.runs[view]] for view in views]
        common = set.intersection(*(set(curve) for tenth in curves for curve in tenth))
        mean = {at: fmean(fmean(curve[at] for curve in tenth) for tenth in curves) for at in common}
        epoch = max(mean, key=lambda at: (mean[at], -at))
        return mean[epoch], epoch

    def with_one_seed(self) -> TrialRuns:
        """With the first seed of every tenth alone."""
        return self._replace(runs={view: records[:1] for view, records in self.runs.items()})

    def has(self, views: Iterable[str]) -> bool:
        return set(views) <= set(self.runs)


class Choice(NamedTuple):
    """What was best on validation."""

    setting: Setting
    epoch: int
    l2: float  # of EASE


class UnsettledError(Exception):
    """An evaluation that the choice needs is missing; the message says which part to run."""


def tried(found: Iterable[Entry], *, kind: str = "") -> list[TrialRuns]:
    """Every setting that was evaluated on validation; of a baseline, if ``kind`` names one."""
    by_setting: dict[str, TrialRuns] = {}
    for entry in sorted(found, key=lambda entry: int(entry.cell["seed"])):
        own = entry.cell["model"] == kind if kind else bool(entry.cell["sampler"])
        if entry.cell["view"] in TENTHS and own:
            epochs = int(entry.cell["epochs"])
            key = json.dumps((setting_of(entry), epochs), sort_keys=True)
            runs = by_setting.setdefault(key, TrialRuns(setting_of(entry), epochs, {})).runs
            runs.setdefault(entry.cell["view"], []).append(entry.record)
    return list(by_setting.values())


def finalists(found: Sequence[Entry], space: SearchSpace) -> list[TrialRuns]:
    """The best settings of the search on its first tenths."""
    own = [one for one in tried(found) if one.setting in space.settings and one.epochs == space.epochs]
    judged = [one for one in own if one.has(space.first)]
    if n_missing := len(space.settings) - len(judged):
        raise UnsettledError(f"{n_missing} of {len(space.settings)} settings are not evaluated yet: run `search`")
    return sorted(judged, key=lambda one: -one.with_one_seed().on(space.first)[0])[:FINALISTS]


def chosen(found: Sequence[Entry], space: SearchSpace) -> Choice:
    """The best setting, its epoch, and the best l2 of EASE, on all tenths of the search."""
    best = finalists(found, space)
    solved = [one for one in tried(found, kind="ease") if one.setting[1] in space.ease]
    if len(solved) < len(space.ease) or not all(one.has(space.all) for one in (*best, *solved)):
        raise UnsettledError("a finalist or EASE is not evaluated on every tenth yet: run `finalists`")
    winner, ease = (max(field, key=lambda one: one.on(space.all)[0]) for field in (best, solved))
    return Choice(winner.setting, winner.on(space.all)[1], float(ease.setting[1]["l2"]))


def best_baseline(
    found: Sequence[Entry], kind: str, settings: Sequence[dict[str, Any]], space: SearchSpace
) -> dict[str, Any] | None:
    """The best settings of a baseline on the first tenths; None while some are not evaluated there."""
    judged = [one for one in tried(found, kind=kind) if one.setting[1] in settings and one.has(space.first)]
    if not settings or len(judged) < len(settings):
        return None
    return max(judged, key=lambda one: one.on(space.first)[0]).setting[1]


def setting_of(entry: Entry) -> Setting:
    return dict(entry.cell["sampler_settings"]), dict(entry.cell["model_settings"])


def _curve(record: RunRecord) -> dict[int, float]:
    return {int(line["epoch"]): float(line[MAIN]) for line in record.epochs if MAIN in line}
