"""Tables of users: an identifier and user features (age, gender, occupation), for group priors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from bayesneg.data.readers.columns import KNOWN_NAMES, Column, plain, simple
from bayesneg.data.readers.raw_interactions import USER
from bayesneg.data.readers.sniffing import guess_separator, sample_lines, split_line
from bayesneg.data.readers.values import as_ids
from bayesneg.errors import DataError, InputError


def read_users(
    path: Path,
    *,
    names: Sequence[str] | None = None,
    separator: str | None = None,
    user_column: Column | None = None,
) -> pl.DataFrame:
    """The column "user" and all others; ``names`` are those of a file without a header.

    These files have thousands of lines rather than millions, so each is checked as it is read.
    """
    lines, _ = sample_lines(path)
    separator = separator or guess_separator(lines)
    rows = _rows(path, separator)
    if names is None:
        names = [plain(name) for name in rows.pop(0)[1]]
    place = _user_place(list(names), user_column, path)
    for number, fields in rows:
        if len(fields) != len(names):
            raise DataError(f"{path} line {number}: {len(fields)} fields where {len(names)} are expected")
        if not fields[place].strip():
            raise DataError(f"{path} line {number}: user is empty; every row needs a user")
    columns = {USER if i == place else name: [row[i] for _, row in rows] for i, name in enumerate(names)}
    return pl.DataFrame([as_ids(pl.Series(name, values, dtype=pl.String)) for name, values in columns.items()])


def choose(table: pl.DataFrame | None, wanted: Sequence[str] | None, *, source: str) -> pl.DataFrame | None:
    """The ``wanted`` user columns; all if None."""
    if wanted is None:
        return table
    known = [] if table is None else [name for name in table.columns if name != USER]
    for name in wanted:
        if name not in known:
            raise InputError(
                f"user_columns: {source} has no user column {name!r}; its user columns are {', '.join(known) or 'none'}"
            )
    return table.select(USER, *wanted) if table is not None and wanted else None


def _rows(path: Path, separator: str) -> list[tuple[int, list[str]]]:
    rows = []
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = raw.decode("utf-8-sig").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise DataError(f"{path} line {number}: not UTF-8; save the file in that encoding") from error
            if line.strip():
                rows.append((number, split_line(line, separator)))
    return rows


def _user_place(names: list[str], user_column: Column | None, path: Path) -> int:
    if user_column is not None and user_column in names:
        return names.index(str(user_column))
    found = [simple(name) for name in names]
    for known in KNOWN_NAMES["user"]:
        if known in found:
            return found.index(known)
    raise DataError(
        f"{path}: no user column was recognized among {', '.join(map(repr, names))}; name it with user_column"
    )
