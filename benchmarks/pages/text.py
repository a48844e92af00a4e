"""Markdown and CSV as the pages write them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bayesneg.evaluation.statistics import mean_interval

MADE = "Written by `python -m benchmarks.pages` from `benchmarks/results/`; do not edit."


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """A Markdown table; the first columns are text, the others numbers."""
    rule = ["---"] * text_columns + ["---:"] * (len(head) - text_columns)
    escaped = ([cell.replace("|", r"\|") for cell in row] for row in (head, rule, *rows))
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)


def folded(summary: str, *parts: str) -> str:
    return "\n\n".join([f"<details><summary>{summary}</summary>", *parts, "</details>"])


def page(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def comma_separated(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same columns; floats to six decimals."""
    text = io.StringIO()
    out = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    out.writeheader()
    for row in rows:
        out.writerow({key: round(value, 6) if isinstance(value, float) else value for key, value in row.items()})
    return text.getvalue()


def with_interval(values: np.ndarray) -> str:
    """The mean ± half of its 95% interval; the mean alone for one value."""
    low, high = mean_interval(values)
    half = "" if math.isnan(low) else f" ± {(high - low) / 2:.4f}"
    return f"{values.mean():.4f}{half}"


def signed(value: float) -> str:
    if math.isnan(value):
        return "–"
    rounded = round(value, 4)
    sign = "+" if rounded > 0 else "−" if rounded < 0 else ""
    return f"{sign}{abs(rounded):.4f}"


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.1f}"


def versions_of(machine: Mapping[str, Any]) -> str:
    """What a number was measured on."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; {versions}."
