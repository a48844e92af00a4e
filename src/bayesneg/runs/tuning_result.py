"""The record of a search: its trials on validation data, the final comparison, and the advice drawn from both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from bayesneg.evaluation.statistics import PairedDifference
from bayesneg.interfaces import Model, NegativeSampler
from bayesneg.runs.record import RunRecord, describe, jsonable

State = Literal["complete", "pruned", "failed"]


@dataclass(frozen=True)
class Trial:
    """One setting, trained once and judged on validation data after each epoch."""

    number: int  # from 1
    sampler: str  # as the command line takes it: "bns:candidates=8:weight=3.1"
    label: str  # as tables show it: "BNS (candidates=8, weight=3.1)"
    family: str  # what was to be tuned: "BNS"
    state: State
    curve: Mapping[int, float]  # epoch → validation NDCG
    seconds: float = 0.0
    why: str = ""  # it failed

    @property
    def value(self) -> float | None:
        """The best validation NDCG of any epoch; None where there is none."""
        return max(self.curve.values(), default=None)


@dataclass(frozen=True)
class Evidence:
    """The favourite against a rival on test data."""

    rival: str
    difference: PairedDifference  # favourite − rival
    is_simpler: bool  # the rival: plain RNS, or a model that needs no sampler

    def to_dict(self) -> dict[str, Any]:
        found = self.difference
        return {
            "rival": self.rival,
            "is_simpler": self.is_simpler,
            "is_clear": found.is_clear,
            "n_seeds": found.n_seeds,
            "over_users": asdict(found.over_users),
            "over_seeds": asdict(found.over_seeds),
        }


@dataclass(frozen=True)
class Advice:
    """What to use, why, and the numbers behind it."""

    label: str  # what is recommended
    favourite: str  # the best on validation data, over the seeds of the final comparison
    key: str  # the metric, "ndcg@20"
    text: str
    evidence: Sequence[Evidence]
    validation: Mapping[str, float]  # label → mean over seeds at the chosen epochs
    test: Mapping[str, float]  # label → mean over seeds of the same epochs


@dataclass(frozen=True)
class Tuning:
    """What :func:`bayesneg.tune` returns: ``bn.fit(tuning.model, split, tuning.sampler)`` trains what it advises.

    Where that is a baseline, ``model`` is the baseline and there is no sampler: None, written as an empty text, in JSON
    null.
    """

    trials: Sequence[Trial]
    best: Mapping[str, Trial]  # family → its best trial on validation data
    records: Sequence[RunRecord]  # of the final comparison
    advice: Advice
    model: Model
    sampler: NegativeSampler | None
    written: str  # the sampler as the command line takes it
    plan: Mapping[str, Any] = field(default_factory=dict)  # what was searched, and on which data

    @property
    def recommendation(self) -> str:
        return self.advice.text

    def to_dict(self) -> dict[str, Any]:
        """For JSON, without the values per user."""
        return jsonable(
            {
                "recommended": {
                    "label": self.advice.label,
                    "sampler": self.written or None,
                    "model": describe(self.model),
                    "why": self.advice.text,
                },
                "advice": {**asdict(self.advice), "evidence": [each.to_dict() for each in self.advice.evidence]},
                "plan": self.plan,
                "best": {family: trial.number for family, trial in self.best.items()},
                "trials": [{**asdict(trial), "value": trial.value} for trial in self.trials],
                "runs": [record.to_dict() for record in self.records],
            }
        )
