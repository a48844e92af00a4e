"""From a drawing to SVG for a page: the same bytes for the same drawing, and text kept as text."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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


def svg(draw: Callable[[Axes], None], prefix: str, *, height: float = 3.3) -> str:
    """What ``draw`` draws, as an ``<svg>`` element; ``prefix`` starts every id, as figures share a page."""
    return figure_svg(lambda figure: draw(figure.subplots()), prefix, size=(5.6, height))


def figure_svg(draw: Callable[[Figure], None], prefix: str, *, size: tuple[float, float]) -> str:
    """The same for a figure of several axes, which ``draw`` makes; ``size`` is its width and height in inches."""
    with _settings(prefix):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _for_a_page(buffer.getvalue(), prefix)


def _for_a_page(text: str, prefix: str) -> str:
    """The ``<svg>`` element alone: no prolog, no page-wide style, unique ids, as wide as its place."""
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", text, count=1, flags=re.DOTALL)
    text = _own_ids(text, prefix)
    text = text.replace("font-family: 'DejaVu Sans', sans-serif", "font-family: sans-serif")
    return re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", text, count=1)


def _own_ids(text: str, prefix: str) -> str:
    """Ids that something refers to (clip paths, markers) get the prefix, others go; labels stay untouched."""
    tags = re.compile(r"<[^>]*>")
    used = {name for tag in tags.findall(text) for name in re.findall(r'(?:url\(|xlink:href=")#([^")]+)', tag)}

    def own(tag: re.Match[str]) -> str:
        named = re.sub(r' id="([^"]*)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", tag[0])
        return re.sub(r'(url\(|xlink:href=")#', rf"\1#{prefix}-", named)

    return tags.sub(own, text)
