"""Studies as Markdown: three lines a sampler, then who beats whom."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from bayesneg.report.names import NOTHING, number, signed
from bayesneg.reproduction.pairwise import PairwiseTest, correction_family, pairwise_tests
from bayesneg.reproduction.published import METRICS
from bayesneg.reproduction.studies import NEAR, Beside, Line, Study

MARK = "✗"
SHORT = {"precision": "P", "recall": "R", "ndcg": "NDCG"}


def markdown(title: str, studies: Sequence[Study], *, preface: str = "") -> str:
    """One page: every study with its lines, then who beats whom."""
    parts = [f"# {title}", *filter(None, [preface]), legend()]
    for study in studies:
        parts += [f"## {study.name}", about(study), table(study), *notes(study), *verdicts(study)]
    return "\n\n".join(parts) + "\n"


def legend() -> str:
    return (
        "Mean over seeds ± half of the 95% interval (Student t), the paper's number, and the difference. "
        f"{MARK}: the paper's number lies outside the interval by more than {NEAR:g} (with one seed, that far from the "
        "one value). Intervals are over the seeds of training on one split; another split would move all rows."
    )


def about(study: Study) -> str:
    """How many runs stand behind the table, and how many of its numbers are near the paper's."""
    seeds = " or ".join(map(str, study.seeds))
    epochs = " or ".join(str(n) for n in sorted({run.epochs[-1]["epoch"] for run in study.runs}))
    compared = [value for line in study.lines for value in line.compared]
    near = sum(line.n_near for line in study.lines)
    share = f" {near} of {len(compared)} numbers within {NEAR:g} of the paper." if compared else ""
    seeing = [line.label for line in study.lines if line.uses_test_labels]
    beware = f" {', '.join(seeing)}: sees the test labels, an upper bound and no fair competitor." if seeing else ""
    splits = {str(run.data.get("split", "unknown")) for run in study.runs}
    return f"Seeds: {seeds}. Epochs: {epochs}. Split: {' and '.join(sorted(splits))}.{share}{beware}"


def table(study: Study) -> str:
    """Three lines a sampler: here, paper, difference."""
    head = ["sampler", "", *map(short, METRICS)]
    several = len(study.seeds) > 1
    rows = [row for line in study.lines for row in three_lines(line, count=several)]
    return grid([head, ["---", "---", *("---:" for _ in METRICS)], *rows])


def three_lines(line: Line, *, count: bool = False) -> Iterable[list[str]]:
    """``count`` says how many seeds the line has, where lines differ in it."""
    values = [line.values[key] for key in METRICS]
    yield [f"**{line.label}**", f"here, n = {len(line.runs)}" if count else "here", *map(here, values)]
    if line.compared:
        yield ["", "paper", *(number(value.paper, 4) for value in values)]
        yield ["", "difference", *(gap(value) for value in values)]


def here(value: Beside) -> str:
    if math.isnan(value.here.mean):
        return NOTHING
    spread = f" ± {number(value.here.half_width, 4)}" if value.here.has_interval else ""
    return f"{number(value.here.mean, 4)}{spread}"


def gap(value: Beside) -> str:
    """``+0.0008``, marked where the paper is outside the interval by too much."""
    text = signed(value.difference, 4)
    return f"**{text}** {MARK}" if value.is_off else text


def notes(study: Study) -> list[str]:
    written = [f"- {line.label}: {line.row.note}" for line in study.lines if line.row.note]
    return ["\n".join(written)] if written else []


def verdicts(study: Study) -> list[str]:
    """Who is better in NDCG@20."""
    found = pairwise_tests(study)
    if not found:
        return []
    head = ["NDCG@20", "difference", "95% interval over users", "p, users", "p, seeds", "seeds", "verdict"]
    rows = [[f"{pair.one} − {pair.other}", *_verdict(pair)] for pair in found]
    rule = ["---", "---:", "---:", "---:", "---:", "---:", "---"]
    return [f"Paired tests, Holm-corrected within {correction_family(study)}:", grid([head, rule, *rows])]


def _verdict(pair: PairwiseTest) -> list[str]:
    over = pair.difference.over_users
    interval = f"{number(over.low, 4)} to {number(over.high, 4)}"
    seeds = str(pair.difference.n_seeds)
    return [
        signed(over.mean, 4),
        interval,
        chance(pair.difference.over_users.p_value),
        chance(pair.difference.over_seeds.p_value),
        seeds,
        pair.verdict,
    ]


def chance(p: float) -> str:
    """A p-value as far as it matters."""
    if math.isnan(p):
        return NOTHING
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def short(key: str) -> str:
    base, _, k = key.partition("@")
    return f"{SHORT[base]}@{k}"


def grid(rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar inside a cell is no border."""
    escaped = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)
