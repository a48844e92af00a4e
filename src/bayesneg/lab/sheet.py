"""Studies as CSV: one row per study, sampler and metric, for other programs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator

from bayesneg.lab.studies import Line, Study

HEAD = ("dataset", "model", "view", "sampler", "metric", "seeds", "mean", "low", "high", "paper", "difference", "off")


def comma_separated(studies: Iterable[Study]) -> str:
    """The whole file; ``off`` is 1 where the paper's number lies outside the interval by more than 0.01."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(HEAD)
    for study in studies:
        for line in study.lines:
            out.writerows((study.dataset, study.model, study.view, line.label, *row) for row in _rows(line))
    return text.getvalue()


def _rows(line: Line) -> Iterator[tuple[object, ...]]:
    for key, value in line.values.items():
        numbers = (value.here.mean, value.here.low, value.here.high, value.paper, value.difference)
        shown = ("" if math.isnan(each) else f"{each:.6f}" for each in numbers)
        yield key, len(line.runs), *shown, int(value.is_off)
