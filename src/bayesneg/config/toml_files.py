"""TOML files that a person writes: values with the line they are on, and errors that name it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bayesneg.errors import InputError

HEADER: Final = re.compile(r"^\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
ASSIGNMENT: Final = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=(.*)$""")
KINDS: Final = {bool: "true or false", int: "a whole number", float: "a number", str: "text", list: "a list"}


@dataclass(frozen=True)
class TomlFile:
    """The values of a file, and the line of each key."""

    path: Path
    values: dict[str, Any]
    lines: dict[tuple[str, ...], int]

    def error(self, message: object, *keys: str) -> InputError:
        """An error about a key: the file and the line come first."""
        places = (self.lines[keys[:depth]] for depth in range(len(keys), 0, -1) if keys[:depth] in self.lines)
        line = next(places, None)
        return InputError(f"{self.path}{'' if line is None else f' line {line}'}: {message}")


def read_toml(path: Path) -> TomlFile:
    """Read a file.

    Args:
        path: A TOML file in UTF-8.

    Returns:
        The values with their lines.

    Raises:
        InputError: There is no such file, it is no text in UTF-8, or no TOML; the line is named.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return TomlFile(path, tomllib.loads(text), key_lines(text))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; give a TOML file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{path}: {_with_line(str(error))}; lines are written as epochs = 100, or with a text as data = "
            '"clicks.csv"'
        ) from None
    except RecursionError:
        raise InputError(f"{path}: lists or tables are nested too deeply to be read") from None


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line of each table and key, as far as it stands at the start of a line.

    >>> key_lines('epochs = 3\\n[model]\\ndim = 8\\n')
    {('epochs',): 1, ('model',): 2, ('model', 'dim'): 3}
    """
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    quotes = ""  # the marks of a text over several lines that has begun
    for number, line in enumerate(text.splitlines(), 1):
        if quotes:
            quotes = "" if quotes in line else quotes
            continue
        if header := HEADER.match(line):
            table = _parts(header[1])
            found.setdefault(table, number)
        elif assignment := ASSIGNMENT.match(line):
            key = (*table, *_parts(assignment[1]))
            for depth in range(len(table) + 1, len(key) + 1):
                found.setdefault(key[:depth], number)
            quotes = next((each for each in ('"""', "'''") if assignment[2].count(each) == 1), "")
    return found


def kind_of(value: Any) -> str:
    """What a value of a file is, in words, with the value: ``the text 'ten'``."""
    if isinstance(value, bool):
        return f"{str(value).lower()}"
    if isinstance(value, str):
        return f"the text {value!r:.60}"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    return f"{value}"


def _parts(key: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in key.split("."))


def _with_line(message: str) -> str:
    """``Invalid value (at line 3, column 9)`` → ``line 3, column 9: invalid value``."""
    place = re.search(r" \(at (line \d+, column \d+|end of document)\)$", message)
    what = message[: place.start()] if place else message
    if what == r"Illegal character '\n'":
        what = "A text is not closed by a second quote"
    return f"{place[1] if place else 'not TOML'}: {what[0].lower()}{what[1:]}"
