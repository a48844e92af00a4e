"""The layout of a text table: separator, header, and positions of the columns."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from bayesneg.data.readers.columns import ColumnPositions, Columns, find, find_by_position, is_header, plain
from bayesneg.errors import DataError

SEPARATORS = ("::", "\t", ",", ";", "|", " ")  # tried in this order
QUOTED = (",", ";")
QUOTED_FIELD = '^"((?:[^"]|"")*)"$'
UNQUOTED = ("\t", "|")  # fields in quotation marks are unquoted, other marks are characters like any other
SAMPLE_BYTES = 1 << 16
LONG_SAMPLE_BYTES = 1 << 24
COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
}


@dataclass(frozen=True)
class Layout:
    """Enough to read every row of a text file."""

    path: Path
    separator: str
    header: bool
    n_skipped: int  # lines before the first row: blank ones, and the header
    names: tuple[str, ...]  # the header's, or positions where there is none
    places: ColumnPositions

    @property
    def n_fields(self) -> int:
        return len(self.names)

    @property
    def quote(self) -> str | None:
        return '"' if self.separator in QUOTED else None

    @property
    def unquotes(self) -> bool:
        """Whether fields that are wholly in quotation marks stand for what is between them."""
        return self.separator in UNQUOTED


def sample_lines(path: Path) -> tuple[list[str], list[int]]:
    """The first lines that are not blank, enough to guess from, and their line numbers, from 0.

    A file that holds nothing to read is an error.
    """
    start = _start(path)
    for magic, kind in COMPRESSED.items():
        if start.startswith(magic):
            raise DataError(f"{path}: this file is compressed ({kind}); unpack it first, or save the table as Parquet")
    if b"\x00" in start:
        raise DataError(f"{path} line 1: the file is not UTF-8 text (it may be UTF-16); save it as UTF-8")
    lines = start.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").split("\n")
    if len(start) < path.stat().st_size and len(lines) > 1:
        lines.pop()  # cut off in the middle
    places = [place for place, line in enumerate(lines) if line.strip()]
    filled = [lines[place] for place in places]
    if not filled:
        raise DataError(f"{path}: the file is empty; every row needs a user and an item")
    if "\r" in filled[0]:
        raise DataError(f"{path} line 1: lines end with \\r alone, as on old Macs; save the file with other line ends")
    return filled, places


def _start(path: Path) -> bytes:
    """The first bytes of a file, more of them where lines are very long."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        with path.open("rb") as stream:
            start = stream.read(SAMPLE_BYTES)
            return start if start.count(b"\n") > 1 else start + stream.read(LONG_SAMPLE_BYTES)
    except OSError as error:
        raise DataError(f"{path}: the file cannot be opened ({error.strerror})") from error


def guess_separator(lines: list[str]) -> str:
    """The first separator that every line of the sample has; a comma where none is found."""
    for separator in SEPARATORS:
        if all(separator in line.strip() for line in lines):
            return separator
    return next((separator for separator in SEPARATORS if separator in lines[0].strip()), ",")


def sniff(path: Path, wanted: Columns, *, separator: str | None, header: bool | None) -> Layout:
    """The layout of a table, guessed where it is not given."""
    lines, numbers = sample_lines(path)
    separator = separator or guess_separator(lines)
    first = split_line(lines[0], separator)
    if header is None:
        header = is_header(first, wanted) or not any(map(_is_number, first))
    if header:
        names = tuple(plain(name) for name in first)
        first_row = numbers[1] if len(numbers) > 1 else numbers[0] + 1
        return Layout(path, separator, True, first_row, names, find(names, wanted, source=str(path)))
    places = find_by_position(len(first), wanted, source=str(path))
    return Layout(path, separator, False, numbers[0], tuple(map(str, range(len(first)))), places)


def split_line(line: str, separator: str) -> list[str]:
    """The fields of one line."""
    if separator in QUOTED:
        return next(csv.reader([line], delimiter=separator))
    fields = line.split(separator)
    return [_unquoted(field) for field in fields] if separator in UNQUOTED else fields


def _unquoted(field: str) -> str:
    found = re.fullmatch(QUOTED_FIELD, field, re.DOTALL)
    return found[1].replace('""', '"') if found else field


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
