"""Which figures a study gets, each with a caption and a description for those who cannot see it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bayesneg.evaluation.statistics import estimate
from bayesneg.report import plots
from bayesneg.report.markup import Markup, element
from bayesneg.report.names import base_of, is_better_higher, metric_name, number
from bayesneg.report.runs import Group, median_seconds
from bayesneg.report.summary import final_estimate
from bayesneg.runs.record import is_number


def result_figures(groups: Sequence[Group], key: str | None, *, prefix: str) -> Iterator[Markup]:
    """Final metric, the same metric over epochs, and what it costs."""
    if key is None:
        return
    if len(groups) > 1:
        yield _final(groups, key, prefix=f"{prefix}-final")
    better = " Higher is better." if is_better_higher(key) else ""
    yield from _curve(groups, _recorded(groups, key), f"On the test part.{better}", prefix=prefix)
    timed = [member for member in groups if is_number(median_seconds(member)) and not member.is_baseline]
    if len(timed) > 1:
        yield _cost(timed, key, prefix=f"{prefix}-cost")


def _cost(groups: Sequence[Group], key: str, *, prefix: str) -> Markup:
    ends = listed((member.marked_name, final_estimate(member, key).mean, median_seconds(member)) for member in groups)
    name = f"{metric_name(key)} against training time"
    caption = "Further up recommends better, further left trains faster. Seconds depend on the machine."
    return figure(plots.cost_map(groups, key, prefix=prefix), prefix, name, caption, ends)


def _final(groups: Sequence[Group], key: str, *, prefix: str) -> Markup:
    ends = listed((member.marked_name, final_estimate(member, key).mean) for member in groups)
    several = any(len(member.runs) > 1 for member in groups)
    better = " Further right is better." if is_better_higher(key) else ""
    caption = f"Mean and 95% interval.{better}{' Strokes: the single seeds.' if several else ''}"
    return figure(plots.dots(groups, key, prefix=prefix), prefix, f"Final {metric_name(key)}", caption, ends)


def validation_figures(groups: Sequence[Group], key: str | None, *, prefix: str) -> Iterator[Markup]:
    """The metric on the part that may choose the epoch."""
    caption = "On the validation part. Test labels play no role here."
    if key is not None:
        yield from _curve(groups, f"validation_{key}", caption, prefix=prefix)


def quality_figures(groups: Sequence[Group], *, prefix: str) -> Iterator[Markup]:
    """TNR, true TNR, INF, and the first against the last."""
    tnr = "Of the sampled negatives, the share that held-out labels do not call positive. Higher is cleaner."
    true = "The same against the full truth, of which the held-out labels know only a part."
    inf = "Mean gradient magnitude, false negatives counted as negative. Higher teaches more."
    yield from _curve(groups, "tnr", tnr, prefix=prefix, expected="tnr_uniform")
    yield from _curve(groups, "tnr_true", true, prefix=prefix, expected="tnr_uniform_true")
    yield from _curve(groups, "inf", inf, prefix=prefix)
    placed = [member for member in groups if is_number(_last(member, "tnr")) and is_number(_last(member, "inf"))]
    if len(placed) > 1:
        ends = listed((member.marked_name, _last(member, "tnr"), _last(member, "inf")) for member in groups)
        yield figure(
            plots.quality_map(groups, prefix=f"{prefix}-map"),
            f"{prefix}-map",
            "TNR against INF",
            "Mean of the last five epochs. Up: more informative. Right: fewer false negatives.",
            ends,
        )


def _curve(
    groups: Sequence[Group], key: str, caption: str, *, prefix: str, expected: str | None = None
) -> Iterator[Markup]:
    if not plots.has_curve(groups, key):
        return
    name = {"tnr_true": "True TNR"}.get(key, metric_name(key))
    slug = prefix + re.sub(r"\W*(\w+)", r"-\1", base_of(key))
    ends = listed((member.marked_name, _last(member, key)) for member in groups)
    svg = plots.curves(groups, key, prefix=slug, name=name, expected=expected)
    yield figure(svg, slug, f"{name} over epochs", caption, ends)


def figure(svg: str, slug: str, title: str, caption: str, ends: str) -> Markup:
    """A drawing with its title, a caption, and a description that ends in the numbers."""
    named = (
        element("title", {"id": f"{slug}-title"}, title),
        element("desc", {"id": f"{slug}-desc"}, f"{caption} At the end: {ends}."),
    )
    opening, _, rest = svg.partition(">")
    role = f' role="img" aria-labelledby="{slug}-title {slug}-desc">'
    drawing = Markup(f"{opening}{role}{''.join(named)}{rest}")
    return element("figure", {}, element("figcaption", {}, element("strong", {}, title), caption), drawing)


def _recorded(groups: Sequence[Group], key: str) -> str:
    """``key``, or, where epochs recorded the same metric at other cut-offs only, the first of those."""
    if plots.has_curve(groups, key):
        return key
    lines = [line for member in groups for run in member.runs for line in run.epochs]
    return next((name for line in lines for name in line if base_of(name) == base_of(key)), key)


def _last(member: Group, key: str) -> float:
    return estimate(run.last(key) for run in member.runs).mean


def listed(ends: Iterator[tuple[str, *tuple[float, ...]]]) -> str:
    """``RNS 0.3950; BNS 0.4170``; only what was measured."""
    measured = [(name, values) for name, *values in ends if all(map(is_number, values))]
    return "; ".join(f"{name} {' and '.join(map(number, values))}" for name, values in measured)
