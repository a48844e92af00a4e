"""The report's first sentences: what the numbers say, and no more than they say."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.evaluation.statistics import Estimate
from bayesneg.report.false_negatives import PickRates
from bayesneg.report.groups import RunGroup, run_groups
from bayesneg.report.names import counted, joined, number, percent
from bayesneg.report.summary import difference, final_estimate, truth_known, uniform_rate
from bayesneg.runs.record import RunRecord, is_number

LabelPairs = AbstractSet[frozenset[str]]


def finding(runs: Sequence[RunRecord], key: str | None) -> str:
    """What one study found: who recommends best, and how many false negatives the samplers pick."""
    found = (quality_finding(runs, key), false_negative_finding(runs, key))
    return " ".join(sentence for sentence in found if sentence)


def quality_finding(runs: Sequence[RunRecord], key: str | None, indistinguishable: LabelPairs = frozenset()) -> str:
    """Who recommends best, and how sure that is.

    A winner is named only where its difference to every other method is significant. Samplers that see the test
    labels do not compete.

    Args:
        runs: The runs of one dataset.
        key: The metric to rank by; None where none was recorded.
        indistinguishable: Pairs of labels that a stricter test could not distinguish.

    Returns:
        A few sentences.
    """
    if key is None:
        return "No recommendation metric was recorded in these runs, so there is nothing to rank."
    measured = [group for group in run_groups(runs) if is_number(final_estimate(group, key).mean)]
    fair = [group for group in measured if not group.uses_test_labels]
    if not measured:
        return f"{metric_name(key)} could not be measured in any of these runs."
    if not fair:
        return f"{_alone(measured[0], key)} Every sampler here sees the test labels, so none is a fair result."
    return _alone(fair[0], key) if len(fair) == 1 else _ranking(fair, key, indistinguishable)


def false_negative_finding(runs: Sequence[RunRecord], key: str | None) -> str:
    """Quality and false negatives together: of the best sampler, of the extremes, of uniform sampling.

    Empty where fewer than two samplers that may be compared recorded their picks.
    """
    groups, known = run_groups(runs), truth_known(runs)
    rates = PickRates(groups, lambda run: 1.0 - run.last("tnr_true" if known else "tnr"), known=known)
    if key is None or len(rates.names) < 2:
        return ""
    quality = {group.name: final_estimate(group, key).mean for group in groups if group.name in rates.of}
    measured = [value for value in quality.values() if is_number(value)]
    if not measured:
        return ""
    best = [name for name, value in quality.items() if value == max(measured)]
    verb = "has" if len(best) == 1 else "have"
    lead = f"{joined(best)} {verb} the highest mean {metric_name(key)} of {rates.samplers}"
    if len(best) == 1 and best[0] not in (rates.names[0], rates.names[-1]):
        lead += f", and {rates.text(best[0])} of its picks are {rates.noun}"
    parts = [lead, *rates.clauses()]
    uniform = uniform_rate(runs)
    parts += [f"uniform sampling is expected to pick {percent(uniform)}"] if is_number(uniform) else []
    baselines = [group for group in groups if group.is_baseline]
    reached = joined(f"{group.name} ({_reached(group, key)})" for group in baselines)
    parts += [f"{reached} need{'s' if len(baselines) == 1 else ''} no negatives"] if baselines else []
    return f"{'; '.join(parts)}.{rates.caveat}"


def _reached(group: RunGroup, key: str) -> str:
    return f"{metric_name(key)} {number(final_estimate(group, key).mean, 3)}"


def _alone(group: RunGroup, key: str) -> str:
    text = f"{group.marked_name} reaches {_value(group, key)}."
    return text if len(group.runs) > 1 else f"{text} One seed only: another seed will give another number."


def _ranking(fair: Sequence[RunGroup], key: str, indistinguishable: LabelPairs) -> str:
    best, *others = sorted(fair, key=lambda group: -final_estimate(group, key).mean)  # ties keep their order
    gaps = {other.name: difference(best, other, key) for other in others}
    rivals = [
        other.name
        for other in others
        if not gaps[other.name].excludes_zero or frozenset((best.name, other.name)) in indistinguishable
    ]
    text = _undecided(best, rivals, gaps, key) if rivals else _decided(best, fair[0], gaps, key)
    if all(gap.over == "seeds" for gap in gaps.values()):
        return text
    if min(len(group.runs) for group in fair) == 1:
        return f"{text} Not every method has more than one seed: another seed may change the order."
    return f"{text} The methods do not share two seeds on the same data, so their differences are uncertain."


def _decided(best: RunGroup, first: RunGroup, gaps: dict[str, Estimate], key: str) -> str:
    next_best = next(iter(gaps))
    against = first.name if first is not best else next_best
    verb = "recommends best" if gaps[against].over == "seeds" else "scores highest"
    text = f"{best.name} {verb}: {_value(best, key)}, {_gap(gaps[against])} {against} {_range(gaps[against])}."
    if against == next_best:
        return text
    return f"{text} The next best, {next_best}, is behind by {_behind(gaps[next_best])}."


def _undecided(best: RunGroup, rivals: Sequence[str], gaps: dict[str, Estimate], key: str) -> str:
    gap = gaps[rivals[0]]
    if is_number(gap.mean) and not round(gap.mean, _digits(gap)):
        interval = f" {_range(gap)}" if gap.has_interval and round(gap.half_width, 4) else ""
        return (
            f"No clear winner between {joined([best.name, *rivals])}. {best.name} and {rivals[0]} have the same mean, "
            f"{_value(best, key)}; their difference is 0{interval}."
        )
    doubt = "too few runs to say how sure that is"
    if gap.has_interval:
        doubt = "not clear once all pairs are tested" if gap.excludes_zero else "which includes zero"
    return (
        f"No clear winner between {joined([best.name, *rivals])}. {best.name} has the highest mean, "
        f"{_value(best, key)}, and is {_gap(gap)} {rivals[0]} {_range(gap, doubt)}."
    )


def _value(group: RunGroup, key: str) -> str:
    """``NDCG@20 0.418 ± 0.001 over 3 seeds``; without an interval where every seed gives the same, as EASE does."""
    value = final_estimate(group, key)
    text = f"{metric_name(key)} {number(value.mean, _digits(value))}"
    if not value.has_interval:
        return text
    if value.over == "seeds" and value.half_width < 1e-12:
        return f"{text} with every seed"
    over = counted(value.n, "seed") if value.over == "seeds" else "users"
    return f"{text} ± {number(value.half_width, _digits(value))} over {over}"


def _gap(gap: Estimate) -> str:
    if not is_number(gap.mean):
        return "not comparable with"
    return f"{number(abs(gap.mean), _digits(gap))} {'above' if gap.mean >= 0 else 'below'}"


def _behind(gap: Estimate) -> str:
    return f"{number(gap.mean, _digits(gap))} {_range(gap)}"


def _range(gap: Estimate, doubt: str = "") -> str:
    """``(95% interval 0.010 to 0.014)``, over users where it is not over seeds."""
    over = " over users" if gap.over == "users" else ""
    text = f"95% interval{over} {number(gap.low, _digits(gap))} to {number(gap.high, _digits(gap))}"
    return f"({', '.join(part for part in (text if gap.has_interval else '', doubt) if part)})"


def _digits(value: Estimate) -> int:
    """Three decimals read well; four where three would print a half-width of zero."""
    return 4 if value.has_interval and value.half_width < 0.00095 else 3
