"""The runs of one dataset and model, and their comparison with EASE and the paper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final

import numpy as np

from bayesneg.evaluation.statistics import Estimate, mean_interval, paired_difference
from bayesneg.report.names import signed
from bayesneg.reproduction.published import published
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord
from benchmarks import archive
from benchmarks.studies.beyond import RESULTS, Training, archived, curve, folds, studied, written
from benchmarks.studies.choosing import (
    MAIN,
    Choice,
    SearchSpace,
    Setting,
    TrialRuns,
    UnsettledError,
    best_baseline,
    chosen,
    setting_of,
    tried,
)
from benchmarks.studies.plans import MIDDLE, plan_of

PUBLISHED: Final = ("RNS", "PNS", "AOBPR", "DNS", "SRNS", "BNS")  # rows of the paper's table 2


Part = tuple[list[RunRecord], RunRecord]  # the runs on a test part, and EASE there


@dataclass(frozen=True)
class DatasetStudy:
    """The runs of one dataset and model."""

    dataset: str
    model: str
    found: Sequence[Entry]

    @property
    def name(self) -> str:
        return f"{self.dataset}-{self.model}"

    @cached_property
    def space(self) -> SearchSpace:
        return plan_of(self.dataset, self.model).space()

    @property
    def start(self) -> Setting:
        """What the search begins with: its samplers and models are changes of this."""
        return plan_of(self.dataset, self.model).completed((MIDDLE, {}))

    @cached_property
    def choice(self) -> Choice | None:
        try:
            return chosen(self.found, self.space)
        except UnsettledError:
            return None

    def of(self, row: Training) -> list[RunRecord]:
        """The runs of a training on test labels, by its settings."""
        return [
            entry.record
            for entry in self.judged(row.dataset)
            if (setting_of(entry), entry.cell["epochs"]) == (row.setting, row.epochs) and entry.cell["sampler"]
        ]

    def judged(self, dataset: str) -> list[Entry]:
        """The runs on test labels, trained on the whole training part or on the share in the name."""
        return [entry for entry in self.found if entry.cell["view"] == "last" and entry.cell["dataset"] == dataset]

    def ease(self, dataset: str) -> dict[float, RunRecord]:
        """By its l2."""
        solved = plan_of(self.dataset, self.model).solved()
        own = (entry for entry in self.judged(dataset) if entry.cell["model"] == "ease")
        kept = ((entry.cell["model_settings"], entry.record) for entry in own)
        return {float(settings["l2"]): record for settings, record in kept if settings in solved}

    @property
    def als(self) -> RunRecord | None:
        """ALS as validation chose it, on the test labels."""
        best = best_baseline(self.found, "als", plan_of(self.dataset, self.model).als, self.space)
        own = (entry for entry in self.judged(self.dataset) if entry.cell["model"] == "als")
        return next((entry.record for entry in own if entry.cell["model_settings"] == best), None)

    @property
    def n_looks(self) -> int:
        """How many choices have been evaluated on the test part so far."""
        looks = [entry for entry in self.judged(self.dataset) if entry.cell["label"] == "chosen on validation"]
        return len({json.dumps((setting_of(entry), entry.cell["epochs"]), sort_keys=True) for entry in looks})

    def deals(self) -> dict[int, list[Part]]:
        """What was chosen and EASE on other test parts, in each deal that was run to its end, with as many seeds."""
        found: dict[int, list[Part]] = {}
        if self.choice is None:
            return found
        for place, deal in enumerate(folds(self.dataset, self.model, self.choice), start=1):
            own = [(self.of(row), self.ease(row.dataset).get(self.choice.l2)) for row in deal]
            parts = [(runs, ease) for runs, ease in own if runs and ease is not None]
            if len(parts) == len(deal) and len({len(runs) for runs, _ in chain(parts, *found.values())}) == 1:
                found[place] = parts
        return found

    def curves(self) -> dict[str, dict[int, list[RunRecord]]]:
        """For each prior the runs with every number of candidates; empty unless ``curve`` was run."""
        own = studied(self.dataset, self.model, self.choice)
        if own is None:
            return {}
        rows = curve(self.dataset, self.model, *own)
        found = {prior: {m: self.of(row) for m, row in own.items()} for prior, own in rows.items()}
        kept = {prior: {m: runs for m, runs in own.items() if runs} for prior, own in found.items()}
        return kept if all(len(own) > 1 for own in kept.values()) else {}


def studies() -> list[DatasetStudy]:
    found = []
    for path in sorted(RESULTS.glob("*.parquet")):
        dataset, _, model = path.stem.rpartition("-")
        if model != archive.SHARED:
            found.append(DatasetStudy(dataset, model, list(archived(dataset, model).values())))
    return found


def over_users(own: Sequence[RunRecord], other: Sequence[RunRecord]) -> str:
    """The difference of two rows, each user's mean over the seeds, with its interval."""
    means = [np.mean([(run.per_user or {})[MAIN] for run in runs], axis=0) for runs in (own, other)]
    return _with_interval(paired_difference(*means))


def _with_interval(found: Estimate) -> str:
    return f"{signed(found.mean, 4)} ({signed(found.low, 4)} to {signed(found.high, 4)})"


class Against:
    """Runs against EASE, which has no seed: over users (each one's mean over the seeds), and over seeds.

    With several test parts a user's value, and that of a seed, is the mean over them; every user is tested in each.
    """

    def __init__(self, *parts: tuple[Sequence[RunRecord], RunRecord]) -> None:
        own = np.array([[(run.per_user or {})[MAIN] for run in runs] for runs, _ in parts])  # (parts, seeds, users)
        ease = np.array([(record.per_user or {})[MAIN] for _, record in parts])  # (parts, users)
        self.users = paired_difference(own.mean(axis=(0, 1)), ease.mean(axis=0))
        gaps = [[(run.final[MAIN] or 0.0) - (record.final[MAIN] or 0.0) for run in runs] for runs, record in parts]
        self.seeds = mean_interval(np.mean(gaps, axis=0))

    @property
    def gap(self) -> str:
        return _with_interval(self.users)

    @property
    def verdict(self) -> str:
        """Above or below where both intervals are; one seed has none."""
        if self.users.low > 0 and self.seeds[0] > 0:
            return "above"
        return "below" if self.users.high < 0 and self.seeds[1] < 0 else "not distinguishable"


def best_published(dataset: str) -> dict[str, float]:
    """The paper's best NDCG@20 by model; 0 where it has none."""
    return {
        model: max(published(f"table2/{name}", dataset, model).get(MAIN, 0.0) for name in PUBLISHED)
        for model in ("mf", "lightgcn")
    }


def text_of(setting: Setting) -> str:
    return written({**setting[0], **setting[1]})


def search(study: DatasetStudy) -> list[dict[str, Any]]:
    """Every setting that was evaluated on validation.

    ``gain`` is the difference from the setting that the search starts with, on the tenths that both were evaluated on, one
    seed, each at its best epoch. Settings outside the search do not take part in the choice.
    """
    length = study.space.epochs
    start = next((one for one in tried(study.found) if (one.setting, one.epochs) == (study.start, length)), None)
    rows = []
    for kind in ("", "ease", "als"):
        for one in sorted(tried(study.found, kind=kind), key=lambda one: (-len(one.runs), -one.best[0])):
            value, epoch = one.best
            is_papers = not kind and "prior" not in one.setting[0]
            gap = None if start is None or one.setting == study.start else gain(one, start)
            rows.append(
                {
                    "dataset": study.dataset,
                    "model": kind or study.model,
                    "beside": study.model,
                    "setting": "the paper's BNS" if is_papers else text_of(one.setting),
                    "in_space": int(is_papers or _is_in_space(study, kind, one)),
                    "tenths": len(one.runs),
                    "runs": sum(map(len, one.runs.values())),
                    "ndcg@20": value,
                    "gain": "" if gap is None else gap,
                    "best_epoch": "" if kind else epoch,
                    "epochs": "" if kind else one.epochs,
                }
            )
    return rows


def _is_in_space(study: DatasetStudy, kind: str, one: TrialRuns) -> bool:
    """Whether the plan of today names it."""
    if kind:
        return one.setting[1] in (study.space.ease if kind == "ease" else plan_of(study.dataset, study.model).als)
    return one.setting in study.space.settings and one.epochs == study.space.epochs


def gain(one: TrialRuns, start: TrialRuns) -> float | None:
    """By how much a setting is better than another on the tenths that both were evaluated on, each at its best epoch."""
    both = [view for view in one.runs if view in start.runs]
    return one.with_one_seed().on(both)[0] - start.with_one_seed().on(both)[0] if both else None
