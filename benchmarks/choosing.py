"""How beyond.py chooses a setting from records alone: on validation, never by a test label.

Every setting is judged on a few random tenths of the training part, the best of them, and EASE with every l2, on more.
The best mean over these is chosen, with the epoch that has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

from bayesneg.experiments.cells import View
from bayesneg.experiments.datasets import TENTHS
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord

MAIN: Final = "ndcg@20"
FINALISTS: Final = 4  # settings that are judged on the other tenths too

Setting = tuple[dict[str, Any], dict[str, Any]]  # of the sampler, of the model
Runs = dict[str, list[RunRecord]]  # tenth → runs judged on it, the first seed first


class Tenths(NamedTuple):
    """How many tenths of the training part are held out in turn."""

    searched: int = 1  # for every setting
    final: int = 3  # for the finalists and EASE

    @property
    def first(self) -> list[View]:
        return list(TENTHS)[: self.searched]

    @property
    def all(self) -> list[View]:
        return list(TENTHS)[: self.final]


class Tried(NamedTuple):
    """A setting that was judged on validation."""

    setting: Setting
    runs: Runs

    @property
    def best(self) -> tuple[float, int]:
        """The highest mean over the tenths (each the mean of its runs), and the first epoch that has it."""
        return _best(self.runs)

    def on(self, views: Sequence[str]) -> float:
        """The highest mean over some tenths, with one seed; −∞ where one of them is missing."""
        if not self.has(views):
            return float("-inf")
        return _best({view: self.runs[view][:1] for view in views})[0]

    def has(self, views: Sequence[str]) -> bool:
        return set(views) <= set(self.runs)


class Choice(NamedTuple):
    """What was best on validation."""

    setting: Setting
    epoch: int
    l2: float  # of EASE


def tried(found: Iterable[Entry], *, kind: str = "") -> list[Tried]:
    """Every setting that was judged on validation; of a baseline, where ``kind`` names one."""
    by_setting: dict[str, Tried] = {}
    for entry in sorted(found, key=lambda entry: int(entry.cell["seed"])):
        own = entry.cell["model"] == kind if kind else bool(entry.cell["sampler"])
        if entry.cell["view"] in TENTHS and own:
            key = json.dumps((setting_of(entry), entry.cell["epochs"]), sort_keys=True)
            runs = by_setting.setdefault(key, Tried(setting_of(entry), {})).runs
            runs.setdefault(entry.cell["view"], []).append(entry.record)
    return list(by_setting.values())


def finalists(found: Iterable[Entry], tenths: Tenths) -> list[Tried]:
    """The best settings on the first tenths; the paper's own is no candidate, nor what is missing on one of them."""
    ours = [one for one in tried(found) if "prior" in one.setting[0] and one.has(tenths.first)]
    return sorted(ours, key=lambda one: -one.on(tenths.first))[:FINALISTS]


def chosen(found: Sequence[Entry], tenths: Tenths) -> Choice:
    """What was best on validation; an error where not all that it takes has been judged."""
    best, solved = finalists(found, tenths), tried(found, kind="ease")
    if not best or not solved:
        raise SystemExit("nothing has been searched yet; run `beyond.py search` first")
    if not all(one.has(tenths.all) for one in (*best, *solved)):
        raise SystemExit("not every finalist has been judged on every tenth; run `beyond.py finalists` first")
    winner = max(best, key=lambda one: one.best[0])
    ease = max(solved, key=lambda one: one.best[0])
    return Choice(winner.setting, winner.best[1], float(ease.setting[1]["l2"]))


def is_settled(found: Sequence[Entry], tenths: Tenths) -> bool:
    """Whether :func:`chosen` has an answer."""
    try:
        chosen(found, tenths)
    except SystemExit:
        return False
    return True


def setting_of(entry: Entry) -> Setting:
    return dict(entry.cell["sampler_settings"]), dict(entry.cell["model_settings"])


def _best(runs: Runs) -> tuple[float, int]:
    tenths = [[_curve(record) for record in records] for records in runs.values()]
    mean = {at: fmean(fmean(curve[at] for curve in curves) for curves in tenths) for at in tenths[0][0]}
    epoch = max(mean, key=lambda at: (mean[at], -at))
    return mean[epoch], epoch


def _curve(record: RunRecord) -> dict[int, float]:
    return {int(line["epoch"]): float(line[MAIN]) for line in record.epochs if MAIN in line}
