"""The figures of an audit: across splits, ranks, popularity cohorts, and reliability diagrams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bayesneg.evaluation.cohorts import COHORTS
from bayesneg.evaluation.picks import RELIABILITY
from bayesneg.report.audit_page.rows import AuditedSplit, bins, deciles, measured, short_names
from bayesneg.report.figures.canvas import GREY, HoverPoint, Series, svg
from bayesneg.report.figures.labels import LINE, EndLabel, wrapped
from bayesneg.report.figures.plots import colour, look, named, of_seeds
from bayesneg.report.groups import RunGroup
from bayesneg.report.names import UNIFORM, percent

SHADES = ("#3b4252", "#8290b0", "#b8c3d8")  # the lightest is still seen where a dark page inverts it
FLOOR = 1e-4  # what is less is drawn here
FEWEST = 30  # picks that a bin needs to be drawn


def across(found: Sequence[AuditedSplit], *, prefix: str) -> str:
    """The share of false negatives of each sampler, split by split."""
    names = list(dict.fromkeys(group.name for split in found for group in split.groups))
    here = [{group.name: group for group in split.groups} for split in found]

    places = short_names(found)

    def draw(axes: Axes) -> list[Series]:
        labels, series = [], []
        for place, name in enumerate(names):
            at = [where for where, by_name in enumerate(here) if name in by_name]
            values = [measured(here[where][name], "fn") for where in at]
            spread = [value.half_width if value.has_interval else 0.0 for value in values]
            means = [value.mean for value in values]
            bars = axes.errorbar(at, means, yerr=spread, **look(place), capsize=2)
            shown, own = here[at[-1]][name].marked_name, colour(place)
            points = [
                HoverPoint(where, mean, (places[where], *_rates(here[where][name])))
                for where, mean in zip(at, means, strict=True)
            ]
            series.append(Series(shown, own, points, list(bars.get_children())))
            labels.append(EndLabel(at[-1], means[-1], shown, own))
        uniform = [split.uniform for split in found]
        line = axes.plot(range(len(found)), uniform, color=GREY, linestyle=":", linewidth=1.6)
        expected = [
            HoverPoint(at, rate, (places[at], f"false negatives {percent(rate)}")) for at, rate in enumerate(uniform)
        ]
        series.append(Series(UNIFORM, GREY, expected, [*line]))
        labels.append(EndLabel(len(found) - 1, uniform[-1], UNIFORM, GREY))
        axes.set_xticks(range(len(found)), places)
        axes.set_ylabel("false negatives among the picks")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
        axes.set_ylim(bottom=0)
        return named(series, axes, labels)

    return svg(draw, prefix, height=4.0)


def _rates(group: RunGroup) -> tuple[str, ...]:
    """The rate of false negatives over the seeds, and of each."""
    value, seeds = measured(group, "fn"), {run.seed: run.last("fn") for run in group.runs}
    return f"false negatives {percent(value.mean, value.half_width)}", *of_seeds(seeds, percent)


def ranks(groups: Sequence[RunGroup], *, prefix: str) -> str:
    """The normalized ranks of the picks, by tenths."""

    def draw(axes: Axes) -> list[Series]:
        labels, series = [], []
        for place, group in enumerate(groups):
            shares = deciles(group)
            if shares is not None:
                middles = np.arange(0.5, len(shares)) / len(shares)
                line = axes.plot(middles, shares, **look(place))
                seeds = {run.seed: deciles(RunGroup(group.name, (run,))) for run in group.runs}
                points = [
                    HoverPoint(
                        middles[tenth],
                        share,
                        (
                            f"ranks {tenth / len(shares):g} to {(tenth + 1) / len(shares):g}",
                            f"{percent(share)} of the picks",
                            *of_seeds({seed: own[tenth] for seed, own in seeds.items() if own is not None}, percent),
                        ),
                    )
                    for tenth, share in enumerate(shares)
                ]
                series.append(Series(group.marked_name, colour(place), points, [*line]))
                labels.append(EndLabel(middles[-1], shares[-1], group.marked_name, colour(place)))
        axes.axhline(0.1, color=GREY, linestyle=":", linewidth=1.2)
        axes.set_xlim(0, 1)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("normalized rank: share of unobserved items that score lower")
        axes.set_ylabel("share of picks")
        return named(series, axes, labels)

    return svg(draw, prefix, height=3.6)


def cohorts(groups: Sequence[RunGroup], *, prefix: str) -> str:
    """Shares of head, middle and tail among the picks of each sampler."""
    names = [wrapped(group.marked_name, 30) for group in groups]
    lines = max((name.count("\n") + 1 for name in names), default=1)  # a long name must not take the place of the bars

    def draw(axes: Axes) -> list[Series]:
        left, series = np.zeros(len(groups)), []
        for cohort, shade in zip(COHORTS, SHADES, strict=True):
            shares = np.array([measured(group, cohort).mean for group in groups])
            bars = axes.barh(
                range(len(groups)), shares, left=left, color=shade, edgecolor="white", height=0.7, label=cohort
            )
            points = [HoverPoint(*at, lines) for at, lines in _bar_texts(groups, cohort, left + shares / 2)]
            series.append(Series(cohort, shade, points, list(bars.patches)))
            for place, share in enumerate(shares):
                if share > 0.08:
                    ink = "#1d2329" if cohort == "tail" else "#ffffff"
                    where = (left[place] + share / 2, place)
                    text = axes.text(*where, f"{share:.0%}", ha="center", va="center", color=ink, fontsize=8.5)
                    series[-1].artists.append(text)
            left += np.nan_to_num(shares)
        axes.set_yticks(range(len(groups)), names)
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.grid(visible=False)
        legend = axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(COHORTS), frameon=False)
        for each, text in zip(series, legend.get_texts(), strict=True):
            each.labels.append(text)
        return series

    return svg(draw, prefix, height=1.2 + (0.14 + LINE * lines) * max(2, len(groups)))


def _bar_texts(
    groups: Sequence[RunGroup], cohort: str, middles: np.ndarray
) -> Iterator[tuple[tuple[float, float], tuple[str, ...]]]:
    """The middle of each bar, and what it tells."""
    for place, group in enumerate(groups):
        value, seeds = measured(group, cohort), {run.seed: run.last(cohort) for run in group.runs}
        lines = (group.marked_name, f"{percent(value.mean, value.half_width)} of the picks", *of_seeds(seeds, percent))
        yield (float(middles[place]), place), lines


def reliability(groups: Sequence[RunGroup], key: str, *, prefix: str) -> str:
    """Reliability diagram: predicted probability of a false negative against the observed rate, on log scales."""
    noun = "picks" if key == RELIABILITY["picked"] else "candidates"

    def draw(axes: Axes) -> list[Series]:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(FLOOR * 0.8, 1.25)  # before anything is drawn: limits are never fitted to a few equal shares
        axes.set_ylim(FLOOR * 0.8, 1.25)
        labels, series = [], []
        for place, group in enumerate(groups):
            found = bins(group, key)
            shown = None if found is None else found[0] >= FEWEST
            if found is None or shown is None or not shown.any():
                continue
            predicted, observed = (np.maximum(1.0 - values[shown], FLOOR) for values in found[1:])
            order = np.argsort(predicted)
            line = axes.plot(predicted[order], observed[order], **look(place))
            counts, last = found[0][shown], order[-1]
            points = [
                HoverPoint(
                    predicted[at],
                    observed[at],
                    (
                        f"predicted {percent(predicted[at])}",
                        f"observed {percent(observed[at])}",
                        f"{int(counts[at]):,} {noun} of seed{'s' if len(group.seeds) > 1 else ''} {_listed(group)}",
                    ),
                )
                for at in order
            ]
            series.append(Series(group.marked_name, colour(place), points, [*line]))
            labels.append(EndLabel(predicted[last], observed[last], group.marked_name, colour(place)))
        axes.plot([FLOOR, 1], [FLOOR, 1], color=GREY, linestyle=":", linewidth=1.4)
        axes.set_xlabel("predicted probability of a false negative (1 − unbias)")
        axes.set_ylabel("observed rate of false negatives")
        return named(series, axes, labels)

    return svg(draw, prefix, height=3.8)


def _listed(group: RunGroup) -> str:
    return ", ".join(map(str, group.seeds))
