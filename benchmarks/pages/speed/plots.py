"""The sections of docs/explanation/speed.md that have plots, and the plots."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayesneg.report.figures import canvas
from benchmarks.machine import read_result
from benchmarks.pages.text import folded, milliseconds, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES: Final = {
    "RNS": ("#555555", "o", ":"),
    "DNS": ("#b3560b", "s", "--"),
    "BNS, refreshed F": ("#1b6ca8", "^", "-"),
    "BNS, exact F": ("#7a1f6b", "D", "-."),
}
Result = dict[str, Any]


def scaling(result: Result) -> list[str]:
    parts = ["## How the time grows"]
    heads = {"items": "items of the catalogue", "candidates": "candidates m", "dimension": "dimension d"}
    texts = {
        "items": "Generated data, 5,000 users and 100,000 interactions, milliseconds per epoch.",
        "candidates": "MovieLens-100K, milliseconds per epoch.",
        "dimension": "MovieLens-100K, five candidates, milliseconds per epoch.",
    }
    for what, points in result.items():
        if what not in heads:
            continue
        rows = [[f"{int(x):,}", *(milliseconds(found[label]) for label in STYLES)] for x, found in points.items()]
        parts += [
            texts[what],
            f"![Time of an epoch against the {heads[what]}](images/speed/{what}.svg)",
            folded("Table", table([heads[what], *STYLES], rows)),
        ]
    return parts


def quality_time(result: Result) -> list[str]:
    rows = []
    for label, curves in result["curves"].items():
        seconds = float(np.mean([curve["seconds"][-1] for curve in curves]))
        rows.append([label, f"{seconds:.2f}", f"{np.mean([curve['ndcg@20'][-1] for curve in curves]):.4f}"])
    return [
        "## Quality against time",
        f"MovieLens-100K, {result['epochs']} epochs, mean of {len(curves)} seeds; every {result['every']}th epoch is a "
        "point. Evaluated on the test part: the best epoch is no result.",
        "![NDCG@20 against seconds of training](images/speed/quality.svg)",
        table(["sampler", f"seconds of {result['epochs']} epochs", "NDCG@20 at the end"], rows),
    ]


def draw(folder: Path) -> None:
    """Time against items, candidates and dimension, and quality against time, as SVG."""
    plots: dict[str, tuple[dict[str, Any], str, str, bool]] = {}
    if (found := read_result("speed/bench_scaling")) is not None:
        for what in ("items", "candidates", "dimension"):
            x = [int(value) for value in found[what]]
            curves = {name: (x, [1000 * point[name] for point in found[what].values()]) for name in STYLES}
            plots[what] = (curves, what, "milliseconds per epoch", True)
    if (found := read_result("quality/over_time")) is not None:
        curves = {
            name: tuple(np.mean([own[key] for own in found["curves"][name]], axis=0) for key in ("seconds", "ndcg@20"))
            for name in STYLES
        }
        plots["quality"] = (curves, "seconds of training", "NDCG@20", False)
    for name, plot in plots.items():
        (folder / f"{name}.svg").write_text(canvas.svg(partial(_draw, *plot), name), encoding="utf-8")


def _draw(curves: dict[str, Any], x_label: str, y_label: str, both_log: bool, axes: Axes) -> None:
    for name, (x, y) in curves.items():
        colour, marker, line = STYLES[name]
        axes.plot(x, y, color=colour, marker=marker, linestyle=line, markersize=4, label=name)
    axes.set_xscale("log")
    if both_log:
        axes.set_yscale("log")
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(curves), columnspacing=1.2, frameon=False)
