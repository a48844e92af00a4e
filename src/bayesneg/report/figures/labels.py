"""Names of series, written beside their ends so that no two overlap."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from matplotlib.axes import Axes
from matplotlib.text import Annotation

LINE: Final = 0.205  # inches that a line of a name takes
MARGINS: Final = 0.75  # inches above and below the axes


class EndLabel(NamedTuple):
    x: float
    y: float
    name: str
    colour: str


def elided(name: str, width: int) -> str:
    """The name without its middle where it is too long: its end says which loss it is, and whether it sees labels.

    >>> elided("BNS (weighting=posterior, prior=learned) + Softmax", 30)
    'BNS (weightin…arned) + Softmax'
    """
    if len(name) <= width:
        return name
    begin = (width - 1) * 9 // 20
    return f"{name[:begin].rstrip()}…{name[begin - width + 1 :].lstrip()}"


def wrapped(name: str, width: int = 22) -> str:
    """The name in a few short lines."""
    return "\n".join(textwrap.wrap(elided(name, 4 * width - 4), width))


def label_ends(axes: Axes, labels: Sequence[EndLabel], *, n_rows: int = 1) -> list[Annotation]:
    """Write each name to the right of its line's end, moved up or down until no two overlap.

    A figure too low for all the names is made higher; ``n_rows`` is how many axes stand above each other in it. Returns
    what was written, in the order of the labels.
    """
    axes.autoscale_view()
    in_axes = axes.transScale + axes.transLimits  # linear or logarithmic
    order = sorted(range(len(labels)), key=lambda place: labels[place].y)
    ordered = [labels[place] for place in order]
    rows = [1 + wrapped(label.name).count("\n") for label in ordered]
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.set_figheight(max(figure.get_figheight(), n_rows * (sum(rows) * LINE + MARGINS)))
    heights = [own * LINE / (figure.get_figheight() / n_rows - MARGINS) for own in rows]  # in axes' heights
    centres = _spread([float(in_axes.transform((label.x, label.y))[1]) for label in ordered], heights)
    written: dict[int, Annotation] = {}
    for place, label, centre in zip(order, ordered, centres, strict=True):
        line = {
            "arrowstyle": "-",
            "color": label.colour,
            "linewidth": 0.6,
            "shrinkA": 1,
            "shrinkB": 3,
            "relpos": (0, 0.5),
        }
        written[place] = axes.annotate(
            wrapped(label.name),
            (label.x, label.y),
            (1.04, centre),
            textcoords="axes fraction",
            va="center",
            color=label.colour,
            annotation_clip=False,
            arrowprops=line,
        )
    return [written[place] for place in range(len(labels))]


def _spread(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Centres close to ``wanted`` (ascending) at which labels of these heights do not overlap.

    Pushing up only and pushing down only both leave room; so does the mean of the two, which moves less. Labels that
    fit within the axes stay there: those beyond an end are moved back, and push others only as far as they must.
    """
    rooms = [(a + b) / 2 for a, b in pairwise(heights)]
    up, down = list(wanted), list(wanted)
    for place, room in enumerate(rooms):
        up[place + 1] = max(up[place + 1], up[place] + room)
    for place, room in reversed(list(enumerate(rooms))):
        down[place] = min(down[place], down[place + 1] - room)
    centres = [(a + b) / 2 for a, b in zip(up, down, strict=True)]
    if sum(heights) > 1.0 + 1e-9:
        return centres
    floor, ceiling = 0.0, 1.0
    for place, height in enumerate(heights):
        centres[place] = max(centres[place], floor + height / 2)
        floor = centres[place] + height / 2
    for place, height in reversed(list(enumerate(heights))):
        centres[place] = min(centres[place], ceiling - height / 2)
        ceiling = centres[place] - height / 2
    return centres
