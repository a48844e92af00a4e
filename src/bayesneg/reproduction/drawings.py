"""The paper's figures, drawn from records (1, 4 and 5) or from the theory alone (2 and 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from bayesneg.errors import InputError
from bayesneg.evaluation.metric_names import metric_name
from bayesneg.evaluation.score_densities import DENSITIES
from bayesneg.kernels.reference.formulas import unbias
from bayesneg.reproduction import theory
from bayesneg.reproduction.published import MAIN
from bayesneg.reproduction.studies import Line, PaperStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Draw = Callable[["Figure"], None]
SHADE, DARK, MID = "#dddddd", "#111111", "#666666"


def score_densities(study: PaperStudy) -> Draw:
    """Figure 1: the densities of scores of true and false negatives after several epochs."""
    seen = [line for line in study.runs[0].epochs if DENSITIES in line]
    if not seen:
        raise InputError("no epoch of this training kept its densities; train at least as long as the first of them")

    def draw(figure: Figure) -> None:
        n_columns = min(2, len(seen))
        panels = figure.subplots(-(-len(seen) // n_columns), n_columns, squeeze=False).ravel()
        for axes, line in zip(panels, seen, strict=False):
            found = line[DENSITIES]
            edges = np.linspace(found["low"], found["high"], len(found["true"]) + 1)
            middle = (edges[1:] + edges[:-1]) / 2
            _two_densities(axes, middle, np.array(found["true"]), np.array(found["false"]))
            axes.set_title(f"epoch {line['epoch']}\nfalse above true: {found['share']:.0%}")
            axes.set_xlim(*_visible(middle, np.array(found["true"]) + np.array(found["false"])))
        for axes in panels[len(seen) :]:
            axes.set_visible(False)
        for axes in panels[: len(seen)][-n_columns:]:
            axes.set_xlabel("score")
        for axes in panels[::n_columns]:
            axes.set_ylabel("density")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)

    return draw


def _visible(x: np.ndarray, height: np.ndarray) -> tuple[float, float]:
    """The range that holds all but a sliver of both densities."""
    shown = np.flatnonzero(height > 0.002 * height.max())
    return float(x[shown[0]]), float(x[shown[-1]])


def _two_densities(axes: Axes, x: np.ndarray, true: np.ndarray, false: np.ndarray) -> None:
    axes.fill_between(x, true, color=SHADE, linewidth=0)
    axes.plot(x, true, color=DARK, linewidth=1.3, label="true negatives")
    axes.plot(x, false, color=DARK, linewidth=1.3, linestyle=(0, (4, 1.5)), label="false negatives")
    axes.set_ylim(bottom=0)


def theoretical_densities(figure: Figure) -> None:
    """Figure 2: the densities that order statistics give for three kinds of scores."""
    panels = figure.subplots(3, 1)
    for axes, (name, base) in zip(panels, theory.bases().items(), strict=True):
        x = np.linspace(base.ppf(0.001), base.ppf(0.999), 400)
        axes.plot(x, base.pdf(x), color=MID, linewidth=1, linestyle=":", label="f, all scores")
        _two_densities(axes, x, theory.true_negative_density(base, x), theory.false_negative_density(base, x))
        axes.set_title(name)
        axes.set_ylabel("density")
    panels[-1].set_xlabel("score")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def unbias_surface(figure: Figure) -> None:
    """Figure 3: unbias over F and the prior, as a surface and as lines of equal height."""
    F, p = np.meshgrid(np.linspace(0.005, 0.995, 100), np.linspace(0.005, 0.995, 100))
    height = unbias(F, p)
    surface = figure.add_subplot(2, 1, 1, projection="3d")
    surface.plot_wireframe(F, p, height, rcount=16, ccount=16, color=DARK, linewidth=0.6)
    surface.view_init(elev=24, azim=40)
    surface.set_box_aspect(None, zoom=0.85)
    ends = (0.0, 0.5, 1.0)
    surface.set(xlabel="F", ylabel="prior", zlabel="unbias", xticks=ends, yticks=ends, zticks=ends)
    flat = figure.add_subplot(2, 1, 2)
    levels = np.linspace(0.1, 0.9, 9)
    lines = flat.contour(F, p, height, levels=levels, colors=DARK, linewidths=0.9)
    across = 1.0 / (1.0 + np.sqrt(levels / (1.0 - levels)))  # where each line meets F = prior
    flat.clabel(lines, fmt="%.1f", fontsize=8, manual=list(zip(across, across, strict=True)))
    flat.set(xlabel="F, share of the list scored at or below", ylabel="prior of a false negative")
    flat.set_title("lines of equal unbias")


def sampling_quality(study: PaperStudy) -> Draw:
    """Figure 4: TNR and INF of each sampler over the epochs."""
    from bayesneg.report.figures.plots import Curve, look
    from bayesneg.report.groups import RunGroup

    def draw(figure: Figure) -> None:
        panels = figure.subplots(2, 1, sharex=True)
        for axes, (key, name) in zip(panels, QUALITY.items(), strict=True):
            for place, line in enumerate(study.lines):
                curve = Curve.of(RunGroup(line.label, line.runs), key)
                if curve is None:
                    continue
                every = max(1, len(curve.epochs) // 6)
                start = place * every // len(study.lines)
                axes.fill_between(curve.epochs, curve.low, curve.high, color=look(place)["color"], alpha=0.15, lw=0)
                axes.plot(curve.epochs, curve.mean, **look(place), markevery=(start, every), label=line.label)
            axes.set_ylabel(name)
        panels[-1].set_xlabel("epoch")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)

    return draw


QUALITY: Final = {"tnr": "TNR: share of true negatives", "inf": "INF: mean gradient magnitude"}


def sensitivity(study: PaperStudy) -> Draw:
    """Figure 5: NDCG@20 over λ at m = 5, and over m at λ = 5."""
    by_name: dict[str, list[Line]] = {}
    for line in study.lines:
        by_name.setdefault(line.label.partition(" = ")[0], []).append(line)

    def draw(figure: Figure) -> None:
        panels = np.atleast_1d(figure.subplots(1, len(by_name), sharey=True))
        for axes, (name, lines) in zip(panels, by_name.items(), strict=True):
            _points(axes, lines)
            axes.set_xlabel({"m": "m, candidates (λ = 5)", "λ": "λ (m = 5)"}.get(name, name))
        panels[0].set_ylabel(metric_name(MAIN))

    return draw


def _points(axes: Axes, lines: Sequence[Line]) -> None:
    """Means with their intervals, evenly spaced, as the values asked for are not."""
    values = [line.values[MAIN].here for line in lines]
    means = [value.mean for value in values]
    spread = [value.half_width if value.has_interval else 0.0 for value in values]
    axes.errorbar(range(len(lines)), means, yerr=spread, color=DARK, marker="o", markersize=4, capsize=3, linewidth=1.2)
    axes.set_xticks(range(len(lines)), [line.label.partition(" = ")[2] for line in lines])
