"""The result of a hyperparameter search: its trials, the final comparison, and the recommendation."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from bayesneg.evaluation.statistics import PairedDifference
from bayesneg.interfaces import Loss, Model, NegativeSampler
from bayesneg.runs.comparison_table import comparison_html
from bayesneg.runs.record import RunRecord, describe, jsonable

State = Literal["complete", "pruned", "failed"]


@dataclass(frozen=True)
class Trial:
    """One setting of a sampler and a loss, trained once and evaluated on validation data.

    Args:
        number: Number of the trial, from 1.
        sampler: Sampler as the command line takes it, ``"bns:candidates=8:weight=3.1"``; None where no text gives it.
        label: Sampler as tables show it, ``"BNS (candidates=8, weight=3.1)"``, with the loss where there are several.
        family: Label of what is tuned, ``"BNS"`` or ``"BNS + Softmax"``.
        state: How it ended: ``"complete"``, ``"pruned"`` (stopped early) or ``"failed"``.
        curve: Validation NDCG by epoch.
        settings: Settings of the sampler, as text.
        seconds: Training time.
        why: Error of a failed trial.
        loss: Loss as the command line takes it, ``"softmax:temperature=0.1"``; None where no text gives it.
        loss_settings: Settings of the loss, as text.
    """

    number: int
    sampler: str | None
    label: str
    family: str
    state: State
    curve: Mapping[int, float]
    settings: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    why: str = ""
    loss: str | None = "bpr"
    loss_settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        """The highest validation NDCG of any epoch; None where there is none."""
        return max(self.curve.values(), default=None)


@dataclass(frozen=True)
class Evidence:
    """The best setting on validation data against a rival, on test data.

    Args:
        rival: Label of the rival.
        difference: Paired difference, best setting minus rival.
        is_simpler: Whether the rival is plain RNS or a baseline.
    """

    rival: str
    difference: PairedDifference
    is_simpler: bool

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values, for JSON.

        Returns:
            The rival and the differences with their intervals.
        """
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
    """What to use, why, and the numbers behind it.

    Args:
        label: Label of what is recommended.
        favourite: Label of the best on validation data, over the seeds of the final comparison.
        key: Metric, ``"ndcg@20"``.
        text: The recommendation: one sentence, and a second one where runs were still improving at their last epoch.
        evidence: The favourite against each rival on test data.
        validation: Label → mean over the seeds on validation data.
        test: Label → mean over the seeds on test data, at the same epochs.
        notes: Sentences on what else the comparison showed, and on what was left out of the search.
        rising: The second sentence of the text; empty where no run was still improving.
    """

    label: str
    favourite: str
    key: str
    text: str
    evidence: Sequence[Evidence]
    validation: Mapping[str, float]
    test: Mapping[str, float]
    notes: Sequence[str] = ()
    rising: str = ""


@dataclass(frozen=True)
class TuningResult:
    """The result of :func:`bayesneg.tune`.

    ``bn.fit(result.model, split, result.sampler, loss=result.loss)`` trains what it recommends.

    Args:
        trials: Every trial of the search, in order.
        best: Label of each tuned sampler → its best trial on validation data.
        records: Runs of the final comparison, for :func:`bayesneg.write_report`.
        advice: The recommendation with the numbers behind it.
        model: Recommended model: the given one, or a baseline.
        sampler: Recommended sampler; None with a baseline.
        loss: Recommended loss; None with a baseline.
        options: Options of ``bayesneg train`` that train the recommendation; None where no text gives it.
        plan: What was searched, and on which data.
    """

    trials: Sequence[Trial]
    best: Mapping[str, Trial]
    records: Sequence[RunRecord]
    advice: Advice
    model: Model
    sampler: NegativeSampler | None
    loss: Loss | None = None
    options: Sequence[str] | None = None
    plan: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """The recommendation, the command, and mean test scores of the final comparison, the best first."""
        width = max(map(len, self.advice.test), default=0)
        ranked = sorted(self.advice.test.items(), key=lambda each: -each[1])
        table = [
            f"{'':<{width}}  {self.advice.key} on test data",
            *(f"{one:<{width}}  {mean:.4f}" for one, mean in ranked),
        ]
        return "\n\n".join([self.recommendation, *filter(None, [self.command]), "\n".join(table)])

    @property
    def recommendation(self) -> str:
        """What to use and why: one sentence, and a second one where more epochs may change it."""
        return self.advice.text

    @property
    def command(self) -> str | None:
        """The command that trains the recommendation, with ``DATA`` for the data; None where no text gives it."""
        return None if self.options is None else shlex.join(["bayesneg", "train", "DATA", *self.options])

    def _repr_html_(self) -> str:
        best = [
            f"best of {family}: {trial.label}, {self.advice.key} {trial.value:.4f} on validation data"
            for family, trial in self.best.items()
            if trial.value is not None
        ]
        above = [self.recommendation, *([] if self.command is None else [self.command])]
        n_trials = f"{len(self.trials):,} trial{'' if len(self.trials) == 1 else 's'}"
        title = f"{self.advice.label} is recommended, of {n_trials}; test metrics"
        return comparison_html(self.records, title=title, above=above, notes=[*self.advice.notes, *best])

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values, for JSON.

        Returns:
            The recommendation, its evidence, the plan, trials and runs, without the values per user.
        """
        return jsonable(
            {
                "recommended": {
                    "label": self.advice.label,
                    "sampler": describe(self.sampler),
                    "loss": describe(self.loss),
                    "model": describe(self.model),
                    "options": self.options,
                    "why": self.advice.text,
                },
                "advice": {**asdict(self.advice), "evidence": [each.to_dict() for each in self.advice.evidence]},
                "plan": self.plan,
                "best": {family: trial.number for family, trial in self.best.items()},
                "trials": [{**asdict(trial), "value": trial.value} for trial in self.trials],
                "runs": [record.to_dict() for record in self.records],
            }
        )
