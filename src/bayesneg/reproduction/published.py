"""The paper's numbers: tables 2, 3 and 4 of B. Liu and B. Wang, ICDE 2023, as printed."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

METRICS: Final = tuple(f"{name}@{k}" for k in (5, 10, 20) for name in ("precision", "recall", "ndcg"))
MAIN: Final = "ndcg@20"


@cache
def _rows() -> dict[tuple[str, str, str], dict[str, float]]:
    text = (files("bayesneg.reproduction") / "published.csv").read_text(encoding="utf-8")
    return {
        (f"{row['table']}/{row['method']}", row["dataset"], row["model"]): {key: float(row[key]) for key in METRICS}
        for row in csv.DictReader(text.splitlines())
    }


def published_rows() -> set[str]:
    """Every printed row: table2/RNS, …"""
    return {row for row, _, _ in _rows()}


def published(row: str, dataset: str, model: str) -> Mapping[str, float]:
    """Metric → value of a printed row; empty where the paper has no such row.

    >>> published("table2/BNS", "ml-100k", "mf")["ndcg@20"]
    0.4176
    """
    return _rows().get((row, dataset, model), {})
