"""Figures as SVG text, the same bytes for the same records.

Samplers differ in colour (after Okabe and Ito's palette, safe for colour-blind readers), in dash and in
marker, and carry their name beside the line, so that a figure survives a black-and-white printer.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, Locator, LogLocator, MaxNLocator, NullLocator, PercentFormatter

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.report.figures.canvas import GREY, svg
from bayesneg.report.groups import RunGroup, final_value, median_seconds
from bayesneg.report.names import UNIFORM
from bayesneg.report.summary import final_estimate
from bayesneg.runs.record import RunRecord

COLOURS = ("#0072B2", "#BF4B00", "#007A5A", "#AA4499", "#000000", "#8A6100", "#882255")  # readable as text
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (9, 2)))  # 7 and 5 are coprime
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINE = 0.205  # inches that a line of a name takes
MARGINS = 0.75  # inches above and below the axes


@dataclass(frozen=True)
class Curve:
    """A measure over epochs: the mean of a group's seeds, between their lowest and highest."""

    epochs: np.ndarray  # (E,)
    mean: np.ndarray  # (E,)
    low: np.ndarray  # (E,)
    high: np.ndarray  # (E,)

    @classmethod
    def of(cls, group: RunGroup, key: str) -> Curve | None:
        """The curve over the epochs that every run with ``key`` has; None where no run has it.

        An epoch that only some seeds reached would show a jump that no run made.
        """
        series = [values for run in group.runs if (values := run.at_epochs(key))]
        shared = sorted(set.intersection(*(set(values) for values in series))) if series else []
        if not shared:
            return None
        table = np.array([[values[epoch] for epoch in shared] for values in series])  # (seeds, E)
        return cls(np.array(shared), table.mean(axis=0), table.min(axis=0), table.max(axis=0))

    def throughout(self, epochs: Sequence[int]) -> Curve:
        """A baseline's single value, level from the first to the last of ``epochs``."""
        ends = np.array([min(epochs), max(epochs)])
        return Curve(ends, *(np.repeat(values[-1], 2) for values in (self.mean, self.low, self.high)))


class EndLabel(NamedTuple):
    x: float
    y: float
    name: str
    colour: str


def has_curve(groups: Sequence[RunGroup], key: str) -> bool:
    return any(Curve.of(group, key) is not None for group in groups)


def curves(
    groups: Sequence[RunGroup],
    key: str,
    *,
    prefix: str,
    name: str | None = None,
    expected: str | None = None,
    percent: bool = False,
) -> str:
    """``key`` over epochs, a line per group with the range of its seeds; ``expected`` is drawn dotted."""

    def draw(axes: Axes) -> None:
        labels, shown = [], []
        epochs = [epoch for group in groups for run in group.runs for epoch in run.at_epochs(key)]
        for place, group in enumerate(groups):
            curve = Curve.of(group, key)
            if curve is None:
                continue
            if group.is_baseline:
                curve = curve.throughout(epochs)
            shown.append(curve)
            every = max(1, len(curve.epochs) // 6)
            axes.fill_between(curve.epochs, curve.low, curve.high, color=colour(place), alpha=0.18, linewidth=0)
            axes.plot(curve.epochs, curve.mean, **look(place), markevery=(place % every, every))
            labels.append(EndLabel(curve.epochs[-1], curve.mean[-1], group.marked_name, colour(place)))
        reference = _pooled(groups, expected) if expected else None
        if reference is not None:
            shown.append(reference)
            axes.plot(reference.epochs, reference.mean, color=GREY, linestyle=":", linewidth=1.6)
            labels.append(EndLabel(reference.epochs[-1], reference.mean[-1], UNIFORM, GREY))
        axes.set_ylim(*_frame(shown))
        if len(set(epochs)) == 1:  # matplotlib would show a twentieth of an epoch, with ticks between whole ones
            axes.set_xlim(epochs[0] - 0.5, epochs[0] + 0.5)
        axes.set_xlabel("epoch")
        axes.set_ylabel(name or metric_name(key))
        axes.xaxis.set_major_locator(ticks(integer=True))
        axes.yaxis.set_major_locator(ticks())
        if percent:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
        label_ends(axes, labels)

    return svg(draw, prefix)


def quality_map(groups: Sequence[RunGroup], *, prefix: str, tail: int = 5) -> str:
    """TNR against INF, means of the last ``tail`` epochs: a small mark per seed, a large one per group."""

    def draw(axes: Axes) -> None:
        axes.margins(x=0.1, y=0.12)
        labels = []
        for place, group in enumerate(groups):
            points = np.array([(_tail_mean(r, "tnr", tail), _tail_mean(r, "inf", tail)) for r in group.runs])
            points = points[np.isfinite(points).all(axis=1)]
            if not len(points):
                continue
            x, y = points.mean(axis=0)
            look: dict[str, Any] = {"color": colour(place), "marker": marker(place), "linestyle": "none"}
            if len(points) > 1:
                axes.plot(*points.T, **look, markersize=3.5, alpha=0.55)
            axes.plot([x], [y], **look, markersize=9, markeredgecolor="white", markeredgewidth=0.8)
            labels.append(EndLabel(x, y, group.marked_name, colour(place)))
        label_ends(axes, labels)
        axes.set_xlabel("TNR: share of true negatives among those sampled")
        axes.set_ylabel("INF: mean gradient magnitude")
        axes.xaxis.set_major_locator(ticks())
        axes.yaxis.set_major_locator(ticks())

    return svg(draw, prefix)


def cost_map(groups: Sequence[RunGroup], key: str, *, prefix: str) -> str:
    """The final ``key`` against the seconds of the median epoch: what quality costs."""

    def draw(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.margins(x=0.1, y=0.12)
        labels = []
        for place, group in enumerate(groups):
            x, y = median_seconds(group), final_estimate(group, key)
            if not np.isfinite([x, y.mean]).all():
                continue
            own = colour(place)
            if y.has_interval:
                axes.plot([x, x], [y.low, y.high], color=own, linewidth=1.6)
            axes.plot([x], [y.mean], color=own, marker=marker(place), markersize=9, markeredgecolor="white")
            labels.append(EndLabel(x, y.mean, group.marked_name, own))
        label_ends(axes, labels)
        axes.set_xlabel("seconds per epoch (median, log scale)")
        axes.set_ylabel(metric_name(key))
        axes.yaxis.set_major_locator(ticks())
        axes.xaxis.set_major_locator(log_ticks([label.x for label in labels]))
        plain_log_labels(axes.xaxis)

    return svg(draw, prefix)


def dots(groups: Sequence[RunGroup], key: str, *, prefix: str) -> str:
    """The final ``key`` of each group: a dot with its 95% interval, and a stroke per seed below it."""

    def draw(axes: Axes) -> None:
        for place, group in enumerate(groups):
            value = final_estimate(group, key)
            if not np.isfinite(value.mean):
                continue
            seeds = [final_value(run, key) for run in group.runs]
            if len(seeds) > 1:
                axes.plot(seeds, np.full(len(seeds), place + 0.22), "|", color=colour(place), markersize=7)
            if value.has_interval:
                axes.plot([value.low, value.high], [place, place], color=colour(place), linewidth=2.2)
            axes.plot([value.mean], [place], color=colour(place), marker=marker(place), markersize=8)
            name_at = axes.get_yaxis_transform()  # x in axes' widths, y in rows
            text = axes.text(
                0, place - 0.36, elided(group.marked_name, 64), transform=name_at, va="center", color=colour(place)
            )
            text.set_in_layout(False)  # a long name may leave the axes; they keep their width
        axes.set_yticks([])
        axes.set_ylim(len(groups) - 0.5, -0.7)
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.12)
        axes.set_xlabel(metric_name(key))
        axes.xaxis.set_major_locator(ticks())

    return svg(draw, prefix, height=0.6 + 0.62 * max(2, len(groups)))


def _tail_mean(run: RunRecord, key: str, tail: int) -> float:
    values = run.at_epochs(key)
    return float(np.mean([values[epoch] for epoch in sorted(values)[-tail:]])) if values else float("nan")


def _pooled(groups: Sequence[RunGroup], key: str) -> Curve | None:
    """One curve of all runs together, for what depends on the data and not on the sampler."""
    return Curve.of(RunGroup("all", tuple(run for group in groups for run in group.runs)), key)


def _frame(shown: Sequence[Curve]) -> tuple[float, float]:
    """The y-range of all values, or of the later four fifths where the first epochs would take over half."""
    if not shown:
        return 0.0, 1.0
    start = min(curve.epochs[0] for curve in shown)
    late = start + (max(curve.epochs[-1] for curve in shown) - start) / 5
    everything = _span([(curve.low, curve.high) for curve in shown])
    later = _span([(curve.low[keep], curve.high[keep]) for curve in shown if (keep := curve.epochs >= late).any()])
    low, high = later if np.ptp(everything) > 2 * np.ptp(later) > 0 else everything
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _span(bands: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
    return min(float(low.min()) for low, _ in bands), max(float(high.max()) for _, high in bands)


def colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def marker(place: int) -> str:
    return MARKERS[place % len(MARKERS)]


def ticks(*, integer: bool = False) -> MaxNLocator:
    return MaxNLocator(nbins=5, steps=[1, 2, 5, 10], integer=integer, min_n_ticks=1 if integer else 2)


def log_ticks(values: Sequence[float]) -> Locator:
    """Ticks at 1, 2 and 5 of each decade, or evenly spaced ones where the values span too little for these."""
    if values and max(values) < 4 * min(values):
        return MaxNLocator(nbins=4, steps=[1, 2, 5, 10])
    return LogLocator(subs=(1, 2, 5))


def plain_log_labels(axis: Axis) -> None:
    """Labels such as 0.01: those of matplotlib are mathtext, which is not parsed here, for major and minor ticks."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
    axis.set_minor_locator(NullLocator())


def look(place: int) -> dict[str, Any]:
    """How the lines of a figure differ, in colour and without."""
    return {
        "color": colour(place),
        "linestyle": DASHES[place % len(DASHES)],
        "linewidth": 1.7,
        "marker": marker(place),
        "markersize": 4.5,
    }


def elided(name: str, width: int) -> str:
    """The name without its middle where it is too long: its end says which loss it is, and whether it sees labels.

    >>> elided("BNS (weighting=posterior, prior=learned) + Softmax", 30)
    'BNS (weightin…arned) + Softmax'
    """
    if len(name) <= width:
        return name
    begin = (width - 1) * 9 // 20
    return f"{name[:begin].rstrip()}…{name[begin - width + 1 :].lstrip()}"


def wrapped(name: str, width: int = 22) -> str:
    """The name in a few short lines."""
    return "\n".join(textwrap.wrap(elided(name, 4 * width - 4), width))


def label_ends(axes: Axes, labels: Sequence[EndLabel], *, n_rows: int = 1) -> None:
    """Write each name to the right of its line's end, moved up or down until no two overlap.

    A figure too low for all the names is made higher; ``n_rows`` is how many axes stand above each other in it.
    """
    axes.autoscale_view()
    in_axes = axes.transScale + axes.transLimits  # linear or logarithmic
    ordered = sorted(labels, key=lambda label: label.y)
    rows = [1 + wrapped(label.name).count("\n") for label in ordered]
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.set_figheight(max(figure.get_figheight(), n_rows * (sum(rows) * LINE + MARGINS)))
    heights = [own * LINE / (figure.get_figheight() / n_rows - MARGINS) for own in rows]  # in axes' heights
    centres = _spread([float(in_axes.transform((label.x, label.y))[1]) for label in ordered], heights)
    for label, centre in zip(ordered, centres, strict=True):
        line = {
            "arrowstyle": "-",
            "color": label.colour,
            "linewidth": 0.6,
            "shrinkA": 1,
            "shrinkB": 3,
            "relpos": (0, 0.5),
        }
        axes.annotate(
            wrapped(label.name),
            (label.x, label.y),
            (1.04, centre),
            textcoords="axes fraction",
            va="center",
            color=label.colour,
            annotation_clip=False,
            arrowprops=line,
        )


def _spread(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Centres close to ``wanted`` (ascending) at which labels of these heights do not overlap.

    Pushing up only and pushing down only both leave room; so does the mean of the two, which moves less. Labels that
    fit within the axes stay there: those beyond an end are moved back, and push others only as far as they must.
    """
    rooms = [(a + b) / 2 for a, b in pairwise(heights)]
    up, down = list(wanted), list(wanted)
    for place, room in enumerate(rooms):
        up[place + 1] = max(up[place + 1], up[place] + room)
    for place, room in reversed(list(enumerate(rooms))):
        down[place] = min(down[place], down[place + 1] - room)
    centres = [(a + b) / 2 for a, b in zip(up, down, strict=True)]
    if sum(heights) > 1.0 + 1e-9:
        return centres
    floor, ceiling = 0.0, 1.0
    for place, height in enumerate(heights):
        centres[place] = max(centres[place], floor + height / 2)
        floor = centres[place] + height / 2
    for place, height in reversed(list(enumerate(heights))):
        centres[place] = min(centres[place], ceiling - height / 2)
        ceiling = centres[place] - height / 2
    return centres
