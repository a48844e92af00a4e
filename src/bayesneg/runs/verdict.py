"""What must be said beside results: a baseline that is better, and runs that were still improving at their last epoch.

The one definition for ``train``, ``compare``, ``tune`` and their pages is ``standing``: one method is better than
another if their paired difference is significant over users and, with two or more seeds, over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final, Literal

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.evaluation.statistics import LEVEL, PairedDifference
from bayesneg.runs.pairing import paired
from bayesneg.runs.record import RunRecord, is_number

NAMED: Final = 2  # labels of runs that were still improving, at most; of more their number is said
Groups = Mapping[str, Sequence[RunRecord]]  # label → its runs, one per seed
Standing = Literal["better", "better over users only", "not distinguishable", "worse over users only", "worse"]


def standing(gap: PairedDifference) -> Standing:
    """How one method stands to another, from the first minus the second.

    Args:
        gap: The paired difference.

    Returns:
        ``"better"`` or ``"worse"`` where it is significant over users and, with two or more seeds, over seeds; with
        ``"over users only"`` where the seeds leave it open.
    """
    if not gap.over_users.p_value < LEVEL:
        return "not distinguishable"
    if gap.is_clear:
        return "better" if gap.mean > 0 else "worse"
    return "better over users only" if gap.mean > 0 else "worse over users only"


def grouped(records: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """The runs by label, in the order given."""
    found: dict[str, list[RunRecord]] = {}
    for record in records:
        found.setdefault(record.label, []).append(record)
    return found


def was_rising(runs: Sequence[RunRecord]) -> bool:
    """Whether most runs of a label were best on validation data at their last epoch."""
    return 2 * sum(map(_was_rising, runs)) > len(runs)


def still_rising(groups: Groups) -> str:
    """The sentence on labels whose runs were still improving; empty where there is none."""
    trained = [label for label, runs in groups.items() if not runs[0].is_baseline]
    rising = [label for label in trained if was_rising(groups[label])]
    if not rising:
        return ""
    named = "; ".join(rising) if len(rising) <= NAMED else f"{len(rising)} of the {len(trained)} that were trained"
    return f"Still improving at the last epoch: {named}; more epochs (--epochs) may change the result."


def better_baseline(runs: Sequence[RunRecord], baselines: Groups, key: str) -> tuple[str, PairedDifference] | None:
    """The baseline that is ahead of the runs by most, and the difference, baseline minus runs.

    Args:
        runs: The runs of a trained model, one per seed.
        baselines: Baselines on the same data.
        key: Metric, such as ``"ndcg@20"``.

    Returns:
        None where no baseline is significantly better.
    """
    gaps = {label: paired(own, runs, key) for label, own in baselines.items()}
    ahead = {label: gap for label, gap in gaps.items() if gap is not None and standing(gap) == "better"}
    best = max(ahead, key=lambda label: ahead[label].mean, default=None)
    return None if best is None else (best, ahead[best])


def verdict(record: RunRecord, others: Sequence[RunRecord]) -> str:
    """Whether a baseline is better than a run, and whether the run had stopped improving, in words.

    Args:
        record: The run.
        others: Baselines on the same data.

    Returns:
        One to three sentences.
    """
    key = judged_by([record])
    if key is None:
        return ""
    values = ", ".join(f"{one.label} {one.final[key]:.4f}" for one in (record, *others))
    said = [f"{metric_name(key)} on test data: {values}."] if others else []
    if ahead := better_baseline([record], grouped(others), key):
        best, gap = ahead
        said.append(
            f"{best} is better than this run by {by_how_much(gap)}: train it with {_options_of(best)}, or search "
            "better settings with bayesneg tune."
        )
    elif others and all(_is_behind(record, one, key) for one in others):
        said.append("This run is better than each of them (95% intervals over users).")
    elif others:
        said.append("This run is not clearly better than the best of them.")
    if _was_rising(record):
        said.append("It was still improving at its last epoch: more --epochs may help.")
    elif len(record.epochs) == 1 and not record.is_baseline:
        said.append("It was trained for one epoch: more --epochs may help.")
    return " ".join(said)


def _options_of(label: str) -> str:
    """``EASE (l2=50)`` → ``--model ease --set l2=50``."""
    name, _, settings = label.removesuffix(")").partition(" (")
    return " ".join([f"--model {name.lower()}", *(f"--set {one}" for one in settings.split(", ") if one)])


def comparison_verdict(records: Sequence[RunRecord]) -> str:
    """Whether a baseline is better than every sampler of a comparison, and which runs were still improving.

    Args:
        records: Runs of samplers and baselines on one dataset; samplers that see test labels do not count.

    Returns:
        Up to two sentences; empty where there is nothing to say.
    """
    groups = grouped([record for record in records if not record.uses_test_labels])
    baselines = {label: runs for label, runs in groups.items() if runs[0].is_baseline}
    trained = {label: runs for label, runs in groups.items() if label not in baselines}
    key = judged_by(records)
    means = {label: mean for label, runs in trained.items() if key and is_number(mean := _mean(runs, key))}
    said = []
    if key is not None and means:
        best = max(means, key=means.__getitem__)
        if ahead := better_baseline(trained[best], baselines, key):
            name, gap = ahead
            than = "" if len(trained) == 1 else ", the best of the samplers,"
            said.append(
                f"A baseline is better: {name} is ahead of {best}{than} by {by_how_much(gap)} in {metric_name(key)} on "
                "test data; use it, or search better settings with bayesneg tune."
            )
    return " ".join([*said, *filter(None, [still_rising(trained)])])


def judged_by(records: Sequence[RunRecord]) -> str | None:
    """NDCG at the longest list; None where it was not measured."""
    names = {key for record in records for key in record.final if key.startswith("ndcg@")}
    return max(names, key=lambda key: int(key.partition("@")[2]), default=None)


def by_how_much(gap: PairedDifference) -> str:
    """``0.0120 (95% over users 0.0100 to 0.0140)``, and over seeds where there are several."""
    parts = [f"over users {gap.over_users.low:z.4f} to {gap.over_users.high:z.4f}"]
    if gap.n_seeds > 1:
        parts.append(f"over {gap.n_seeds} seeds {gap.over_seeds.low:z.4f} to {gap.over_seeds.high:z.4f}")
    return f"{gap.mean:z.4f} (95% {', '.join(parts)})".replace("-", "−")  # the minus sign of the tables


def _was_rising(run: RunRecord) -> bool:
    evaluated = [line for line in run.epochs if any(name.startswith("validation_") for name in line)]
    return run.select == "best" and len(evaluated) > 1 and run.reported_epoch == run.epochs[-1]["epoch"]


def _is_behind(record: RunRecord, other: RunRecord, key: str) -> bool:
    gap = paired([record], [other], key)
    return gap is not None and standing(gap) == "better"


def _mean(runs: Sequence[RunRecord], key: str) -> float:
    values = [value for run in runs if (value := run.final.get(key)) is not None]
    return fmean(values) if values else math.nan
