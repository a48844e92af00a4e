"""From the final comparison to a recommendation: the simplest setting that nothing clearly beats.

The favourite is chosen on validation data alone. Test labels are then used once, to decide whether it is clearly better
than plain RNS and the baselines. Where it is not, the simpler one is recommended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Final

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.evaluation.statistics import Estimate, PairedDifference
from bayesneg.runs.pairing import paired
from bayesneg.runs.record import RunRecord
from bayesneg.runs.tuning_result import Advice, Evidence

CLOSE: Final = 0.05  # relative difference up to which two scores count as equally good


def advise(records: Sequence[RunRecord], simpler: Collection[str]) -> Advice:
    """The recommendation that follows from the records.

    Args:
        records: Runs of the final comparison.
        simpler: Labels of plain RNS and of the baselines.

    Returns:
        The recommendation with the numbers behind it.
    """
    groups: dict[str, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(record.label, []).append(record)
    key = _judged_by(records[0])
    validation = {label: fmean(_chosen(run, f"validation_{key}") for run in runs) for label, runs in groups.items()}
    test = {label: fmean(run.final[key] or 0.0 for run in runs) for label, runs in groups.items()}
    favourite = max(validation, key=lambda label: (validation[label], label in simpler))
    evidence = [
        Evidence(rival, found, rival in simpler)
        for rival, runs in groups.items()
        if rival != favourite and (found := paired(groups[favourite], runs, key)) is not None
    ]
    as_good = {
        each.rival: each
        for each in evidence
        if each.is_simpler and not (each.difference.is_clear and each.difference.mean > 0)
    }
    if favourite in simpler or not as_good:
        label, text = favourite, _won(favourite, evidence, favourite in simpler, key)
    else:
        label = max(as_good, key=lambda rival: validation[rival])
        text = _as_good(favourite, as_good, label, key, CLOSE * abs(test[label]))
    return Advice(label, favourite, key, text + _unfinished(groups), evidence, validation, test)


def _won(favourite: str, evidence: Sequence[Evidence], is_simple: bool, key: str) -> str:
    against = "; ".join(_against(each) for each in evidence if is_simple or each.is_simpler)
    if is_simple:
        text = f"Use {favourite}: it needs no tuned sampler, and no tuned sampler is better on validation data."
        text += f" Its differences in {metric_name(key)} on test data: to {against}." if against else ""
    else:
        text = f"Use {favourite}: it is the best on validation data, and clearly better in {metric_name(key)} on test "
        text += f"data than {against}."
    equals = [each.rival for each in evidence if not each.difference.is_clear]
    ahead = [each.rival for each in evidence if _loses(each.difference)]
    if equals:
        text += f" Not distinguishable from it on test data: {'; '.join(equals)}."
    if ahead:
        text += f" Better on test data, but not on validation data, which decides: {'; '.join(ahead)}."
    return text


def _as_good(favourite: str, as_good: Mapping[str, Evidence], label: str, key: str, margin: float) -> str:
    found = "; ".join(_against(each) for each in as_good.values())
    difference = as_good[label].difference
    if _loses(difference):
        verdict = "it is better, and simpler"
    elif _within(difference, margin):
        verdict = "it is as good, and simpler"
    else:
        verdict = "it is simpler, and nothing was shown to be better; more seeds may distinguish them"
    return (
        f"Use {label}: {verdict}. The best on validation data, {favourite}, is not clearly better on test data in "
        f"{metric_name(key)} than {found}."
    )


def _within(found: PairedDifference, margin: float) -> bool:
    """Whether both intervals of the difference, over users and over seeds, lie within the margin."""
    ranges = [found.over_users, *([found.over_seeds] if found.n_seeds > 1 else [])]
    return all(max(abs(one.low), abs(one.high)) <= margin for one in ranges)


def _against(evidence: Evidence) -> str:
    found = evidence.difference
    seeds = f", over {found.n_seeds} seeds {_range(found.over_seeds)}" if found.n_seeds > 1 else ", one seed only"
    return f"{evidence.rival} ({found.mean:+.4f}, 95% over users {_range(found.over_users)}{seeds})"


def _range(difference: Estimate) -> str:
    return f"{difference.low:+.4f} to {difference.high:+.4f}"


def _loses(found: PairedDifference) -> bool:
    return found.is_clear and found.mean < 0


def _unfinished(groups: Mapping[str, Sequence[RunRecord]]) -> str:
    """A warning where most runs were best at their last epoch: more epochs may change the verdict."""
    rising = [
        label
        for label, runs in groups.items()
        if len(runs[0].epochs) > 1 and 2 * sum(run.reported_epoch == len(run.epochs) for run in runs) > len(runs)
    ]
    if not rising:
        return ""
    return f" Still improving at the last epoch: {'; '.join(rising)}. More epochs may change this recommendation."


def _judged_by(record: RunRecord) -> str:
    """The metric that selected the epoch: ``ndcg@20``, or of a shorter list where the catalogue is small."""
    names = [name for line in record.epochs for name in line if name.startswith("validation_ndcg@")]
    return names[0].removeprefix("validation_")


def _chosen(record: RunRecord, key: str) -> float:
    return record.at_epochs(key)[record.reported_epoch]
