"""Studies as CSV for other programs: one row per sampler and metric, and one per pair of samplers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator

from bayesneg.reproduction.pairwise import PairwiseTest, pairwise_tests
from bayesneg.reproduction.published import MAIN
from bayesneg.reproduction.studies import Line, Study

HEAD = ("dataset", "model", "view", "sampler", "metric", "seeds", "mean", "low", "high", "paper", "difference", "off")

TESTS_HEAD = (
    *("dataset", "model", "view", "one", "other", "metric", "seeds", "difference", "low", "high"),
    *("p_users", "p_seeds", "verdict"),
)


def comma_separated(studies: Iterable[Study]) -> str:
    """The whole file; ``off`` is 1 where the paper's number lies outside the interval by more than 0.01."""
    rows = (
        (study.dataset, study.model, study.view, line.label, *row)
        for study in studies
        for line in study.lines
        for row in _rows(line)
    )
    return _file(HEAD, rows)


def tests_comma_separated(studies: Iterable[Study]) -> str:
    """The paired tests: the difference one − other with its interval over users, and p-values after Holm."""
    rows = (
        (study.dataset, study.model, study.view, *_test(pair)) for study in studies for pair in pairwise_tests(study)
    )
    return _file(TESTS_HEAD, rows)


def _test(pair: PairwiseTest) -> tuple[object, ...]:
    over = pair.difference.over_users
    difference = map(_shown, (over.mean, over.low, over.high))
    chances = (_shown(p, ".3g") for p in (pair.difference.over_users.p_value, pair.difference.over_seeds.p_value))
    return pair.one, pair.other, MAIN, pair.difference.n_seeds, *difference, *chances, pair.verdict


def _file(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(head)
    out.writerows(rows)
    return text.getvalue()


def _rows(line: Line) -> Iterator[tuple[object, ...]]:
    for key, value in line.values.items():
        numbers = (value.here.mean, value.here.low, value.here.high, value.paper, value.difference)
        yield key, len(line.runs), *map(_shown, numbers), int(value.is_off)


def _shown(number: float, how: str = ".6f") -> str:
    return "" if math.isnan(number) else format(number, how)
