"""The report's first sentences: what the numbers say, and no more than they say."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from bayesneg.evaluation.statistics import Estimate
from bayesneg.report.names import counted, joined, metric_name, number
from bayesneg.report.runs import Group, group
from bayesneg.report.summary import difference, final_estimate
from bayesneg.runs.record import RunRecord, is_number

Pairs = AbstractSet[frozenset[str]]


def finding(runs: Sequence[RunRecord], key: str | None, alike: Pairs = frozenset()) -> str:
    """A few plain sentences about the metric ``key`` of one study.

    A winner is named only where its difference to every other sampler has an interval clear of zero, and
    samplers that see the test labels do not compete. ``alike`` are pairs of names that a stricter test, made
    elsewhere on the page, could not tell apart.
    """
    if key is None:
        return "No recommendation metric was recorded in these runs, so there is nothing to rank."
    measured = [member for member in group(runs) if is_number(final_estimate(member, key).mean)]
    fair = [member for member in measured if not member.uses_test_labels]
    if not measured:
        return f"{metric_name(key)} could not be measured in any of these runs."
    if not fair:
        return f"{_alone(measured[0], key)} Every sampler here sees the test labels, so none is a fair result."
    return _alone(fair[0], key) if len(fair) == 1 else _contest(fair, key, alike)


def _alone(member: Group, key: str) -> str:
    text = f"{member.marked_name} reaches {_value(member, key)}."
    return text if len(member.runs) > 1 else f"{text} One seed only: another seed will give another number."


def _contest(fair: Sequence[Group], key: str, alike: Pairs) -> str:
    best, *others = sorted(fair, key=lambda member: -final_estimate(member, key).mean)  # ties keep their order
    gaps = {other.name: difference(best, other, key) for other in others}
    rivals = [
        other.name
        for other in others
        if not gaps[other.name].excludes_zero or frozenset((best.name, other.name)) in alike
    ]
    text = _undecided(best, rivals, gaps, key) if rivals else _decided(best, fair[0], gaps, key)
    if all(gap.over == "seeds" for gap in gaps.values()):
        return text
    if min(len(member.runs) for member in fair) == 1:
        return f"{text} Not every sampler has more than one seed: training again may change the order."
    return f"{text} The samplers do not share two seeds on the same data, so their differences are uncertain."


def _decided(best: Group, first: Group, gaps: dict[str, Estimate], key: str) -> str:
    next_best = next(iter(gaps))
    against = first.name if first is not best else next_best
    verb = "recommends best" if gaps[against].over == "seeds" else "scores highest"
    text = f"{best.name} {verb}: {_value(best, key)}, {_gap(gaps[against])} {against} {_range(gaps[against])}."
    if against == next_best:
        return text
    return f"{text} The next best, {next_best}, is behind by {_behind(gaps[next_best])}."


def _undecided(best: Group, rivals: Sequence[str], gaps: dict[str, Estimate], key: str) -> str:
    gap = gaps[rivals[0]]
    doubt = "too few runs to say how sure that is"
    if gap.has_interval:
        doubt = "not clear once all pairs are tested" if gap.excludes_zero else "which includes zero"
    return (
        f"No clear winner between {joined([best.name, *rivals])}. {best.name} has the highest mean, "
        f"{_value(best, key)}, and is {_gap(gap)} {rivals[0]} {_range(gap, doubt)}."
    )


def _value(member: Group, key: str) -> str:
    """``NDCG@20 0.418 ± 0.001 over 3 seeds``."""
    value = final_estimate(member, key)
    text = f"{metric_name(key)} {number(value.mean, _digits(value))}"
    if not value.has_interval:
        return text
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
