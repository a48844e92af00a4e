"""Where the ticks of an axis are, and what they say."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, Locator, LogFormatter, LogLocator, MaxNLocator, NullLocator


def ticks(*, integer: bool = False) -> MaxNLocator:
    return MaxNLocator(nbins=5, steps=[1, 2, 5, 10], integer=integer, min_n_ticks=1 if integer else 2)


def log_ticks(values: Sequence[float]) -> Locator:
    """Ticks at 1, 2 and 5 of each decade, or evenly spaced ones where the values span too little for these."""
    if values and max(values) < 4 * min(values):
        return MaxNLocator(nbins=4, steps=[1, 2, 5, 10])
    return LogLocator(subs=(1, 2, 5))


def plain_log_labels(axis: Axis) -> None:
    """Labels such as 0.01 or 10,000: those of matplotlib are mathtext, for major and minor ticks."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    axis.set_minor_locator(NullLocator())


def without_mathtext(figure: Figure) -> None:
    """Plain labels on every logarithmic axis of the figure: figures show text as it is, and do not parse mathtext."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatter):
                plain_log_labels(axis)


def _plain(value: float) -> str:
    return f"{value:,.4g}" if not 1e3 <= abs(value) < 1e7 else f"{value:,.0f}"
