"""Figures as files for print: SVG, PDF and PNG of the same drawing, as wide as a column and legible without colour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib
from matplotlib.figure import Figure

from bayesneg.report.figures.canvas import SETTINGS
from bayesneg.report.figures.ticks import without_mathtext
from bayesneg.whole_files import replacing

COLUMN: Final = 3.5  # inches: one of a paper's two columns, so that the sizes below are those in print
FORMATS: Final[dict[str, dict[str, Any]]] = {
    "svg": {"metadata": {"Date": None, "Creator": None}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
    "png": {"dpi": 300, "metadata": {"Software": None}},
}
_SETTINGS: Final[dict[Any, Any]] = {
    **SETTINGS,
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.columnspacing": 1.2,
    "legend.handlelength": 2.2,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # text stays text
    "svg.hashsalt": "bayesneg",
}


def export(
    draw: Callable[[Figure], None], stem: Path, *, height: float, kinds: Sequence[str] = tuple(FORMATS)
) -> list[Path]:
    """Write a figure for print: ``stem``.svg, .pdf and .png, as wide as a column.

    Args:
        draw: Draws into the figure it is given.
        stem: The path of the files without their ending.
        height: In inches.
        kinds: Which formats to write.

    Returns:
        The files written; the same drawing gives the same bytes.
    """
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(COLUMN, height), layout="constrained")
        draw(figure)
        without_mathtext(figure)
        paths = {kind: stem.with_name(f"{stem.name}.{kind}") for kind in kinds}
        for kind, path in paths.items():
            with replacing(path) as part:
                figure.savefig(part, format=kind, **FORMATS[kind])
    return list(paths.values())
