"""From the final comparison to a recommendation: the simplest setting that nothing clearly beats.

The favourite is chosen on validation data alone. Test labels are then used once, to decide whether it is clearly better
than plain RNS and the baselines. Where it is not, the simpler one is recommended. The text is one sentence, and a
second one only where runs were still improving at their last epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.evaluation.statistics import Estimate, PairedDifference
from bayesneg.runs.pairing import paired
from bayesneg.runs.record import RunRecord
from bayesneg.runs.tuning_result import Advice, Evidence
from bayesneg.runs.verdict import grouped, still_rising

CLOSE: Final = 0.05  # relative difference up to which two scores count as equally good


def advise(
    records: Sequence[RunRecord], simpler: Collection[str], described: Mapping[str, str] | None = None
) -> Advice:
    """The recommendation that follows from the records.

    Args:
        records: Runs of the final comparison.
        simpler: Labels of plain RNS and of the baselines.
        described: Label → what it is, with loss, sampler and model; the label where there is none.

    Returns:
        The recommendation with the numbers behind it.
    """
    groups = grouped(records)
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
    baselines = {label for label, runs in groups.items() if runs[0].is_baseline}
    if favourite in simpler or not as_good:
        label, notes = favourite, [*_notes(evidence)]
        tuned = [each for each in evidence if not each.is_simpler]
        best = max(tuned, key=lambda each: validation[each.rival], default=None)
        why = _simple_won(favourite in baselines, best, key) if favourite in simpler else _won(evidence, test, key)
    else:
        label, notes = max(as_good, key=lambda rival: validation[rival]), []
        is_baseline = label in baselines
        why = _as_good(favourite, as_good[label].difference, is_baseline, key, CLOSE * abs(test[label]))
    sentence, rising = f"Use {(described or {}).get(label, label)}: {why}.", still_rising(groups)
    return Advice(label, favourite, key, f"{sentence} {rising}".strip(), evidence, validation, test, notes, rising)


def _won(evidence: Sequence[Evidence], test: Mapping[str, float], key: str) -> str:
    """Of a tuned setting that is clearly better than everything simpler."""
    simpler = [each for each in evidence if each.is_simpler]
    text = "it is the best on validation data"
    if not simpler:
        return text
    nearest = max(simpler, key=lambda each: test[each.rival])
    name, gap = f"{nearest.rival} ({_by(nearest.difference)})", metric_name(key)
    if len(simpler) == 1:
        return f"{text}, and clearly better in {gap} on test data than {name}"
    return (
        f"{text}, and clearly better in {gap} on test data than every baseline and plain RNS, the best of them {name}"
    )


def _simple_won(is_baseline: bool, best: Evidence | None, key: str) -> str:
    """Of plain RNS or a baseline that is the best on validation data; ``best`` is the best tuned setting there."""
    lead = "this baseline is better than every tuned sampler" if is_baseline else "no tuned sampler is better"
    if best is None:
        return f"{lead} on validation data"
    found, name = best.difference, metric_name(key)
    if not found.is_clear:
        on_test = f"it is not distinguishable in {name} from the best of them, {best.rival} ({_by(found)})"
    elif found.mean > 0:
        on_test = f"it is clearly better in {name} than the best of them, {best.rival} ({_by(found)})"
    else:
        on_test = f"the best of them, {best.rival}, is clearly better in {name} ({_by(_reversed(found))})"
    return f"{lead} on validation data, {'though' if _loses(found) else 'and'} on test data {on_test}"


def _as_good(favourite: str, found: PairedDifference, is_baseline: bool, key: str, margin: float) -> str:
    """Of something simpler than which the favourite is not clearly better."""
    what = "this baseline" if is_baseline else "it"
    name = f"in {metric_name(key)} on test data"
    test = f"{name} ({_by(_reversed(found))})"
    if _loses(found):
        return f"{what} is better, and simpler, than {favourite}, the best on validation data, {test}"
    if _within(found, margin):
        return f"{what} is as good as {favourite}, the best on validation data, and simpler, {test}"
    return (
        f"{what} is simpler, and {favourite}, the best on validation data, is not shown to be better {name} "
        f"({_by(found)}), which more seeds may decide"
    )


def _notes(evidence: Sequence[Evidence]) -> Iterator[str]:
    """Rivals that are equal to the recommendation on test data, or ahead of it there."""
    equals = [each.rival for each in evidence if not each.difference.is_clear]
    ahead = [each.rival for each in evidence if _loses(each.difference)]
    if equals:
        yield f"Not distinguishable from it on test data: {'; '.join(equals)}."
    if ahead:
        yield f"Better on test data, but not on validation data, which decides: {'; '.join(ahead)}."


def _within(found: PairedDifference, margin: float) -> bool:
    """Whether both intervals of the difference, over users and over seeds, lie within the margin."""
    ranges = [found.over_users, *([found.over_seeds] if found.n_seeds > 1 else [])]
    return all(max(abs(one.low), abs(one.high)) <= margin for one in ranges)


def _by(found: PairedDifference) -> str:
    """What is recommended minus a rival: ``+0.0120, 95% over users …, over 5 seeds …``."""
    seeds = f", over {found.n_seeds} seeds {_range(found.over_seeds)}" if found.n_seeds > 1 else ", one seed only"
    return f"{found.mean:+.4f}, 95% over users {_range(found.over_users)}{seeds}"


def _reversed(found: PairedDifference) -> PairedDifference:
    users, seeds = (
        replace(one, mean=-one.mean, low=-one.high, high=-one.low) for one in (found.over_users, found.over_seeds)
    )
    return PairedDifference(users, seeds, found.n_seeds)


def _range(difference: Estimate) -> str:
    return f"{difference.low:+.4f} to {difference.high:+.4f}"


def _loses(found: PairedDifference) -> bool:
    return found.is_clear and found.mean < 0


def _judged_by(record: RunRecord) -> str:
    """The metric that selected the epoch: ``ndcg@20``, or of a shorter list where the catalogue is small."""
    names = [name for line in record.epochs for name in line if name.startswith("validation_ndcg@")]
    return names[0].removeprefix("validation_")


def _chosen(record: RunRecord, key: str) -> float:
    return record.at_epochs(key)[record.reported_epoch]
