"""The HTML report of a sweep: the usual report, with the paper's numbers beside ours at the head of each study."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bayesneg.report.html import write_report
from bayesneg.report.markup import Markup, element, fold, join, section
from bayesneg.report.names import NOTHING, metric_name, number, signed, sorted_keys
from bayesneg.report.tables import Cell, table
from bayesneg.reproduction.markdown import MARK, about, chance, here, legend
from bayesneg.reproduction.pairwise import PairwiseTest, pairwise_tests
from bayesneg.reproduction.published import METRICS
from bayesneg.reproduction.studies import Beside, Line, Study


def write_page(title: str, studies: Sequence[Study], path: Path) -> Path:
    """One file for the whole sweep; each study is judged by itself."""
    runs = [replace(run, dataset=study.name) for study in studies for run in study.runs]
    return write_report(
        runs,
        path,
        title=title,
        first={study.name: list(_sections(study)) for study in studies},
        alike={study.name: _alike(study) for study in studies},
    )


def _alike(study: Study) -> set[frozenset[str]]:
    """The pairs that the corrected tests could not tell apart, so that the headline does not either."""
    return {frozenset((pair.one, pair.other)) for pair in pairwise_tests(study) if not pair.difference.is_clear}


def _sections(study: Study) -> Iterator[Markup]:
    keys = sorted_keys(METRICS)
    rows = [[_name(line), *(_cell(line.values[key]) for key in keys)] for line in study.lines]
    heads = ["Sampler", *map(metric_name, keys)]
    parts = [table(f"{about(study)} {legend()}", heads, rows, name=f"Beside the paper: {study.name}")]
    if tested := _tests(study):
        parts.append(fold("Which sampler is better: paired tests", tested))
    yield section("Beside the paper", *parts)


def _name(line: Line) -> Cell:
    badge = element("span", {"class": "badge"}, "sees test labels") if line.uses_test_labels else Markup()
    note = element("span", {"class": "minor"}, line.row.note) if line.row.note else Markup()
    return Cell(join(line.label, badge, note), line.label)


def _cell(value: Beside) -> Cell:
    if math.isnan(value.here.mean):
        return Cell(NOTHING)
    parts = [join(here(value))]
    if not math.isnan(value.paper):
        mark = f" {MARK}" if value.is_off else ""
        style = "minor off" if value.is_off else "minor"
        parts.append(element("span", {"class": "minor"}, f"paper {number(value.paper, 4)}"))
        parts.append(element("span", {"class": style}, f"{signed(value.difference, 4)}{mark}"))
    return Cell(join(*parts), repr(float(value.here.mean)))


def _tests(study: Study) -> Markup | None:
    rows = [_test(pair) for pair in pairwise_tests(study)]
    heads = ["NDCG@20 of", "Difference", "95% interval over users", "p over users", "p over seeds", "Verdict"]
    caption = (
        "A difference is clear if it is so over users (each user's mean over seeds) and over seeds (each seed's mean "
        "over users), p below 0.05 after Holm's correction for all pairs of this table."
    )
    return table(caption, heads, rows, name=f"Paired tests: {study.name}") if rows else None


def _test(pair: PairwiseTest) -> list[Cell]:
    over, chances = pair.difference.over_users, (pair.difference.over_users.p_value, pair.difference.over_seeds.p_value)
    return [
        Cell(f"{pair.one} − {pair.other}", f"{pair.one} {pair.other}"),
        Cell(signed(over.mean, 4), repr(over.mean)),
        Cell(f"{number(over.low, 4)} to {number(over.high, 4)}", repr(over.low)),
        *(Cell(chance(p), "" if math.isnan(p) else repr(p)) for p in chances),
        Cell(pair.verdict, str(int(pair.difference.is_clear)), "best" if pair.difference.is_clear else ""),
    ]
