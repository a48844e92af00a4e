"""What a person and what a program reads: results on stdout, progress and notes on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
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

from bayesneg.errors import DataError, InputError
from bayesneg.progress import CONTROL, printable
from bayesneg.runs.record import jsonable
from bayesneg.whole_files import check_regular

_WITH_OPTION = re.compile(r"\b(?:\w+=[^\s,;()]+|\w+_\w+) \((--[^()]+)\)")  # validation=0.2 (--validation 0.2)


def say(text: str) -> None:
    """A note, on stderr: where something was written, what is odd, what to do next."""
    typer.echo(printable(text), err=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """What the library warns of is a note for the person, once and without the line of the source."""
    said = set()

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        text = with_options_alone(str(message))
        if text not in said:
            said.add(text)
            say(f"note: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = note
        yield


@contextmanager
def named_as_options(*arguments: str, **others: str) -> Iterator[None]:
    """An error about one of these arguments names its option, at its beginning and wherever a value is named.

    Args:
        *arguments: Names of arguments whose options have the same name.
        **others: Argument → its option.
    """
    options = {name: f"--{name.replace('_', '-')}" for name in arguments} | others
    names = "|".join(options)
    try:
        yield
    except DataError:  # begins with the name of a file, which may be that of an argument
        raise
    except InputError as error:
        said = with_options_alone(str(error))
        said = re.sub(
            rf"(?<![\w./-])({names})=('?)([\w.+-]+)\2", lambda found: _given(options[found[1]], found[3]), said
        )
        said = re.sub(rf"^(?:{names})(?=[ =:])", lambda found: options[found[0]], said)
        if said == str(error):
            raise
        raise InputError(said) from error


def with_options_alone(text: str) -> str:
    """A sentence without the arguments whose options stand behind them.

    >>> with_options_alone("leave them out with unknown='skip' (--skip-unknown)")
    'leave them out with --skip-unknown'
    """
    return _WITH_OPTION.sub(r"\1", text)


def _given(option: str, value: str) -> str:
    """An option as it is typed: ``--split-by last``, ``--no-header``."""
    return {"True": option, "False": option.replace("--", "--no-")}.get(value, f"{option} {value}")


def show(text: str) -> None:
    """A line of the result, on stdout."""
    typer.echo(printable(text))


def show_json(value: Any) -> None:
    """The one JSON object on stdout, in the characters of the data where stdout is UTF-8, elsewhere in ASCII."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "").replace("_", "")
    text = json.dumps(jsonable(value), allow_nan=False, ensure_ascii=encoding != "utf8")
    typer.echo(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # those that JSON would leave


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, n_text: int = 1) -> None:
    """A table on stdout; the first ``n_text`` columns are text, the others numbers."""
    console = Console()
    table = Table(
        title=_cell(title) if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_header=any(columns),
    )
    for place, column in enumerate(columns):
        is_text = place < n_text
        table.add_column(_cell(column), justify="left" if is_text else "right", no_wrap=not is_text, overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    if not console.is_terminal:
        console.width = max(console.width, 160)
    console.print(table)


def _cell(text: str) -> Text:
    """As Text: an id such as [rec] is no markup, and one with a line end stays one line."""
    return Text(printable(text, keep=""))


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
    check_regular(path)
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
        from bayesneg.report.pages import free_path

        path = free_path(path)
    check_file(path, option)
    return path
