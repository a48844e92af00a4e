"""The figures of docs/explanation/study.md: quality against the gradient on false negatives and against seconds of training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bayesneg.report.figures import canvas
from bayesneg.report.figures.labels import LINE, MARGINS, EndLabel, label_ends
from bayesneg.report.figures.plots import COLOURS, MARKERS
from bayesneg.report.figures.ticks import log_ticks, plain_log_labels, ticks
from bayesneg.reproduction.studies import MODELS
from benchmarks.pages.study.records import OURS, TITLES, Dataset, Records, is_oracle
from benchmarks.studies.negatives.contenders import BASELINES, CONTENDERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, BLACK = COLOURS[:5]
KINDS: Final = {  # by what a reader compares: the colour, and the words of the caption
    "ours": (ORANGE, "orange ours"),
    "pool": (BLUE, "blue a uniform pool"),
    "in-batch": (GREEN, "green in-batch"),
    "one": (PURPLE, "purple BPR with one negative"),
    "oracle": (canvas.GREY, "grey oracles (they see the labels)"),
    "baseline": (BLACK, "black baselines"),
}


class Mark(NamedTuple):
    """A contender in a figure."""

    name: str
    value: float  # NDCG@20
    share: float | None
    seconds: float
    device: str
    is_final: bool = True  # False: its search is unfinished

    @property
    def kind(self) -> str:
        if self.name in BASELINES:
            return "baseline"
        if is_oracle(self.name):
            return "oracle"
        if self.name in OURS:
            return "ours"
        if self.name.startswith("in-batch"):
            return "in-batch"
        return "one" if CONTENDERS[self.name].loss.__name__ == "BPR" else "pool"

    @property
    def colour(self) -> str:
        return KINDS[self.kind][0]

    @property
    def marker(self) -> str:
        """Marks of one colour differ."""
        alike = [name for name in (*CONTENDERS, *BASELINES) if self._replace(name=name).kind == self.kind]
        return MARKERS[alike.index(self.name) % len(MARKERS)]


class Panel(NamedTuple):
    """A row of a figure: one model, on the test part or on validation, never both."""

    model: str
    part: str
    marks: Sequence[Mark]


def panels(dataset: Dataset) -> list[Panel]:
    """The models that have runs: those with final runs on the test part, the others on validation."""
    found = []
    for records in dataset.models:
        if records.finals:
            found.append(Panel(records.model, "test", [*_tested(records), *_tested(dataset.baselines)]))
        elif any(one.best for one in records.searches.values()):
            found.append(Panel(records.model, "validation", [*_searched(records), *_searched(dataset.baselines)]))
    return found


def _tested(records: Records) -> list[Mark]:
    return [
        Mark(name, runs.value.mean, runs.share, runs.seconds, runs.runs[0]["machine"]["device"])
        for name, runs in (records.finals | records.oracles).items()
    ]


def _searched(records: Records) -> list[Mark]:
    return [
        Mark(name, best.value, best.share, best.seconds, best.run["machine"]["device"], one.is_complete)
        for name, one in records.searches.items()
        if (best := one.best)
    ]


def figures(found: Sequence[Dataset]) -> list[str]:
    """The pictures with their captions."""
    shown = [(dataset, rows) for dataset in found if (rows := panels(dataset))]
    if not shown:
        return []
    pictures = []
    for dataset, rows in shown:
        said = " and ".join(f"{MODELS[row.model]} on {row.part}" for row in rows)
        where = f"images/study/{dataset.name}.svg"
        pictures += [
            f"**{dataset.title}** ({said})",
            f"![{dataset.title}: NDCG@20 against the gradient on false negatives and against training seconds]({where})",
        ]
    missing = [dataset.title for dataset in found if not panels(dataset)]
    return [
        "## Quality, false negatives and time",
        f"Each contender at its own best setting, an oracle at that of the contender without weights. Left: the share of the loss's gradient on held-out positives; right: "
        f"seconds of training, without the fit of a learned prior. Colours: {', '.join(text for _, text in KINDS.values())}. "
        "Baselines are lines on the left; they have no negatives. A mark on the upper edge lies above it, its value stands beside "
        "its name. Hollow: the search is unfinished."
        + (f" Not drawn, for want of runs: {', '.join(missing)}." if missing else ""),
        *pictures,
    ]


def draw(found: Sequence[Dataset], folder: Path) -> None:
    """The figures, as SVG."""
    for dataset in found:
        if rows := panels(dataset):
            n_names = max(len(row.marks) for row in rows)
            size = (11.0, len(rows) * max(3.3, 1.1 * n_names * LINE + MARGINS))
            text = canvas.figure_svg(partial(draw_panels, rows), dataset.name, size=size)
            (folder / f"{dataset.name}.svg").write_text(text + "\n", encoding="utf-8")


def draw_panels(rows: Sequence[Panel], figure: Figure) -> None:
    for (left, right), row in zip(figure.subplots(len(rows), 2, squeeze=False), rows, strict=True):
        bottom, top = frame(row.marks)
        for axes in (left, right):
            axes.set_ylim(bottom, top)
            axes.set_ylabel(f"{MODELS[row.model]}, NDCG@20, {row.part}")
            axes.yaxis.set_major_locator(ticks())
        draw_shares(left, row.marks, top, len(rows))
        draw_seconds(right, row.marks, top, len(rows))


def frame(marks: Sequence[Mark]) -> tuple[float, float]:
    """The range of all contenders; an oracle may lie above it."""
    values = [mark.value for mark in marks if mark.kind != "oracle"] or [mark.value for mark in marks]
    margin = 0.08 * (max(values) - min(values)) or 0.05 * max(values) or 0.05
    return min(values) - margin, max(values) + margin


def draw_shares(axes: Axes, marks: Sequence[Mark], top: float, n_rows: int) -> None:
    shares = [100 * mark.share for mark in marks if mark.share is not None]
    end = 1.08 * max(shares, default=1.0) or 1.0
    axes.set_xlim(-0.04 * end, end)
    labels = []
    for mark in marks:
        if mark.share is not None:
            labels.append(_drawn(axes, mark, 100 * mark.share, top))
        elif mark.kind == "baseline":
            axes.axhline(mark.value, color=mark.colour, linewidth=0.9, linestyle=":")
            labels.append(EndLabel(end, mark.value, _name(mark, top), mark.colour))
    axes.set_xlabel("share of the gradient on held-out positives, %")
    label_ends(axes, labels, n_rows=n_rows)


def draw_seconds(axes: Axes, marks: Sequence[Mark], top: float, n_rows: int) -> None:
    axes.set_xscale("log")
    devices = [mark.device for mark in marks if mark.kind != "baseline"]
    usual = max(set(devices), key=devices.count) if devices else ""
    labels = []
    for mark in marks:
        label = _drawn(axes, mark, max(mark.seconds, 0.01), top)
        elsewhere = mark.device if mark.device != "cpu" else "CPU"
        labels.append(label if mark.device == usual else label._replace(name=f"{label.name}, {elsewhere}"))
    axes.set_xlabel(f"seconds of training (log scale){_on(usual)}")
    axes.margins(x=0.06)
    axes.xaxis.set_major_locator(log_ticks([max(mark.seconds, 0.01) for mark in marks]))
    plain_log_labels(axes.xaxis)
    label_ends(axes, labels, n_rows=n_rows)


def _on(device: str) -> str:
    return f", {'CPU' if device == 'cpu' else device}" if device else ""


def _drawn(axes: Axes, mark: Mark, x: float, top: float) -> EndLabel:
    y = min(mark.value, top)
    axes.plot(
        [x], [y], color=mark.colour, marker=mark.marker, markersize=8 if mark.kind == "ours" else 6.5, linestyle="none",
        markerfacecolor=mark.colour if mark.is_final else "white", markeredgecolor=mark.colour, clip_on=False, zorder=3,
    )  # fmt: skip
    return EndLabel(x, y, _name(mark, top), mark.colour)


def _name(mark: Mark, top: float) -> str:
    name = TITLES.get(mark.name, mark.name)
    return f"{name} ↑{mark.value:.3f}" if mark.value > top else name
