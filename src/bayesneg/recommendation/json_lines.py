"""A table of JSON lines: one object on each line; what is nested becomes JSON text, as a table shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bayesneg.errors import InputError

if TYPE_CHECKING:
    import polars as pl

ENDINGS: Final = (".jsonl", ".ndjson")
LARGEST: Final = 2**63 - 1


class JsonTable(NamedTuple):
    """What the lines hold."""

    table: pl.DataFrame  # columns in the order of their first line, null where a line lacks one
    nested: Mapping[str, tuple[int, Any]]  # column → the first line that has a list or an object there, and that


def read_json_lines(path: Path, noun: str) -> JsonTable:
    """Read a table.

    Args:
        path: The file.
        noun: ``"user"`` or ``"item"``, for the example in an error.
    """
    import polars as pl

    rows = dict(_objects(path, noun))  # number of the line → object
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    if not names:
        raise InputError(f"{path} holds no {noun}; each line must be one object, such as {example(noun)}")
    nested: dict[str, tuple[int, Any]] = {}
    for number, row in rows.items():
        for name, value in row.items():
            if isinstance(value, list | dict):
                nested.setdefault(name, (number, value))
    columns = {name: [row.get(name) for row in rows.values()] for name in names}
    return JsonTable(pl.DataFrame([pl.Series(name, _alike(values)) for name, values in columns.items()]), nested)


def example(noun: str) -> str:
    """``{"item": "i1"}``."""
    return json.dumps({noun: f"{noun[0]}1"})


def without_nesting(table: pl.DataFrame) -> pl.DataFrame:
    """The table with lists and structs as JSON text, which every kind of file can hold."""
    import polars as pl

    nested = [name for name, kind in table.schema.items() if kind.is_nested()]
    return table.with_columns(pl.Series(name, _alike(table[name].to_list()), pl.String) for name in nested)


def _objects(path: Path, noun: str) -> Iterator[tuple[int, dict[str, Any]]]:
    way_out = f"each line must be one object, such as {example(noun)}"
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
        except RecursionError:
            raise InputError(f"{path} line {number}: lists or objects are nested too deeply; {way_out}") from None
        except json.JSONDecodeError as error:
            raise InputError(
                f"{path} line {number}, column {error.colno}: this is not JSON, {error.msg[0].lower()}{error.msg[1:]}; "
                f"{way_out}"
            ) from None
        except ValueError as error:
            raise InputError(f"{path} line {number}: this is not JSON ({error}); {way_out}") from None
        if not isinstance(value, dict):
            raise InputError(f"{path} line {number} holds {json.dumps(value):.60}; {way_out}")
        yield number, value


def _alike(values: Sequence[Any]) -> list[Any]:
    """Values of one type: as they are, as floats, or as text where they differ or are nested."""
    kinds = {type(value) for value in values if value is not None}
    large = int in kinds and any(type(value) is int and abs(value) > LARGEST for value in values)
    if kinds <= {int, float} and not large:
        return [float(value) if value is not None and float in kinds else value for value in values]
    if kinds in ({str}, {bool}):
        return list(values)
    return [value if value is None or isinstance(value, str) else _text(value) for value in values]


def _text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "…"
