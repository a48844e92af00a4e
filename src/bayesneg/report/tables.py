"""The report's tables as HTML: a caption, a scope on every head, numbers that sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bayesneg.evaluation.statistics import Estimate, estimate
from bayesneg.report.markup import Markup, element, join
from bayesneg.report.names import NOTHING, counted, decimals, metric_name, number, signed
from bayesneg.report.runs import Group, final_value, median_seconds
from bayesneg.report.summary import Row
from bayesneg.runs.record import is_number


class Cell(NamedTuple):
    content: str
    value: str = ""  # what the column sorts by; empty sorts last
    style: str = ""


QUALITY = {
    "tnr": "TNR",
    "tnr_uniform": "TNR if uniform",
    "tnr_true": "True TNR",
    "tnr_uniform_true": "True TNR if uniform",
    "inf": "INF",
    "inf_true": "True INF",
}


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], *, name: str) -> Markup:
    """A sortable table; its first column names the rows and sorts as text."""
    head = [
        element("th", {"scope": "col", **({"class": "text"} if place == 0 else {})}, text)
        for place, text in enumerate(heads)
    ]
    body = [element("tr", {}, *map(_cell, range(len(row)), row)) for row in rows]
    whole = element(
        "table",
        {"data-sortable": ""},
        _caption(caption),
        element("thead", {}, element("tr", {}, *head)),
        element("tbody", {}, *body),
    )
    return element("div", {"class": "scroll", "role": "region", "tabindex": "0", "aria-label": name}, whole)


def _caption(text: str) -> Markup:
    """The span stays in sight where the table is wider than the page."""
    return element("caption", {}, element("span", {}, text))


def _cell(place: int, cell: Cell) -> Markup:
    style = {"class": cell.style} if cell.style else {}
    attributes = {**style, "data-value": cell.value}
    return element("td" if place else "th", attributes if place else {"scope": "row", **attributes}, cell.content)


def comparison(rows: Sequence[Row], keys: Sequence[str], *, name: str) -> Markup:
    """Rows samplers, columns metrics; under each number its difference to the first row's."""
    cells = [[_name(row), *(_value(row, key) for key in keys)] for row in rows]
    return table(comparison_caption(rows), ["Sampler", *map(metric_name, keys)], cells, name=name)


def comparison_caption(rows: Sequence[Row]) -> str:
    """Says what ± is taken over, what the small line means, and what is bold."""
    overs = {value.over for row in rows for value in row.values.values() if is_number(value.mean)}
    seeds = sorted({row.n_seeds for row in rows if row.n_seeds > 1})
    parts = []
    if "seeds" in overs:
        span = counted(seeds[-1], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
        parts.append(f"Mean ± half of the 95% interval over {span}.")
    if "users" in overs:
        where = "Where there is one seed, ± is" if "seeds" in overs else "One seed: mean ± half of the 95% interval"
        parts.append(f"{where} over users; it does not cover the luck of the seed.")
    if len(rows) > 1:
        parts.append(
            f"Below, the difference to {rows[0].label} with its 95% interval, paired by seed or user: "
            "▲ higher, ▼ lower, ○ not distinguishable from zero, each pair by itself, uncorrected for their number. "
            "Bold: the highest mean."
        )
    return " ".join(parts)


def quality(groups: Sequence[Group]) -> Markup | None:
    """How good the sampled negatives were at the last epoch, baselines left out; None where no run recorded it."""
    groups = [member for member in groups if not member.is_baseline]
    measured = {key: [estimate(run.last(key) for run in member.runs) for member in groups] for key in QUALITY}
    keys = [key for key, column in measured.items() if any(is_number(value.mean) for value in column)]
    if not keys:
        return None
    rows = [
        [
            group_cell(member),
            *(estimate_cell(measured[key][place], plain="uniform" in key) for key in keys),
            _skipped(member),
            _seconds(member),
        ]
        for place, member in enumerate(groups)
    ]
    heads = ["Sampler", *(QUALITY[key] for key in keys), "Skipped", "Seconds per epoch"]
    several = any(len(member.runs) > 1 for member in groups)
    caption = (
        f"Last recorded epoch{', mean ± half of the 95% interval over seeds' if several else ''}. "
        f"Skipped: training examples without a negative or kept out, over all epochs{' and seeds' if several else ''}. "
        "Seconds: the median epoch."
    )
    return table(caption, heads, rows, name="Sampling quality")


def every_run(groups: Sequence[Group], keys: Sequence[str]) -> Markup:
    """The final numbers of each run, unaveraged."""
    rows = [
        [
            group_cell(member),
            Cell(str(run.seed), str(run.seed)),
            Cell(str(run.reported_epoch), str(run.reported_epoch)),
            *(number_cell(final_value(run, key)) for key in keys),
        ]
        for member in groups
        for run in member.runs
    ]
    heads = ["Sampler", "Seed", "Epoch", *map(metric_name, keys)]
    return table("Test metrics of the reported epoch, mean over users.", heads, rows, name="Every run")


def facts(caption: str, entries: Sequence[tuple[str, str]]) -> Markup:
    """Two columns: a name and what it is."""
    rows = [
        element("tr", {}, element("th", {"scope": "row"}, name), element("td", {"class": "text"}, text))
        for name, text in entries
    ]
    whole = element("table", {}, _caption(caption), element("tbody", {}, *rows))
    return element("div", {"class": "scroll", "role": "region", "tabindex": "0", "aria-label": caption}, whole)


def _name(row: Row) -> Cell:
    return _named(row.label, row.n_seeds, row.uses_test_labels)


def group_cell(member: Group) -> Cell:
    return _named(member.name, 0, member.uses_test_labels)


def _named(name: str, n_seeds: int, uses_test_labels: bool) -> Cell:
    seeds = element("span", {"class": "minor"}, counted(n_seeds, "seed")) if n_seeds else Markup()
    badge = element("span", {"class": "badge"}, "sees test labels") if uses_test_labels else Markup()
    return Cell(join(name, seeds, badge), name)


def _value(row: Row, key: str) -> Cell:
    cell = estimate_cell(row.values[key])
    if key in row.best:
        cell = cell._replace(style="best")
    gap = row.differences.get(key)
    if gap is None:
        return cell
    return cell._replace(content=join(cell.content, _difference(gap, decimals(row.values[key].mean))))


def estimate_cell(value: Estimate, *, plain: bool = False) -> Cell:
    """Mean ± half-width; ``plain`` leaves out the latter, for what no sampler changes."""
    if not is_number(value.mean):
        return Cell(NOTHING)
    spread = Markup()
    if value.has_interval and not plain:
        spread = element("span", {"class": "pm"}, f" ± {number(value.half_width, decimals(value.mean))}")
    return Cell(join(number(value.mean), spread), repr(float(value.mean)))


def _difference(gap: Estimate, digits: int) -> Markup:
    if not is_number(gap.mean):
        return element("span", {"class": "minor"}, NOTHING)
    if not gap.has_interval:
        return element("span", {"class": "minor"}, signed(gap.mean, digits))
    mark = "○" if not gap.excludes_zero else "▲" if gap.mean > 0 else "▼"
    interval = f"{number(gap.low, digits)} to {number(gap.high, digits)}"
    return join(
        element("span", {"class": "minor"}, f"{mark} {signed(gap.mean, digits)}"),
        element("span", {"class": "minor"}, interval),
    )


def number_cell(value: float) -> Cell:
    return Cell(number(value), repr(float(value))) if is_number(value) else Cell(NOTHING)


def _skipped(member: Group) -> Cell:
    counts = [int(n) for run in member.runs for n in run.at_epochs("skipped").values()]
    return Cell(f"{sum(counts):,}", str(sum(counts))) if counts else Cell(NOTHING)


def _seconds(member: Group) -> Cell:
    seconds = median_seconds(member)
    return Cell(f"{seconds:.3g}", repr(seconds)) if is_number(seconds) else Cell(NOTHING)
