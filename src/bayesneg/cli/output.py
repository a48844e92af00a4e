"""What a person and what a program reads: results on stdout, progress and notes on stderr."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bayesneg.errors import InputError
from bayesneg.runs.record import jsonable


def say(text: str) -> None:
    """A note, on stderr: where something was written, what is odd, what to do next."""
    typer.echo(text, err=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """What the library warns of is a note for the person, once and without the line of the source."""
    said = set()

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            say(f"note: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = note
        yield


@contextmanager
def named_as_options(*arguments: str, **others: str) -> Iterator[None]:
    """An error that begins with the name of one of these arguments begins with that of its option.

    Args:
        *arguments: Names of arguments whose options have the same name.
        **others: Argument → its option.
    """
    options = {name: f"--{name.replace('_', '-')}" for name in arguments} | others
    try:
        yield
    except InputError as error:
        said = re.sub(rf"^(?:{'|'.join(options)})\b", lambda name: options[name[0]], str(error))
        if said == str(error):
            raise
        raise InputError(said) from error


def show(text: str) -> None:
    """A line of the result, on stdout."""
    typer.echo(text)


def show_json(value: Any) -> None:
    """The one JSON object on stdout; ASCII, so that every terminal and pipe can take it."""
    typer.echo(json.dumps(jsonable(value), allow_nan=False))


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, n_text: int = 1) -> None:
    """A table on stdout; the first ``n_text`` columns are text, the others numbers."""
    console = Console()
    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_header=any(columns),
    )
    for place, column in enumerate(columns):
        is_text = place < n_text
        table.add_column(Text(column), justify="left" if is_text else "right", no_wrap=not is_text, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # as Text: an id such as [rec] is no markup
    if not console.is_terminal:
        console.width = max(console.width, 160)
    console.print(table)


def as_text(value: Any) -> str:
    """A value of a result for a person."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {item:,.0f}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    from bayesneg.report.names import number

    return number(value) if isinstance(value, float) else str(value)


def counted(count: int, one: str, many: str) -> str:
    """``1 user has …``, ``2,000 users have …``."""
    return f"{count:,} {one if count == 1 else many}"


def check_file(path: Path, option: str) -> None:
    """Before any work: a file can be written there."""
    folder = path.resolve().parent
    if path.is_dir() or not folder.is_dir():
        raise InputError(f"{option} {path} must be a file in an existing folder")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"{option} {path} cannot be written; choose another file")


def report_file(given: Path | None, option: str, *, default: str, force: bool) -> Path:
    """The page to write: the one that was named, if it is new or may be replaced, otherwise the first free name."""
    path = Path(default) if given is None else given
    if path.is_file() and not force:
        if given is not None:
            raise InputError(f"{option} {path} exists; name another file, or replace it with --force")
        number = 2
        while (path := Path(default).with_stem(f"{Path(default).stem}-{number}")).exists():
            number += 1
    check_file(path, option)
    return path
