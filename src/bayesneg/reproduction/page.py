"""The HTML report of a reproduction: the comparison report, with the paper's numbers at the head of each study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.report.comparison import write_report
from bayesneg.report.names import NOTHING, number, signed, sorted_keys
from bayesneg.report.pages import Section, Table, TableCell
from bayesneg.report.tables import estimate_cell, named_cell
from bayesneg.reproduction.markdown import MARK, TESTS_HEAD, about, legend, pairwise_cells
from bayesneg.reproduction.pairwise import PairwiseTest, correction_family, pairwise_tests
from bayesneg.reproduction.published import METRICS
from bayesneg.reproduction.studies import Line, PaperStudy, PublishedComparison


def write_page(title: str, studies: Sequence[PaperStudy], path: Path) -> Path:
    """Write one file for all studies; each is compared by itself.

    Args:
        title: The heading of the page.
        studies: What was measured beside what was published.
        path: The file to write.

    Returns:
        The path of the file.
    """
    tests = {study.name: pairwise_tests(study) for study in studies}
    return write_report(
        [replace(run, dataset=study.name) for study in studies for run in study.runs],
        path,
        title=title,
        first={study.name: [_section(study, tests[study.name])] for study in studies},
        indistinguishable={
            name: {frozenset((pair.one, pair.other)) for pair in pairs if not pair.difference.is_clear}
            for name, pairs in tests.items()
        },
    )


def _section(study: PaperStudy, tests: Sequence[PairwiseTest]) -> Section:
    keys = sorted_keys(METRICS)
    rows = [[_name(line), *(_cell(line.values[key]) for key in keys)] for line in study.lines]
    heads = ["Sampler", *map(metric_name, keys)]
    caption = f"{about(study)} {legend()}"
    folds = [Section("Pairwise tests", tables=[_tests(study, tests)])] if tests else []
    table = Table(f"Beside the paper: {study.name}", caption, heads, rows)
    return Section("Beside the paper", tables=[table], folds=folds)


def _name(line: Line) -> TableCell:
    cell = named_cell(line.label, uses_test_labels=line.uses_test_labels)
    return replace(cell, minor=[line.row.note] if line.row.note else [])


def _cell(value: PublishedComparison) -> TableCell:
    if math.isnan(value.here.mean):
        return TableCell(NOTHING)
    cell = estimate_cell(value.here)
    if math.isnan(value.paper):
        return cell
    paper, gap = f"paper {number(value.paper, 4)}", signed(value.difference, 4)
    if value.is_off:
        return replace(cell, minor=[paper], off=f"{gap} {MARK}")
    return replace(cell, minor=[paper, gap])


def _tests(study: PaperStudy, tests: Sequence[PairwiseTest]) -> Table:
    caption = (
        "A difference is clear if it is significant over users (each user's mean over seeds) and over seeds (each "
        "seed's mean over users): p below 0.05 after Holm's correction for all pairs of "
        f"{correction_family(study)}."
    )
    return Table(f"Pairwise tests: {study.name}", caption, TESTS_HEAD, [_test(pair) for pair in tests])


def _test(pair: PairwiseTest) -> list[TableCell]:
    """The cells of the Markdown table, each with the number that it sorts by."""
    found, over = pair.difference, pair.difference.over_users
    names = f"{pair.one} {pair.other}"
    numbers = (over.mean, over.low, over.p_value, found.over_seeds.p_value, found.n_seeds, int(found.is_clear))
    values = [names, *("" if math.isnan(value) else repr(value) for value in numbers)]
    cells = [TableCell(text, value) for text, value in zip(pairwise_cells(pair), values, strict=True)]
    return [*cells[:-1], replace(cells[-1], style="best" if found.is_clear else "")]
