"""What a person and what a program reads."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from bayesneg.runs.record import jsonable


def say(text: str) -> None:
    """One line on stderr, as it is."""
    typer.echo(text, err=True)


def show_json(value: Any) -> None:
    """The one JSON object on stdout."""
    typer.echo(json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False))


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stderr; the first column is text, the others numbers."""
    console = Console(stderr=True)
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right", no_wrap=place > 0)
    for row in rows:
        table.add_row(*row)
    if not console.is_terminal:
        console.width = max(console.width, 160)
    console.print(table)


def number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.1f}"
