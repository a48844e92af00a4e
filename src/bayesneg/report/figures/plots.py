"""Figures as SVG text, the same bytes for the same records.

Samplers differ in colour (after Okabe and Ito's palette, safe for colour-blind readers), in dash and in
marker, and carry their name beside the line, so that a figure survives a black-and-white printer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.evaluation.statistics import Estimate
from bayesneg.report.figures.canvas import GREY, HoverPoint, Series, svg
from bayesneg.report.figures.labels import EndLabel, elided, label_ends
from bayesneg.report.figures.ticks import log_ticks, ticks
from bayesneg.report.groups import RunGroup, final_value, median_seconds
from bayesneg.report.names import UNIFORM, counted, number
from bayesneg.report.names import percent as as_percent
from bayesneg.report.summary import final_estimate
from bayesneg.runs.record import RunRecord

COLOURS = ("#0072B2", "#BF4B00", "#007A5A", "#AA4499", "#000000", "#8A6100", "#882255")  # readable as text
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (9, 2)))  # 7 and 5 are coprime
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


TextOf = Callable[[float], str]


@dataclass(frozen=True)
class Curve:
    """A measure over epochs: the mean of a group's seeds, between their lowest and highest."""

    epochs: np.ndarray  # (E,)
    mean: np.ndarray  # (E,)
    low: np.ndarray  # (E,)
    high: np.ndarray  # (E,)
    by_seed: Mapping[int, np.ndarray] = field(default_factory=dict)  # seed → (E,)

    @classmethod
    def of(cls, group: RunGroup, key: str) -> Curve | None:
        """The curve over the epochs that every run with ``key`` has; None where no run has it.

        An epoch that only some seeds reached would show a jump that no run made.
        """
        series = [(run.seed, values) for run in group.runs if (values := run.at_epochs(key))]
        shared = sorted(set.intersection(*(set(values) for _, values in series))) if series else []
        if not shared:
            return None
        table = np.array([[values[epoch] for epoch in shared] for _, values in series])  # (seeds, E)
        seeds = dict(zip((seed for seed, _ in series), table, strict=True))
        return cls(np.array(shared), table.mean(axis=0), table.min(axis=0), table.max(axis=0), seeds)

    def throughout(self, epochs: Sequence[int]) -> Curve:
        """A baseline's single value, level from the first to the last of ``epochs``."""
        every = np.array(sorted(set(epochs)))
        mean, low, high = (np.repeat(values[-1], len(every)) for values in (self.mean, self.low, self.high))
        return Curve(every, mean, low, high, {s: np.repeat(own[-1], len(every)) for s, own in self.by_seed.items()})

    def points(self, name: str, text: TextOf) -> list[HoverPoint]:
        """What each epoch tells: the mean, and the value of each seed."""
        found = []
        for place, (epoch, mean) in enumerate(zip(self.epochs.tolist(), self.mean.tolist(), strict=True)):
            seeds = {seed: float(values[place]) for seed, values in self.by_seed.items()}
            found.append(HoverPoint(epoch, mean, (f"epoch {epoch}", f"{name} {text(mean)}", *of_seeds(seeds, text))))
        return found


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

    text = as_percent if percent else number

    def draw(axes: Axes) -> list[Series]:
        labels, shown, series = [], [], []
        epochs = [epoch for group in groups for run in group.runs for epoch in run.at_epochs(key)]
        for place, group in enumerate(groups):
            curve = Curve.of(group, key)
            if curve is None:
                continue
            if group.is_baseline:
                curve = curve.throughout(epochs)
            shown.append(curve)
            every = max(1, len(curve.epochs) // 6)
            band = axes.fill_between(curve.epochs, curve.low, curve.high, color=colour(place), alpha=0.18, linewidth=0)
            at = (0, max(1, len(curve.epochs) - 1)) if group.is_baseline else (place % every, every)
            line = axes.plot(curve.epochs, curve.mean, **look(place), markevery=at)
            points = curve.points(name or metric_name(key), text)
            series.append(Series(group.marked_name, colour(place), points, [band, *line]))
            labels.append(EndLabel(curve.epochs[-1], curve.mean[-1], group.marked_name, colour(place)))
        reference = _pooled(groups, expected) if expected else None
        if reference is not None:
            shown.append(reference)
            line = axes.plot(reference.epochs, reference.mean, color=GREY, linestyle=":", linewidth=1.6)
            points = replace(reference, by_seed={}).points(name or metric_name(key), text)
            series.append(Series(UNIFORM, GREY, points, [*line]))
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
        return named(series, axes, labels)

    return svg(draw, prefix)


def quality_map(groups: Sequence[RunGroup], *, prefix: str, tail: int = 5) -> str:
    """TNR against INF, means of the last ``tail`` epochs: a small mark per seed, a large one per group."""

    def draw(axes: Axes) -> list[Series]:
        axes.margins(x=0.1, y=0.12)
        labels, series = [], []
        for place, group in enumerate(groups):
            measured = {run.seed: (_tail_mean(run, "tnr", tail), _tail_mean(run, "inf", tail)) for run in group.runs}
            measured = {seed: pair for seed, pair in measured.items() if np.isfinite(pair).all()}
            if not measured:
                continue
            x, y = np.mean(list(measured.values()), axis=0)
            look: dict[str, Any] = {"color": colour(place), "marker": marker(place), "linestyle": "none"}
            seeds = {f"seed {seed}": pair for seed, pair in measured.items()} if len(measured) > 1 else {}
            small = axes.plot(*zip(*seeds.values(), strict=True), **look, markersize=3.5, alpha=0.55) if seeds else []
            large = axes.plot([x], [y], **look, markersize=9, markeredgecolor="white", markeredgewidth=0.8)
            over = counted(len(measured), "seed")
            points = [
                HoverPoint(*pair, (who, f"TNR {number(pair[0])}", f"INF {number(pair[1])}"))
                for who, pair in {f"mean of {over}": (x, y), **seeds}.items()
            ]
            series.append(Series(group.marked_name, colour(place), points, [*small, *large]))
            labels.append(EndLabel(x, y, group.marked_name, colour(place)))
        axes.set_xlabel("TNR: share of true negatives among those sampled")
        axes.set_ylabel("INF: mean gradient magnitude")
        axes.xaxis.set_major_locator(ticks())
        axes.yaxis.set_major_locator(ticks())
        return named(series, axes, labels)

    return svg(draw, prefix)


def cost_map(groups: Sequence[RunGroup], key: str, *, prefix: str) -> str:
    """The final ``key`` against the seconds of the median epoch: what quality costs."""

    def draw(axes: Axes) -> list[Series]:
        axes.set_xscale("log")
        axes.margins(x=0.1, y=0.12)
        labels, series = [], []
        for place, group in enumerate(groups):
            x, y = median_seconds(group), final_estimate(group, key)
            if not np.isfinite([x, y.mean]).all():
                continue
            own = colour(place)
            span = axes.plot([x, x], [y.low, y.high], color=own, linewidth=1.6) if y.has_interval else []
            dot = axes.plot([x], [y.mean], color=own, marker=marker(place), markersize=9, markeredgecolor="white")
            lines = (*told(metric_name(key), y), f"{x:.3g} seconds per epoch", *of_runs(group, key))
            series.append(Series(group.marked_name, own, [HoverPoint(x, y.mean, lines)], [*span, *dot]))
            labels.append(EndLabel(x, y.mean, group.marked_name, own))
        axes.set_xlabel("seconds per epoch (median, log scale)")
        axes.set_ylabel(metric_name(key))
        axes.yaxis.set_major_locator(ticks())
        axes.xaxis.set_major_locator(log_ticks([label.x for label in labels]))
        return named(series, axes, labels)

    return svg(draw, prefix)


def dots(groups: Sequence[RunGroup], key: str, *, prefix: str) -> str:
    """The final ``key`` of each group: a dot with its 95% interval, and a stroke per seed below it."""

    def draw(axes: Axes) -> list[Series]:
        series = []
        for place, group in enumerate(groups):
            value, own = final_estimate(group, key), colour(place)
            if not np.isfinite(value.mean):
                continue
            points = [HoverPoint(value.mean, place, told(metric_name(key), value))]
            artists: list[Artist] = []
            if len(group.runs) > 1:
                seeds = {run.seed: final_value(run, key) for run in group.runs}
                artists += axes.plot(
                    list(seeds.values()), np.full(len(seeds), place + 0.22), "|", color=own, markersize=7
                )
                points += [
                    HoverPoint(at, place + 0.22, (f"seed {seed}", f"{metric_name(key)} {number(at)}"))
                    for seed, at in seeds.items()
                ]
            if value.has_interval:
                artists += axes.plot([value.low, value.high], [place, place], color=own, linewidth=2.2)
            artists += axes.plot([value.mean], [place], color=own, marker=marker(place), markersize=8)
            name_at = axes.get_yaxis_transform()  # x in axes' widths, y in rows
            text = axes.text(0, place - 0.36, elided(group.marked_name, 56), transform=name_at, va="center", color=own)
            text.set_in_layout(False)  # a long name may leave the axes; they keep their width
            series.append(Series(group.marked_name, own, points, artists, [text]))
        axes.set_yticks([])
        axes.set_ylim(len(groups) - 0.5, -0.7)
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.12)
        axes.set_xlabel(metric_name(key))
        axes.xaxis.set_major_locator(ticks())
        return series

    return svg(draw, prefix, height=0.6 + 0.62 * max(2, len(groups)))


def named(series: list[Series], axes: Axes, labels: Sequence[EndLabel]) -> list[Series]:
    """The series, whose names are now written beside their ends."""
    for each, label in zip(series, label_ends(axes, labels), strict=True):
        each.labels.append(label)
    return series


def told(name: str, value: Estimate) -> tuple[str, ...]:
    """A mean with its interval, as a point tells them."""
    if not value.has_interval:
        return (f"{name} {number(value.mean)}",)
    over = counted(value.n, "seed") if value.over == "seeds" else "users"
    span = f"95% interval over {over} {number(value.low)} to {number(value.high)}"
    return f"{name} {number(value.mean)}", span


def of_runs(group: RunGroup, key: str) -> tuple[str, ...]:
    return of_seeds({run.seed: final_value(run, key) for run in group.runs}, number)


def of_seeds(values: Mapping[int, float], text: TextOf) -> tuple[str, ...]:
    """``seed 0: 0.4110, seed 1: 0.4135``; empty where there is nothing beside the mean."""
    if len(values) < 2:
        return tuple(f"seed {seed}" for seed in values)
    return (", ".join(f"seed {seed}: {text(value)}" for seed, value in values.items()),)


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


def look(place: int) -> dict[str, Any]:
    """How the lines of a figure differ, in colour and without."""
    return {
        "color": colour(place),
        "linestyle": DASHES[place % len(DASHES)],
        "linewidth": 1.7,
        "marker": marker(place),
        "markersize": 4.5,
    }
