"""Small tables beside the data: lists of identifiers, and what is known of items (titles, genres).

Parquet, JSON lines, or text with any common separator. A text of one column without a known heading is a list of
identifiers; in a table the column is found by its name, or given.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bayesneg.data.readers.columns import KNOWN_NAMES, plain, simple
from bayesneg.data.readers.frames import is_parquet
from bayesneg.data.readers.sniffing import QUOTED, guess_separator, sample_lines
from bayesneg.errors import InputError
from bayesneg.recommendation.json_lines import ENDINGS, example, read_json_lines, without_nesting

if TYPE_CHECKING:
    import polars as pl

WITHOUT_HEADER: Final = {  # MovieLens: file → its first columns
    "u.item": ("item", "title", "released"),
    "movies.dat": ("item", "title", "genres"),
    "u.user": ("user", "age", "gender", "occupation", "zip_code"),
    "users.dat": ("user", "gender", "age", "occupation", "zip_code"),
}


def read_ids(path: str | Path, noun: str, *, option: str = "file") -> list[Any]:
    """The identifiers in a file: one per line, or the column of a table that is known as the user or the item.

    Args:
        path: The file.
        noun: ``"user"`` or ``"item"``.
        option: What the file was given as, for errors.
    """
    source = Path(path)
    table = read_small_table(source, noun)
    column = id_column(table.columns, noun)
    if column is None:
        if len(table.columns) > 1:
            raise InputError(
                f"{option} {source} has no column known as the {noun} among {_listed(table.columns)}; call it {noun}, "
                "or give a file with one identifier per line"
            )
        column = table.columns[0]
    ids = [each for each in table[column].to_list() if each is not None and str(each).strip()]
    if not ids:
        raise InputError(f"{option} {source} holds no {noun}; give one identifier per line")
    return ids


def read_small_table(path: Path, noun: str) -> pl.DataFrame:
    """All columns; those of a text file are text. A text without a heading that is known has numbered columns."""
    import polars as pl

    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file that names {noun}s")
    if not path.is_file():
        raise InputError(f"{path}: no such file; check the path")
    if not path.read_bytes()[:64].strip():
        raise InputError(f"{path}: the file is empty; it must name {noun}s")
    if is_parquet(path):
        return _parquet(path, noun)
    if path.suffix.lower() in ENDINGS:
        return _json_lines(path, noun)
    if path.suffix.lower() == ".json":
        raise InputError(
            f"{path}: a file of JSON is not read; write one object on each line, {example(noun)}, into a file that "
            f"ends in .jsonl, or give CSV or Parquet"
        )
    rows = _text_rows(path)
    names = WITHOUT_HEADER.get(path.name)
    if names is None:
        names = tuple(plain(name) for name in rows[0])
        if len(names) == 1 and id_column(names, noun) is None:
            names = ("1",)  # a list of identifiers
        else:
            rows = rows[1:]
        if len(set(names)) < len(names):
            raise InputError(f"{path} line 1 has two columns of one name, {_listed(names)}; give each its own name")
    first = 1 if len(names) == 1 or path.name in WITHOUT_HEADER else 2
    for number, row in enumerate(rows, first):
        if len(row) < len(names) or (len(row) > len(names) and path.name not in WITHOUT_HEADER):
            raise InputError(f"{path} line {number}: {len(row)} fields where {len(names)} are expected")
    return pl.DataFrame(
        {name: [row[place] for row in rows] for place, name in enumerate(names)}, schema=dict.fromkeys(names, pl.String)
    )


def _nested_identifiers(where: str, column: str, value: Any) -> InputError:
    return InputError(
        f"{where}: {column!r} must be an identifier, text or a whole number, got {value!r:.60}; write it as one value"
    )


def _parquet(path: Path, noun: str) -> pl.DataFrame:
    import polars as pl

    try:
        table = pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{path}: this cannot be read as its name says; {str(error).splitlines()[0]}") from error
    key = id_column(table.columns, noun)
    if key is not None and table.schema[key].is_nested() and len(table):
        raise _nested_identifiers(str(path), key, table[key].to_list()[0])
    return without_nesting(table)


def _json_lines(path: Path, noun: str) -> pl.DataFrame:
    table, nested = read_json_lines(path, noun)
    key = id_column(table.columns, noun) or (table.columns[0] if len(table.columns) == 1 else None)
    if key is not None and key in nested:
        number, value = nested[key]
        raise _nested_identifiers(f"{path} line {number}", key, value)
    return table


def id_column(names: Any, noun: str) -> str | None:
    """The column that is known as the user or the item; ``id`` counts too."""
    known = {simple(name): name for name in reversed(list(names))}
    return next((known[name] for name in (*KNOWN_NAMES[noun], "id") if name in known), None)


def _text_rows(path: Path) -> list[list[str]]:
    """The rows that are not blank."""
    lines, _ = sample_lines(path)
    separator = guess_separator(lines)
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # titles in older files
    if separator == " ":  # titles have blanks
        return [[line.strip()] for line in text.splitlines() if line.strip()]
    if separator not in QUOTED:
        return [line.split(separator) for line in text.splitlines() if line.strip()]
    return [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(row)]


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names))
