"""How beyond.py chooses a setting from records alone: on validation, never by a test label.

Every setting of a contest is judged on the first random tenths of the training part, the best of them, and EASE with
every l2, on more. The best mean over these is chosen, with the epoch that has it. What is not of the contest has no
say, and while something of it is missing nothing is chosen.
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
FINALISTS: Final = 4  # settings that are judged on the other tenths too

Setting = tuple[dict[str, Any], dict[str, Any]]  # of the sampler, of the model
Runs = dict[str, list[RunRecord]]  # tenth → runs judged on it, the first seed first


class Contest(NamedTuple):
    """What is to be judged, and on how much."""

    settings: Sequence[Setting]
    epochs: int
    ease: Sequence[dict[str, Any]]  # its settings
    n_first: int = 1  # tenths that every setting is judged on
    n_all: int = 3  # tenths that the finalists and EASE are judged on

    @property
    def first(self) -> list[str]:
        return list(TENTHS)[: self.n_first]

    @property
    def all(self) -> list[str]:
        return list(TENTHS)[: self.n_all]


class Tried(NamedTuple):
    """A setting that was judged on validation."""

    setting: Setting
    epochs: int
    runs: Runs

    @property
    def best(self) -> tuple[float, int]:
        """On all tenths it was judged on."""
        return self.on(list(self.runs))

    def on(self, views: Sequence[str]) -> tuple[float, int]:
        """The highest mean over some tenths (each the mean of its runs), and the first epoch that has it."""
        curves = [[_curve(record) for record in self.runs[view]] for view in views]
        common = set.intersection(*(set(curve) for tenth in curves for curve in tenth))
        mean = {at: fmean(fmean(curve[at] for curve in tenth) for tenth in curves) for at in common}
        epoch = max(mean, key=lambda at: (mean[at], -at))
        return mean[epoch], epoch

    def with_one_seed(self) -> Tried:
        """As every setting was judged at first."""
        return self._replace(runs={view: records[:1] for view, records in self.runs.items()})

    def has(self, views: Iterable[str]) -> bool:
        return set(views) <= set(self.runs)


class Choice(NamedTuple):
    """What was best on validation."""

    setting: Setting
    epoch: int
    l2: float  # of EASE


class UnsettledError(Exception):
    """Not all that it takes to choose has been judged; says what is to be run."""


def tried(found: Iterable[Entry], *, kind: str = "") -> list[Tried]:
    """Every setting that was judged on validation; of a baseline, where ``kind`` names one."""
    by_setting: dict[str, Tried] = {}
    for entry in sorted(found, key=lambda entry: int(entry.cell["seed"])):
        own = entry.cell["model"] == kind if kind else bool(entry.cell["sampler"])
        if entry.cell["view"] in TENTHS and own:
            epochs = int(entry.cell["epochs"])
            key = json.dumps((setting_of(entry), epochs), sort_keys=True)
            runs = by_setting.setdefault(key, Tried(setting_of(entry), epochs, {})).runs
            runs.setdefault(entry.cell["view"], []).append(entry.record)
    return list(by_setting.values())


def finalists(found: Sequence[Entry], contest: Contest) -> list[Tried]:
    """The best settings of the contest on its first tenths."""
    own = [one for one in tried(found) if one.setting in contest.settings and one.epochs == contest.epochs]
    judged = [one for one in own if one.has(contest.first)]
    if n_missing := len(contest.settings) - len(judged):
        raise UnsettledError(f"{n_missing} of {len(contest.settings)} settings are not judged yet: `beyond.py search`")
    return sorted(judged, key=lambda one: -one.with_one_seed().on(contest.first)[0])[:FINALISTS]


def chosen(found: Sequence[Entry], contest: Contest) -> Choice:
    """What was best on all tenths of the contest."""
    best = finalists(found, contest)
    solved = [one for one in tried(found, kind="ease") if one.setting[1] in contest.ease]
    if len(solved) < len(contest.ease) or not all(one.has(contest.all) for one in (*best, *solved)):
        raise UnsettledError("not every finalist, or EASE, has been judged on every tenth yet: `beyond.py finalists`")
    winner, ease = (max(field, key=lambda one: one.on(contest.all)[0]) for field in (best, solved))
    return Choice(winner.setting, winner.on(contest.all)[1], float(ease.setting[1]["l2"]))


def best_baseline(
    found: Sequence[Entry], kind: str, settings: Sequence[dict[str, Any]], contest: Contest
) -> dict[str, Any] | None:
    """The settings of a baseline that were best on the first tenths; None while some are not judged there."""
    judged = [one for one in tried(found, kind=kind) if one.setting[1] in settings and one.has(contest.first)]
    if not settings or len(judged) < len(settings):
        return None
    return max(judged, key=lambda one: one.on(contest.first)[0]).setting[1]


def setting_of(entry: Entry) -> Setting:
    return dict(entry.cell["sampler_settings"]), dict(entry.cell["model_settings"])


def _curve(record: RunRecord) -> dict[int, float]:
    return {int(line["epoch"]): float(line[MAIN]) for line in record.epochs if MAIN in line}
