"""The findings of an audit as numbers, from records alone: the same for the terminal and every page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bayesneg.evaluation.calibration import pooled
from bayesneg.evaluation.statistics import Estimate, estimate
from bayesneg.report.false_negatives import ONE_SEED, PickRates
from bayesneg.report.groups import RunGroup, run_groups, studies
from bayesneg.report.names import joined
from bayesneg.runs.record import RunRecord, is_number

NOTICED: Final = 0.05  # of the share that was asked for, or of the users
TAIL: Final = 5  # epochs, the last ones, whose probes are pooled where one epoch has too few
PICKS: Final = {
    "fn": "False negatives",
    "fn_gradient": "Gradient on them",
    "tnr": "TNR",
    "inf": "INF",
    "hardness": "Hardness",
    "head": "Head",
    "middle": "Middle",
    "tail": "Tail",
    "skipped_share": "Skipped",
}
CALIBRATION: Final = {
    "mean_predicted": "Mean predicted",
    "observed_rate": "Observed rate",
    "ece": "ECE",
    "brier": "Brier score",
    "brier_constant": "Brier, constant",
}
MEANINGS: Final = {
    "False negatives": "The share of the last epoch's picks that are positives of the user.",
    "Gradient on them": (
        "The share of the loss's gradient on negatives, Σ|∂L/∂s|, that falls on false negatives: how much of what is "
        "learned from negatives is wrong. With one negative and BPR hard negatives count more than easy ones; weights "
        "and the temperature of a softmax move it further."
    ),
    "TNR and INF": (
        "The paper's measures, by the held-out labels: the share of picks that are not held-out positives, and the "
        "mean gradient magnitude of BPR, with a negative sign for false negatives. Several negatives count by their "
        "weights."
    ),
    "Hardness": (
        "The normalized rank of the pick: the share of the user's other unobserved items that score lower, by the "
        "model at the time of the pick. Uniform sampling has 0.5."
    ),
    "Head, middle, tail": (
        "Shares of the picks by popularity. Items are sorted by popularity and cut so that each part has about a "
        "third of the training interactions; items without interactions are tail."
    ),
    "Skipped": "The share of training examples without a negative.",
    "Mean predicted, observed rate": (
        "The mean posterior probability (unbias) that a pick is a true negative, and the share of picks that are "
        "one. They are equal for a calibrated sampler."
    ),
    "ECE": (
        "Expected calibration error: the mean absolute difference between predicted probability and observed rate "
        "over bins of the posterior."
    ),
    "Brier score": (
        "The mean squared error of the posterior. A constant prediction of the base rate has the second number: a "
        "higher first one says that the posterior is worse than no posterior."
    ),
}


@dataclass(frozen=True)
class AuditedSplit:
    """The samplers on one split."""

    name: str
    groups: list[RunGroup]

    @property
    def runs(self) -> list[RunRecord]:
        return [run for group in self.groups for run in group.runs]

    @property
    def truth_known(self) -> bool:
        return all(run.data.get("truth_known") for run in self.runs)

    @property
    def uniform(self) -> float:
        """The share of false negatives that uniform picks are expected to have."""
        return self.runs[0].last("fn_uniform")

    @property
    def with_posterior(self) -> list[RunGroup]:
        """The samplers that have a posterior."""
        return [group for group in self.groups if is_number(measured(group, "mean_predicted").mean)]


def audited(records: Sequence[RunRecord]) -> list[AuditedSplit]:
    """The audited splits in the order of the records."""
    return [AuditedSplit(name, run_groups(runs)) for name, runs in studies(records).items()]


def short_names(found: Sequence[AuditedSplit]) -> list[str]:
    """``10% hidden`` of ``kuairec, 10% hidden`` where all are of one dataset."""
    heads = {split.name.rpartition(", ")[0] for split in found}
    return [split.name.rpartition(", ")[2] if len(heads) == 1 else split.name for split in found]


def measured(group: RunGroup, key: str) -> Estimate:
    """A measure of the last epoch that has it, over the seeds."""
    return estimate(run.last(key) for run in group.runs)


def audit_finding(split: AuditedSplit) -> str:
    """Who picks the fewest false negatives and who the most, as far as they can be distinguished."""
    if not any(is_number(measured(group, "fn").mean) for group in split.groups):
        return "No negative was sampled."
    rates = PickRates(split.groups, lambda run: run.last("fn"), known=split.truth_known)
    if not rates.names:
        return "Only samplers that see the test labels sampled negatives, so none is a fair result."
    among = f"Of {rates.samplers}, " if rates.leaves_out else ""
    return f"{among}{'; '.join(rates.clauses())}; uniform picks have {split.uniform:.1%}.{rates.caveat}"


def gradient_finding(split: AuditedSplit) -> str:
    """Whose gradient falls least and most on false negatives; empty where none was recorded."""
    rates = PickRates(split.groups, lambda run: run.last("fn_gradient"), known=split.truth_known)
    if not rates.names:
        return ""
    low, high = rates.names[0], rates.names[-1]
    lead = f"The share of the gradient on negatives that falls on {rates.noun} is"
    if low == high:
        return f"{lead} {rates.text(low)}."
    doubt = "" if rates.caveat or rates.differ(low, high) else ", not distinguishable over the seeds"
    return f"{lead} {rates.text(low)} with {low}, the lowest, and {rates.text(high)} with {high}, the highest{doubt}."


def calibration_finding(split: AuditedSplit) -> str:
    """Whose posterior has a lower Brier score than a constant; empty where no sampler has a posterior."""
    if not split.with_posterior:
        return ""
    verdicts: dict[str, list[str]] = {"better than": [], "not distinguishable from": [], "worse than": []}
    for group in split.with_posterior:
        gap = estimate(run.last("brier") - run.last("brier_constant") for run in group.runs)
        low, high = (gap.low, gap.high) if gap.has_interval else (gap.mean, gap.mean)
        verdict = "better than" if high < 0 else "worse than" if low > 0 else "not distinguishable from"
        predicted, observed = (measured(group, key).mean for key in ("mean_predicted", "observed_rate"))
        verdicts[verdict].append(f"{group.marked_name} (predicted {predicted:.1%}, observed {observed:.1%})")
    told = [f"{verdict} a constant: {joined(names)}" for verdict, names in verdicts.items() if names]
    seeds = f" {ONE_SEED}" if len(split.with_posterior[0].runs) == 1 else ""
    return f"By the Brier score on the picks, the posterior is {'; '.join(told)}.{seeds}"


def caution(split: AuditedSplit) -> str:
    """What the numbers are not, where the truth is unknown; else empty."""
    if split.truth_known:
        return ""
    return (
        "The ground truth of this data is unknown: only held-out positives are known false negatives. Rates of false "
        "negatives are lower bounds, and calibration counts every other item as a true negative."
    )


def hidden_note(split: AuditedSplit) -> str:
    """How much is hidden, where that is not the share asked for of nearly every user; else empty."""
    facts = split.runs[0].data
    asked = re.match(r"by=user test=(\S+)", str(facts.get("split")))
    if asked is None:  # not hidden by share, user by user
        return ""
    share, n_users = float(asked[1]), facts["n_users"]
    n_pairs = facts["n_train"] + facts["n_validation"] + facts["n_test"]
    true = facts["n_test"] / n_pairs
    n_with = facts.get("n_users_with_hidden", n_users)
    if abs(true / share - 1) <= NOTICED and 1 - n_with / n_users <= NOTICED:
        return ""
    users = f", and {n_with:,} of {n_users:,} have some" if n_with < n_users else ""
    return (
        f"Hidden are {true:.1%} of the pairs, where {100 * share:g}% was asked for: rounded for each user{users}. "
        f"Set hidden={n_pairs / facts['n_train'] - 1:.3g} to give the prior this ratio."
    )


def bins(group: RunGroup, key: str) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Counts, mean posterior and observed rate of each bin of unbias, over seeds and the last epochs."""
    tables = [line[key] for run in group.runs for line in run.epochs[-TAIL:] if isinstance(line.get(key), Mapping)]
    return pooled(tables) if tables else None


def deciles(group: RunGroup) -> np.ndarray | None:
    """The share (10,) of probes whose pick ranks in each tenth of its user's score list, lowest scores first."""
    shares = [line["deciles"]["share"] for run in group.runs for line in run.epochs[-TAIL:] if "deciles" in line]
    return np.mean(shares, axis=0) if shares else None


def summary(records: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """One mapping per split and sampler, with mean, low and high of each measure: for programs."""
    return [
        {
            "dataset": split.name,
            "sampler": group.name,
            "loss": group.loss,
            "seeds": list(group.seeds),
            "truth_known": split.truth_known,
            "uses_test_labels": group.uses_test_labels,
            "fn_uniform": split.uniform,
            **{key: _interval(measured(group, key)) for key in (*PICKS, *CALIBRATION)},
        }
        for split in audited(records)
        for group in split.groups
    ]


def _interval(value: Estimate) -> dict[str, float]:
    return {"mean": value.mean, "low": value.low, "high": value.high}
