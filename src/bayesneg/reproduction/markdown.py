"""Studies as Markdown: three lines per sampler, then the pairwise tests. The LaTeX tables have the same cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from bayesneg.report.names import NOTHING, number, signed
from bayesneg.reproduction.pairwise import PairwiseTest, correction_family, pairwise_tests
from bayesneg.reproduction.published import METRICS
from bayesneg.reproduction.studies import NEAR, Line, PaperStudy, PublishedComparison

MARK = "✗"
SHORT = {"precision": "P", "recall": "R", "ndcg": "NDCG"}
TESTS_HEAD = ("NDCG@20", "difference", "95% interval over users", "p, users", "p, seeds", "seeds", "verdict")


def markdown(title: str, studies: Sequence[PaperStudy], *, preface: str = "") -> str:
    """One page: every study with its results and its pairwise tests."""
    parts = [f"# {title}", *filter(None, [preface]), legend()]
    for study in studies:
        parts += [f"## {study.name}", about(study), table(study), *notes(study), *verdicts(study)]
    return "\n\n".join(parts) + "\n"


def legend() -> str:
    """How to read a table of results."""
    return (
        "Mean over seeds ± half-width of the 95% interval (Student t), the paper's number, and the difference. "
        f"{MARK}: the paper's number lies outside the interval by more than {NEAR:g} (with one seed, that far from "
        "the single value). Intervals are over the training seeds on one split; another split would shift all rows."
    )


def about(study: PaperStudy) -> str:
    """The runs behind a table, and how many of its numbers are near the paper's."""
    seeds = " or ".join(map(str, study.seeds))
    epochs = " or ".join(str(n) for n in sorted({run.epochs[-1]["epoch"] if run.epochs else 0 for run in study.runs}))
    compared = [value for line in study.lines for value in line.compared]
    near = sum(line.n_near for line in study.lines)
    share = f" {near} of {len(compared)} numbers within {NEAR:g} of the paper." if compared else ""
    oracles = [line.label for line in study.lines if line.uses_test_labels]
    warning = f" {', '.join(oracles)}: sees the test labels, an upper bound and no fair competitor." if oracles else ""
    splits = {str(run.data.get("split", "unknown")) for run in study.runs}
    return f"Seeds: {seeds}. Epochs: {epochs}. Split: {' and '.join(sorted(splits))}.{share}{warning}"


def table(study: PaperStudy) -> str:
    """Three lines per sampler: here, paper, difference."""
    head, *rows = results_rows(study)
    return grid([head, ["---", "---", *("---:" for _ in METRICS)], *rows])


def notes(study: PaperStudy) -> list[str]:
    """The notes of the rows as one list; empty where there are none."""
    written = [f"- {line.label}: {line.row.note}" for line in study.lines if line.row.note]
    return ["\n".join(written)] if written else []


def verdicts(study: PaperStudy) -> list[str]:
    """The pairwise tests in NDCG@20, with a sentence before; empty where no two samplers can be paired."""
    rows = [pairwise_cells(pair) for pair in pairwise_tests(study)]
    rule = ["---", *["---:"] * (len(TESTS_HEAD) - 2), "---"]
    lead = f"Paired tests, Holm-corrected within {correction_family(study)}:"
    return [lead, grid([TESTS_HEAD, rule, *rows])] if rows else []


def results_rows(study: PaperStudy) -> list[list[str]]:
    """Head and rows of a table of results; bold text is between ``**``."""
    several = len(study.seeds) > 1
    head = ["sampler", "", *map(short, METRICS)]
    return [head, *(row for line in study.lines for row in _three_lines(line, count=several))]


def _three_lines(line: Line, *, count: bool) -> Iterable[list[str]]:
    """``count`` says how many seeds the line has, where lines differ in it."""
    values = [line.values[key] for key in METRICS]
    yield [f"**{line.label}**", f"here, n = {len(line.runs)}" if count else "here", *map(here, values)]
    if line.compared:
        yield ["", "paper", *(number(value.paper, 4) for value in values)]
        yield ["", "difference", *(gap(value) for value in values)]


def here(value: PublishedComparison) -> str:
    """What was measured, with its interval."""
    if math.isnan(value.here.mean):
        return NOTHING
    spread = f" ± {number(value.here.half_width, 4)}" if value.here.has_interval else ""
    return f"{number(value.here.mean, 4)}{spread}"


def gap(value: PublishedComparison) -> str:
    """``+0.0008``, marked where the paper is outside the interval by too much."""
    text = signed(value.difference, 4)
    return f"**{text}** {MARK}" if value.is_off else text


def pairwise_cells(pair: PairwiseTest) -> list[str]:
    """The cells of one pairwise test, under ``TESTS_HEAD``."""
    found, over = pair.difference, pair.difference.over_users
    interval = f"{number(over.low, 4)} to {number(over.high, 4)}"
    chances = [p_text(over.p_value), p_text(found.over_seeds.p_value)]
    return [f"{pair.one} − {pair.other}", signed(over.mean, 4), interval, *chances, str(found.n_seeds), pair.verdict]


def p_text(p: float) -> str:
    """A p-value with as many digits as matter."""
    if math.isnan(p):
        return NOTHING
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def short(key: str) -> str:
    """``precision@5`` → ``P@5``."""
    base, _, k = key.partition("@")
    return f"{SHORT[base]}@{k}"


def grid(rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar inside a cell is escaped."""
    escaped = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)
