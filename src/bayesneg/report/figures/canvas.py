"""From a drawing to SVG for a page: the same bytes for the same drawing, and text kept as text.

A drawing may say which series it has. The SVG then carries their names and the values of their points in the attribute
``data-chart``, and marks what belongs to each (``data-series``), what names it (``data-label``) and the line between
the two (``data-arrow``): the script of a page shows values and hides series by them, and lets the vertical axis
(``data-yaxis``) follow what is shown.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import PercentFormatter

from bayesneg.report.figures.ticks import without_mathtext
from bayesneg.report.pages import attribute

UNITS = 72  # of an SVG, in an inch
INK, GREY, FAINT = "#333333", "#666666", "#8a8a8a"

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a label is text: "$" is a dollar
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # measured with the font matplotlib brings, shown in the reader's
    "font.size": 9.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
}


@contextmanager
def _settings(prefix: str) -> Iterator[None]:
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": prefix}), warnings.catch_warnings():
        # The reader's browser has the glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message=r"Glyph \d+")
        # A figure too small for its labels is drawn all the same.
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        yield


class HoverPoint(NamedTuple):
    """A point that tells its values: where it is, in the units of the axes, and lines of text."""

    x: float
    y: float
    lines: tuple[str, ...]


@dataclass
class Series:
    """What a click hides together, and what its points tell."""

    name: str
    colour: str
    points: Sequence[HoverPoint] = ()
    artists: list[Artist] = field(default_factory=list)
    labels: list[Artist] = field(default_factory=list)  # what names it, and is clicked


Drawn = Sequence[Series] | None


def svg(draw: Callable[[Axes], Drawn], prefix: str, *, height: float = 3.3) -> str:
    """What ``draw`` draws, as an ``<svg>`` element; ``prefix`` starts every id, as figures share a page.

    Args:
        draw: Draws into the axes it is given; the series that it returns can be hovered and hidden on a page.
        prefix: Starts every id of the element.
        height: In inches; the width is the same for all.
    """
    found: list[Series] = []

    def with_series(figure: Figure) -> None:
        axes = figure.subplots()
        found.extend(draw(axes) or ())
        axes.xaxis.set_gid("xaxis-0")
        axes.yaxis.set_gid("yaxis-0")
        for place, series in enumerate(found):
            for kind, artists in (("series", series.artists), ("label", series.labels)):
                for artist in artists:
                    artist.set_gid(f"{kind}-{place}")
                    if isinstance(artist, Annotation) and artist.arrow_patch is not None:
                        artist.arrow_patch.set_gid(f"arrow-{place}")

    text, figure = _drawn(with_series, prefix, size=(5.6, height))
    if not found:
        return text
    return text.replace("<svg", f"<svg data-chart='{attribute(_chart(figure, found))}'", 1)


def figure_svg(draw: Callable[[Figure], None], prefix: str, *, size: tuple[float, float]) -> str:
    """The same for a figure of several axes, which ``draw`` makes; ``size`` is its width and height in inches."""
    return _drawn(draw, prefix, size)[0]


def still(drawing: str) -> str:
    """The ``<svg>`` element for a file: without what only the script of a page reads."""
    return re.sub(r""" data-(?:chart='[^']*'|(?:series|label|arrow|xaxis|yaxis)="\d+")""", "", drawing)


def _drawn(draw: Callable[[Figure], None], prefix: str, size: tuple[float, float]) -> tuple[str, Figure]:
    with _settings(prefix):
        figure = Figure(figsize=size, dpi=UNITS, layout="constrained")
        draw(figure)
        without_mathtext(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _for_a_page(buffer.getvalue(), prefix), figure


def _chart(figure: Figure, found: Sequence[Series]) -> dict[str, Any]:
    """The series with their points in the units of the SVG: [x, y, line of text, …]; only points that are in sight.

    ``crop`` is the width of the drawing without names beside it, where there are such names; ``axis`` is the vertical
    axis of such a drawing, where it is linear.
    """
    (axes,) = figure.axes
    width, height = UNITS * figure.get_size_inches()
    edge = axes.get_position().x1 * width
    ends = [text.get_window_extent() for text in (axes.xaxis.label, *axes.get_xticklabels()) if text.get_text()]
    right = max([edge, *(box.x1 for box in ends if (box.x0 + box.x1) / 2 <= edge + 1)])  # ticks beyond are not drawn

    def placed(points: Sequence[HoverPoint]) -> Iterator[list[Any]]:
        at = axes.transAxes.inverted().transform(axes.transData.transform([point[:2] for point in points]))
        for point, (x, y) in zip(points, at, strict=True):
            if min(x, y) > -0.01 and max(x, y) < 1.01:  # the first epochs may have left the frame
                (x, y) = figure.transFigure.inverted().transform(axes.transAxes.transform((x, y)))
                yield [round(float(x * width), 1), round(float((1 - y) * height), 1), *point.lines]

    series = []
    for each in found:
        points = [point for point in each.points if np.isfinite(point[:2]).all()]
        series.append({"name": each.name, "colour": each.colour, "points": list(placed(points)) if points else []})
    beside = any(isinstance(label, Annotation) for each in found for label in each.labels)
    found_here = {"series": series, **({"crop": round(float(right + 4.0), 1)} if beside else {})}
    return {**found_here, "axis": _vertical(axes, height)} if beside and axes.get_yscale() == "linear" else found_here


def _vertical(axes: Axes, height: float) -> dict[str, Any]:
    """The vertical axis for the script: its ends in units of the SVG and of the data, and whether it has percent."""
    frame, (low, high) = axes.get_position(), axes.get_ylim()
    ends = {"top": round(float((1 - frame.y1) * height), 2), "bottom": round(float((1 - frame.y0) * height), 2)}
    percent = isinstance(axes.yaxis.get_major_formatter(), PercentFormatter)
    return {**ends, "low": float(low), "high": float(high), "percent": percent}


def _for_a_page(text: str, prefix: str) -> str:
    """The ``<svg>`` element alone: no prolog, no page-wide style, unique ids, as wide as its place."""
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", text, count=1, flags=re.DOTALL)
    text = _own_ids(text, prefix)
    text = text.replace("font-family: 'DejaVu Sans', sans-serif", "font-family: sans-serif")
    return re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", text, count=1)


def _own_ids(text: str, prefix: str) -> str:
    """Ids that something refers to (clip paths, markers) get the prefix, others go; labels stay untouched.

    The ids of series, which several elements share, become attributes.
    """
    tags = re.compile(r"<[^>]*>")
    used = {name for tag in tags.findall(text) for name in re.findall(r'(?:url\(|xlink:href=")#([^")]+)', tag)}

    def own(tag: re.Match[str]) -> str:
        marked = re.sub(r' id="(series|label|arrow|xaxis|yaxis)-(\d+)"', r' data-\1="\2"', tag[0])
        named = re.sub(r' id="([^"]*)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", marked)
        return re.sub(r'(url\(|xlink:href=")#', rf"\1#{prefix}-", named)

    return tags.sub(own, text)
