"""Figures as files for print: SVG, PDF and PNG of the same drawing, legible without colour and at column width."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import matplotlib
from matplotlib.figure import Figure

from bayesneg.report.canvas import SETTINGS

COLUMN, PAGE = 3.4, 7.0  # inches: a column of a two-column paper, and both
FORMATS: Final[dict[str, dict[str, Any]]] = {
    "svg": {"metadata": {"Date": None, "Creator": None}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
    "png": {"dpi": 300, "metadata": {"Software": None}},
}
_SETTINGS: Final[dict[Any, Any]] = {
    **SETTINGS,
    "font.size": 8.5,
    "axes.labelsize": 8.5,
    "axes.titlesize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # text stays text
    "svg.hashsalt": "bayesneg",
}


def press(draw: Callable[[Figure], None], stem: Path, *, width: float = PAGE, height: float = 2.4) -> list[Path]:
    """Write ``stem``.svg, .pdf and .png; the same drawing gives the same bytes."""
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        paths = [stem.with_name(f"{stem.name}.{kind}") for kind in FORMATS]
        for path, options in zip(paths, FORMATS.values(), strict=True):
            figure.savefig(path, format=path.suffix[1:], **options)
    return paths
