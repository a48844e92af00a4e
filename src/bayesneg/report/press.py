"""Figures as files for print: SVG, PDF and PNG of the same drawing, legible without colour and at column width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib
from matplotlib.figure import Figure

from bayesneg.report.canvas import SETTINGS

PAGE: Final = 7.0  # inches: both columns of a paper; half of a figure of two panels is a column
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


def press(
    draw: Callable[[Figure], None], stem: Path, *, height: float = 2.6, kinds: Sequence[str] = tuple(FORMATS)
) -> list[Path]:
    """Write ``stem``.svg, .pdf and .png, as wide as a page; the same drawing gives the same bytes."""
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(PAGE, height), layout="constrained")
        draw(figure)
        paths = {kind: stem.with_name(f"{stem.name}.{kind}") for kind in kinds}
        for kind, path in paths.items():
            figure.savefig(path, format=kind, **FORMATS[kind])
    return list(paths.values())
