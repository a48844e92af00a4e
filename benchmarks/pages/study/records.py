"""The runs of the study as far as they are there: the search of each contender, and its final runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from bayesneg.evaluation.statistics import Estimate, estimate
from bayesneg.reproduction.studies import DATASETS, MODELS
from benchmarks.studies.negatives import choosing, plan, store
from benchmarks.studies.negatives.contenders import BASELINES, CONTENDERS
from benchmarks.studies.negatives.plan import Trial
from benchmarks.studies.negatives.store import Finished

MAIN: Final = "ndcg@20"
OURS: Final = ("posterior", "risk", "in-batch posterior")
RIVALS: Final = tuple(name for name, one in CONTENDERS.items() if name not in OURS and not one.is_oracle)
TITLES: Final = {"ease": "EASE", "als": "ALS", "rp3beta": "RP3β", "gfcf": "GF-CF"}


class Best(NamedTuple):
    """The best setting and epoch on validation, of the runs that are there."""

    trial: Trial
    epoch: int
    value: float
    run: Mapping[str, Any]

    @property
    def share(self) -> float | None:
        """Of the gradient that falls on held-out positives, at that epoch."""
        return next((line.get("gradient_fn") for line in self.run["epochs"] if line["epoch"] == self.epoch), None)

    @property
    def seconds(self) -> float:
        """Of training up to that epoch."""
        return float(self.run["training_seconds"]) * self.epoch / self.trial.epochs


@dataclass(frozen=True)
class Search:
    """The trainings of a contender on the validation part."""

    name: str
    trials: Sequence[Trial]  # that the plan asks for, as far as the finished ones tell
    runs: Finished  # the finished ones

    @property
    def is_complete(self) -> bool:
        return len(self.runs) == len(self.trials)

    @cached_property
    def best(self) -> Best | None:
        there = [trial for trial in self.trials if trial.key in self.runs]
        if not there:
            return None
        trial, epoch, value = choosing.best_of(self.runs, there)
        return Best(trial, epoch, value, self.runs[trial.key])

    @property
    def edges(self) -> list[str]:
        """The settings of three values or more whose best value is the lowest or highest tried."""
        if self.best is None:
            return []
        found = []
        for part in self.best.trial.setting._fields:
            for key, value in getattr(self.best.trial.setting, part).items():
                tried = {getattr(trial.setting, part).get(key) for trial in self.trials if trial.key in self.runs}
                if len(tried) > 2 and value in (min(tried), max(tried)):
                    found.append(f"{'lowest' if value == min(tried) else 'highest'} {key}")
        return found


class FinalRuns(NamedTuple):
    """The final runs of a setting, all seeds."""

    trial: Trial  # of the first seed
    runs: Sequence[Mapping[str, Any]]
    per_user: np.ndarray  # (n_users,) NDCG@20, mean over the seeds; nan for users without test items

    @property
    def value(self) -> Estimate:
        """NDCG@20 on the test part, with the interval over users."""
        return estimate(self.per_user, "users")

    @property
    def share(self) -> float | None:
        """Of the gradient that falls on test positives, in the last epoch."""
        return _mean([run["epochs"][-1].get("gradient_fn") for run in self.runs])

    @property
    def seconds(self) -> float:
        """Of training."""
        return float(np.mean([run["training_seconds"] for run in self.runs]))

    def mean(self, key: str) -> float | None:
        """Of a metric over the seeds; None where a run does not have it."""
        return _mean([run["final"].get(key) for run in self.runs])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


@dataclass(frozen=True)
class Records:
    """The runs of one dataset and model; the model of baselines is ``baseline``."""

    dataset: str
    model: str
    runs: Finished
    users: Mapping[str, np.ndarray]  # key of a final run → NDCG@20 (n_users,)
    with_mf: Records | None = None  # of the same dataset, which say what is searched with LightGCN

    @classmethod
    def read(cls, dataset: str, model: str) -> Records:
        """From the archive alone: a page does not depend on the files of unfinished work."""
        name = f"{dataset}-{model}"
        with_mf = cls.read(dataset, "mf") if model == "lightgcn" else None
        return cls(dataset, model, store.archived(name), store.per_user(name), with_mf)

    @property
    def title(self) -> str:
        model = "baselines" if self.model == plan.BASELINE else MODELS[self.model]
        return f"{DATASETS[self.dataset]}, {model}"

    @cached_property
    def names(self) -> list[str]:
        """Of what is searched: with MF all but the oracles, with LightGCN what the search with MF leaves."""
        if self.with_mf is not None:
            trials = [trial for search in self.with_mf.searches.values() for trial in search.trials]
            return choosing.for_lightgcn(self.with_mf.runs, trials)
        return list(BASELINES if self.model == plan.BASELINE else plan.SEARCHING)

    @property
    def names_follow(self) -> bool:
        """Whether more is searched once the search with MF is finished."""
        return self.with_mf is not None and len(self.names) == len(plan.BASES)

    @property
    def weighted_names(self) -> list[str]:
        """Of what is run at the setting of the contender without weights."""
        return [] if self.model == plan.BASELINE else list(plan.EQUAL)

    @property
    def pilot(self) -> list[Trial]:
        return [] if self.model == plan.BASELINE else plan.pilot(self.dataset, self.model)

    @property
    def n_piloted(self) -> int:
        return sum(trial.key in self.runs for trial in self.pilot)

    @cached_property
    def shared(self) -> dict[str, Any]:
        """What the pilot found for all contenders with cosine scores; empty while it is unfinished."""
        return choosing.of_pilot(self.runs, self.pilot) if self.pilot and self.n_piloted == len(self.pilot) else {}

    @cached_property
    def searches(self) -> dict[str, Search]:
        """The search of every contender; none while the pilot is unfinished."""
        if self.model == plan.BASELINE:
            first = plan.baselines(self.dataset, self.names)
        elif not self.shared:
            return {}
        else:
            first = plan.search(self.dataset, self.model, self.shared, self.names)
        trials = choosing.widened(self.runs, first)
        own = {name: [trial for trial in trials if trial.contender == name] for name in self.names}
        return {name: Search(name, some, self._finished(some)) for name, some in own.items()}

    def _finished(self, trials: Sequence[Trial]) -> Finished:
        return {trial.key: self.runs[trial.key] for trial in trials if trial.key in self.runs}

    @property
    def best(self) -> Search | None:
        """The contender that is best on validation, as far as they are searched."""
        begun = [(one.best.value, one) for one in self.searches.values() if one.best]
        return max(begun, key=lambda pair: pair[0])[1] if begun else None

    def validated_at(self, trial: Trial, epoch: int) -> float | None:
        """NDCG@20 of a training of the search at an epoch, on validation; None if it was not run."""
        lines = self.runs[trial.key]["epochs"] if trial.key in self.runs else []
        return next((float(line[MAIN]) for line in lines if line["epoch"] == epoch), None)

    def wanted(self, name: str, *, equal: bool = False) -> list[Trial]:
        """The final runs of a contender; none while the search that chooses their setting is unfinished.

        Args:
            name: The contender.
            equal: At the setting and epoch of the contender without weights, instead of its own best.
        """
        search = self.searches.get(plan.EQUAL[name] if equal else name)
        if search is None or not search.is_complete or search.best is None:
            return []
        return plan.final(search.best.trial._replace(contender=name), search.best.epoch)

    def final(self, name: str, *, equal: bool = False) -> FinalRuns | None:
        """The final runs of a contender; None unless those of all seeds are there."""
        trials = self.wanted(name, equal=equal)
        if not trials or any(trial.key not in self.runs or trial.key not in self.users for trial in trials):
            return None
        per_user = np.mean([self.users[trial.key] for trial in trials], axis=0)
        return FinalRuns(trials[0], [self.runs[trial.key] for trial in trials], per_user)

    @cached_property
    def finals(self) -> dict[str, FinalRuns]:
        """The contenders whose final runs are there, each at its own best setting."""
        found = {name: self.final(name) for name in self.names}
        return {name: runs for name, runs in found.items() if runs is not None}

    @property
    def oracles(self) -> dict[str, FinalRuns]:
        """The oracles whose final runs are there, each at the setting of the contender without weights."""
        found = {name: self.final(name, equal=True) for name in self.weighted_names if is_oracle(name)}
        return {name: runs for name, runs in found.items() if runs is not None}

    @property
    def unasked(self) -> list[Mapping[str, Any]]:
        """Runs on test labels that the search, as it stands, does not ask for."""
        equal = [trial for name in self.weighted_names for trial in self.wanted(name, equal=True)]
        asked = {trial.key for trial in (*equal, *(one for name in self.names for one in self.wanted(name)))}
        return [
            run for key, run in self.runs.items() if run["trial"]["view"] == plan.TEST and key not in asked
        ]  # fmt: skip


class Dataset(NamedTuple):
    """The runs on one dataset."""

    name: str
    models: Sequence[Records]
    baselines: Records

    @property
    def title(self) -> str:
        return DATASETS[self.name]

    @property
    def all(self) -> list[Records]:
        return [*self.models, self.baselines]


def read() -> list[Dataset]:
    """All datasets of the plan, in its order."""
    return [
        Dataset(name, [Records.read(name, model) for model in plan.MODELS], Records.read(name, plan.BASELINE))
        for name in plan.DATASETS
    ]


def pairs(found: Sequence[Dataset]) -> Iterator[tuple[Dataset, Records]]:
    """Every dataset with each of its models."""
    return ((dataset, records) for dataset in found for records in dataset.models)


def is_oracle(name: str) -> bool:
    return name in CONTENDERS and CONTENDERS[name].is_oracle


def named(name: str) -> str:
    """As it is written on the page: ours in bold, as in the plan."""
    return TITLES.get(name) or (f"**`{name}`**" if name in OURS else f"`{name}`")
