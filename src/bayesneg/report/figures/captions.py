"""Which figures a study gets, each with a caption and a description for those who cannot see it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.evaluation.statistics import estimate
from bayesneg.report.figures import plots
from bayesneg.report.groups import RunGroup, median_seconds
from bayesneg.report.names import base_of, is_better_higher, number
from bayesneg.report.pages import Drawing
from bayesneg.report.summary import final_estimate
from bayesneg.runs.record import is_number

NAMES = {
    "tnr_true": "True TNR",
    "gradient_fn": "Gradient on held-out positives",
    "gradient_fn_true": "Gradient on false negatives",
}


def result_figures(groups: Sequence[RunGroup], key: str | None, *, prefix: str) -> Iterator[Drawing]:
    """Final metric, the same metric over epochs, and what it costs."""
    if key is None:
        return
    if len(groups) > 1:
        yield _final(groups, key, prefix=f"{prefix}-final")
    better = " Higher is better." if is_better_higher(key) else ""
    yield from _curve(groups, _recorded(groups, key), f"On test data.{better}", prefix=prefix)
    timed = [group for group in groups if is_number(median_seconds(group)) and not group.is_baseline]
    if len(timed) > 1:
        without = " Baselines have no epochs and are left out." if any(one.is_baseline for one in groups) else ""
        yield _cost(timed, key, without, prefix=f"{prefix}-cost")


def _cost(groups: Sequence[RunGroup], key: str, without: str, *, prefix: str) -> Drawing:
    ends = listed((group.marked_name, final_estimate(group, key).mean, median_seconds(group)) for group in groups)
    name = f"{metric_name(key)} against training time"
    caption = f"Up: better recommendations. Left: faster training. Seconds depend on the machine.{without}"
    return drawing(plots.cost_map(groups, key, prefix=prefix), prefix, name, caption, ends)


def _final(groups: Sequence[RunGroup], key: str, *, prefix: str) -> Drawing:
    ends = listed((group.marked_name, final_estimate(group, key).mean) for group in groups)
    several = any(len(group.runs) > 1 for group in groups)
    better = " Further right is better." if is_better_higher(key) else ""
    caption = f"Mean and 95% interval.{better}{' Strokes: single seeds.' if several else ''}"
    return drawing(plots.dots(groups, key, prefix=prefix), prefix, f"Final {metric_name(key)}", caption, ends)


def validation_figures(groups: Sequence[RunGroup], key: str | None, *, prefix: str) -> Iterator[Drawing]:
    """The metric on the data that may choose the epoch."""
    caption = "On validation data. Test labels are not used."
    if key is not None:
        yield from _curve(groups, f"validation_{key}", caption, prefix=prefix)


def quality_figures(groups: Sequence[RunGroup], *, prefix: str) -> Iterator[Drawing]:
    """TNR, true TNR, INF, the first against the last, and the gradient on false negatives."""
    tnr = "The share of the sampled negatives that are not held-out positives. Higher is better."
    true = "The same by the ground truth, of which the held-out labels cover only a part."
    inf = "Mean gradient magnitude, with a negative sign for false negatives. Higher is more informative."
    share = "The share of the loss's gradient on negatives that falls on {}. Lower is better."
    yield from _curve(groups, "tnr", tnr, prefix=prefix, expected="tnr_uniform")
    yield from _curve(groups, "tnr_true", true, prefix=prefix, expected="tnr_uniform_true")
    yield from _curve(groups, "inf", inf, prefix=prefix)
    placed = [group for group in groups if is_number(_last(group, "tnr")) and is_number(_last(group, "inf"))]
    if len(placed) > 1:
        ends = listed((group.marked_name, _last(group, "tnr"), _last(group, "inf")) for group in groups)
        yield drawing(
            plots.quality_map(groups, prefix=f"{prefix}-map"),
            f"{prefix}-map",
            "TNR against INF",
            "Mean of the last five epochs. Up: more informative. Right: fewer false negatives.",
            ends,
        )
    if plots.has_curve(groups, "gradient_fn_true"):
        yield from _curve(groups, "gradient_fn_true", share.format("false negatives"), prefix=prefix)
    else:
        yield from _curve(groups, "gradient_fn", share.format("held-out positives"), prefix=prefix)


def _curve(
    groups: Sequence[RunGroup], key: str, caption: str, *, prefix: str, expected: str | None = None
) -> Iterator[Drawing]:
    if not plots.has_curve(groups, key):
        return
    name = NAMES.get(key, metric_name(key))
    slug = prefix + re.sub(r"\W*(\w+)", r"-\1", base_of(key))
    ends = listed((group.marked_name, _last(group, key)) for group in groups)
    svg = plots.curves(groups, key, prefix=slug, name=name, expected=expected, percent="gradient" in key)
    yield drawing(svg, slug, f"{name} over epochs", caption, ends)


def drawing(svg: str, slug: str, title: str, caption: str, ends: str) -> Drawing:
    """The drawing with a description that ends in the numbers."""
    return Drawing(slug, svg, title, caption, f"{caption} At the end: {ends}.")


def _recorded(groups: Sequence[RunGroup], key: str) -> str:
    """``key``, or, where epochs recorded the same metric at other cut-offs only, the first of those."""
    if plots.has_curve(groups, key):
        return key
    lines = [line for group in groups for run in group.runs for line in run.epochs]
    return next((name for line in lines for name in line if base_of(name) == base_of(key)), key)


def _last(group: RunGroup, key: str) -> float:
    return estimate(run.last(key) for run in group.runs).mean


def listed(ends: Iterator[tuple[str, *tuple[float, ...]]]) -> str:
    """``RNS 0.3950; BNS 0.4170``; only what was measured."""
    measured = [(name, values) for name, *values in ends if all(map(is_number, values))]
    return "; ".join(f"{name} {' and '.join(map(number, values))}" for name, values in measured)
