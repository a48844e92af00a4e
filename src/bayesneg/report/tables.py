"""The tables of the comparison report: every value is shown with its interval, and sorts by its full precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.evaluation.statistics import Estimate, estimate
from bayesneg.report.groups import RunGroup, final_value, median_seconds
from bayesneg.report.names import NOTHING, UNIFORM, counted, decimals, number, percent, signed
from bayesneg.report.pages import Table, TableCell
from bayesneg.report.summary import ComparisonRow
from bayesneg.runs.record import RunRecord, is_number

QUALITY = {
    "tnr": "TNR",
    "tnr_true": "True TNR",
    "inf": "INF",
    "inf_true": "True INF",
    "gradient_fn": "Gradient on held-out positives",
    "gradient_fn_true": "Gradient on false negatives",
}
SHARES = ("gradient_fn", "gradient_fn_true")  # shown in percent
EXPECTED = {"tnr": "tnr_uniform", "tnr_true": "tnr_uniform_true"}  # the expectation of uniform sampling


def comparison(rows: Sequence[ComparisonRow], keys: Sequence[str], *, name: str, with_rates: bool = False) -> Table:
    """Rows samplers, columns metrics; under each number its difference to the first row's.

    Args:
        rows: What :func:`~bayesneg.report.summary.summarise` returned.
        keys: The metrics to show.
        name: What a screen reader calls the table.
        with_rates: Whether to show the false-negative rate of the picks, where any was recorded.
    """
    rates = with_rates and any(is_number(row.false_negatives.mean) for row in rows)
    cells = [
        [
            named_cell(row.label, n_seeds=row.n_seeds, loss=row.unsaid_loss, uses_test_labels=row.uses_test_labels),
            *(_value(row, key) for key in keys[:1]),
            *([share_cell(row.false_negatives)] if rates else []),
            *(_value(row, key) for key in keys[1:]),
        ]
        for row in rows
    ]
    heads = ["Sampler", *map(metric_name, keys)]
    if rates:
        heads.insert(2, "False negatives")
    caption = comparison_caption(rows)
    if rates:
        known = all(row.truth_known for row in rows)
        caption += (
            f" False negatives: the share of the last epoch's picks that are {'' if known else 'held-out '}positives"
            f"{'' if known else ', a lower bound'}; baselines sample none."
        )
    return Table(name, caption, heads, cells)


def comparison_caption(rows: Sequence[ComparisonRow]) -> str:
    """What ± is taken over, what the small line means, and what is bold."""
    overs = {value.over for row in rows for value in row.values.values() if is_number(value.mean)}
    seeds = sorted({row.n_seeds for row in rows if row.n_seeds > 1})
    parts = []
    if "seeds" in overs:
        span = counted(seeds[-1], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
        parts.append(f"Mean ± half-width of the 95% interval over {span}.")
    if "users" in overs:
        where = "With one seed, ± is" if "seeds" in overs else "One seed: mean ± half-width of the 95% interval"
        parts.append(f"{where} over users; it does not include the variance between seeds.")
    if len(rows) > 1:
        parts.append(
            f"Below, the difference to {rows[0].label} with its 95% interval, paired by seed or by user: "
            "▲ higher, ▼ lower, ○ not significant; not corrected for multiple comparisons. Bold: the highest mean."
        )
    return " ".join(parts)


def quality(groups: Sequence[RunGroup]) -> Table | None:
    """The quality of the sampled negatives at the last epoch, without baselines; None where no run recorded it."""
    groups = [group for group in groups if not group.is_baseline]
    measured = {key: [estimate(run.last(key) for run in group.runs) for group in groups] for key in QUALITY}
    keys = [key for key, column in measured.items() if any(is_number(value.mean) for value in column)]
    if not keys:
        return None
    rows = [
        [
            group_cell(group),
            *((share_cell if key in SHARES else estimate_cell)(measured[key][place]) for key in keys),
            _skipped(group),
            _seconds(group),
        ]
        for place, group in enumerate(groups)
    ]
    uniform = {key: estimate(run.last(EXPECTED.get(key, "")) for run in _runs(groups)).mean for key in keys}
    if any(is_number(mean) for mean in uniform.values()):
        cells = [number_cell(mean) if is_number(mean) else TableCell("") for mean in uniform.values()]
        rows.append([TableCell(UNIFORM, UNIFORM), *cells, TableCell(""), TableCell("")])
    heads = ["Sampler", *(QUALITY[key] for key in keys), "Skipped", "Seconds per epoch"]
    several = any(len(group.runs) > 1 for group in groups)
    caption = (
        f"Last recorded epoch{', mean ± half-width of the 95% interval over seeds' if several else ''}. Skipped: "
        f"training examples without a negative, over all epochs{' and seeds' if several else ''}. "
        "Seconds: the median epoch."
    )
    return Table("Sampling quality", caption, heads, rows)


def every_run(groups: Sequence[RunGroup], keys: Sequence[str]) -> Table:
    """The final metrics of each run, not averaged."""
    rows = [
        [
            group_cell(group),
            TableCell(str(run.seed), str(run.seed)),
            TableCell(str(run.reported_epoch), str(run.reported_epoch)),
            *(number_cell(final_value(run, key)) for key in keys),
        ]
        for group in groups
        for run in group.runs
    ]
    heads = ["Sampler", "Seed", "Epoch", *map(metric_name, keys)]
    return Table("Every run", "Test metrics of the reported epoch, mean over users.", heads, rows)


def facts(caption: str, entries: Sequence[tuple[str, str]]) -> Table:
    """Two columns: a name and its value."""
    return Table(caption, caption, (), [[TableCell(name), TableCell(text, style="text")] for name, text in entries])


def group_cell(group: RunGroup, *, loss: str = "") -> TableCell:
    return named_cell(group.name, loss=loss, uses_test_labels=group.uses_test_labels)


def named_cell(name: str, *, n_seeds: int = 0, loss: str = "", uses_test_labels: bool = False) -> TableCell:
    """The first cell of a row: the sampler, its loss, how many seeds it has, and whether it is an oracle."""
    minor = [*([f"loss {loss}"] if loss else []), *([counted(n_seeds, "seed")] if n_seeds else [])]
    return TableCell(name, name, minor=minor, badge="sees test labels" if uses_test_labels else "")


def estimate_cell(value: Estimate) -> TableCell:
    """Mean ± half-width of the interval, where there is one."""
    if not is_number(value.mean):
        return TableCell(NOTHING)
    spread = number(value.half_width, decimals(value.mean)) if value.has_interval else ""
    return TableCell(number(value.mean), repr(float(value.mean)), spread=spread)


def number_cell(value: float) -> TableCell:
    return TableCell(number(value), repr(float(value))) if is_number(value) else TableCell(NOTHING)


def _value(row: ComparisonRow, key: str) -> TableCell:
    cell = replace(estimate_cell(row.values[key]), style="best" if key in row.best else "")
    gap = row.differences.get(key)
    return cell if gap is None else replace(cell, minor=_difference(gap, decimals(row.values[key].mean)))


def _difference(gap: Estimate, digits: int) -> list[str]:
    if not is_number(gap.mean):
        return [NOTHING]
    if not gap.has_interval:
        return [signed(gap.mean, digits)]
    mark = "○" if not gap.excludes_zero else "▲" if gap.mean > 0 else "▼"
    return [f"{mark} {signed(gap.mean, digits)}", f"{number(gap.low, digits)} to {number(gap.high, digits)}"]


def share_cell(value: Estimate) -> TableCell:
    """In percent."""
    if not is_number(value.mean):
        return TableCell(NOTHING)
    text, _, spread = percent(value.mean, value.half_width).partition(" ± ")
    return TableCell(text, repr(float(value.mean)), spread=spread)


def _runs(groups: Sequence[RunGroup]) -> list[RunRecord]:
    return [run for group in groups for run in group.runs]


def _skipped(group: RunGroup) -> TableCell:
    counts = [int(n) for run in group.runs for n in run.at_epochs("skipped").values()]
    return TableCell(f"{sum(counts):,}", str(sum(counts))) if counts else TableCell(NOTHING)


def _seconds(group: RunGroup) -> TableCell:
    seconds = median_seconds(group)
    return TableCell(f"{seconds:.3g}", repr(seconds)) if is_number(seconds) else TableCell(NOTHING)
