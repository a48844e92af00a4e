"""The arithmetic of the comparison table: one row per sampler, from records alone.

The command line's table and the HTML report are two views of the rows that :func:`summarise` gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bayesneg.evaluation.statistics import NOT_MEASURED, Estimate, estimate
from bayesneg.report.groups import RunGroup, final_value, run_groups, unsaid_losses
from bayesneg.report.names import is_better_higher, sorted_keys
from bayesneg.runs.pairing import paired
from bayesneg.runs.record import RunRecord, is_number


@dataclass(frozen=True)
class ComparisonRow:
    """One sampler: its metrics, and how far each lies from the first sampler's (absent in the first row)."""

    label: str
    sampler: str
    loss: str  # empty for a baseline
    unsaid_loss: str  # where losses differ and the label does not say it
    seeds: tuple[int, ...]
    uses_test_labels: bool
    values: dict[str, Estimate]
    differences: dict[str, Estimate]
    false_negatives: Estimate  # rate among the last epoch's picks, over seeds; not measured for baselines
    truth_known: bool  # so that the rate is the true one, and not by held-out labels
    best: frozenset[str]  # the metrics in which this row has the highest mean of all fair rows

    @property
    def n_seeds(self) -> int:
        return len(self.seeds)


def summarise(records: Sequence[RunRecord], keys: Sequence[str]) -> list[ComparisonRow]:
    """Rows of the comparison table, in the order of the records.

    Args:
        records: Runs on one dataset; those of one sampler are averaged over their seeds.
        keys: The metrics wanted, as in ``RunRecord.final``; one that was not measured gives a NaN mean.

    Intervals are over seeds where a sampler has two or more, else over users. A difference is paired: over
    the seeds both samplers share, or, with one shared seed, over users. Samplers that see test labels are
    never the best.

    >>> runs = [RunRecord(label=name, seed=seed, dataset="toy", final={"ndcg@20": base + seed / 100})
    ...         for name, base in (("RNS", 0.40), ("BNS", 0.42)) for seed in (0, 1)]
    >>> [(row.label, round(row.values["ndcg@20"].mean, 4)) for row in summarise(runs, ["ndcg@20"])]
    [('RNS', 0.405), ('BNS', 0.425)]
    >>> round(summarise(runs, ["ndcg@20"])[1].differences["ndcg@20"].mean, 4)
    0.02
    """
    groups = run_groups(records)
    unsaid = unsaid_losses(groups)
    rows = [_row(group, groups[0], keys, unsaid.get(group.name, "")) for group in groups]
    return [replace(row, best=frozenset(key for key in keys if _is_best(row, rows, key))) for row in rows]


def final_keys(records: Iterable[RunRecord]) -> list[str]:
    """Every metric measured in at least one run, in reading order."""
    return sorted_keys(key for run in records for key, value in run.final.items() if is_number(value))


def final_estimate(group: RunGroup, key: str) -> Estimate:
    """The final metric of a group: over its seeds, or over the users of its only run."""
    over_seeds = estimate(final_value(run, key) for run in group.runs)
    if over_seeds.has_interval or len(group.runs) > 1:
        return over_seeds
    run = group.runs[0]
    low, high = run.intervals.get(key) or (None, None)
    if low is None or high is None or not (is_number(low) and is_number(high)):
        return over_seeds
    n_users = len(run.per_user[key]) if run.per_user and key in run.per_user else 0
    return Estimate(over_seeds.mean, float(low), float(high), "users", n_users)


def difference(group: RunGroup, reference: RunGroup, key: str) -> Estimate:
    """``group`` minus ``reference``, paired by seed, or by user where one seed is shared."""
    found = paired(group.runs, reference.runs, key)
    return NOT_MEASURED if found is None else found.estimate


def truth_known(runs: Sequence[RunRecord]) -> bool:
    """Whether every run that sampled negatives recorded their rate by the ground truth."""
    return all(run.is_baseline or bool(run.at_epochs("tnr_true")) for run in runs)


def false_negative_rate(group: RunGroup) -> Estimate:
    """The share of false negatives among the picks of the last epoch, over seeds.

    By the ground truth where it is known; else by the held-out labels, which gives a lower bound. A baseline samples
    no negatives: not measured.
    """
    key = "tnr_true" if truth_known(group.runs) else "tnr"
    return NOT_MEASURED if group.is_baseline else estimate(1.0 - run.last(key) for run in group.runs)


def uniform_rate(runs: Sequence[RunRecord]) -> float:
    """The false-negative rate that uniform sampling is expected to have on this data; nan where not recorded."""
    key = "tnr_uniform_true" if truth_known(runs) else "tnr_uniform"
    return estimate(1.0 - run.last(key) for run in runs if not run.is_baseline).mean


def _row(group: RunGroup, reference: RunGroup, keys: Sequence[str], unsaid_loss: str) -> ComparisonRow:
    others = () if group is reference else keys
    return ComparisonRow(
        label=group.name,
        sampler=group.runs[0].sampler,
        loss=group.loss,
        unsaid_loss=unsaid_loss,
        seeds=group.seeds,
        uses_test_labels=group.uses_test_labels,
        values={key: final_estimate(group, key) for key in keys},
        differences={key: difference(group, reference, key) for key in others},
        false_negatives=false_negative_rate(group),
        truth_known=truth_known(group.runs),
        best=frozenset(),
    )


def _is_best(row: ComparisonRow, rows: Sequence[ComparisonRow], key: str) -> bool:
    fair = [other.values[key].mean for other in rows if not other.uses_test_labels]
    means = [mean for mean in fair if is_number(mean)]
    return (
        is_better_higher(key)
        and not row.uses_test_labels
        and len(set(means)) > 1
        and row.values[key].mean == max(means)
    )
