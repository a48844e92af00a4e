"""The options of reading, and the choice of a reader for a file or frame."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bayesneg.data.catalogue import BUILT_IN
from bayesneg.data.readers.adjacency import looks_like_adjacency, read_adjacency
from bayesneg.data.readers.columns import Column, Columns
from bayesneg.data.readers.frames import is_parquet, read_frame, read_parquet
from bayesneg.data.readers.raw_interactions import RawInteractions
from bayesneg.data.readers.tables import read_table
from bayesneg.errors import DataError, InputError

Format = Literal["table", "parquet", "adjacency"]


@dataclass(frozen=True)
class ReadOptions:
    """The reading options of :func:`bayesneg.data.load.load`, checked."""

    columns: Columns = field(default_factory=Columns)
    user_columns: Sequence[str] | None = None  # None: none of a table, all of a folder that knows its users
    separator: str | None = None
    header: bool | None = None
    min_rating: float | None = None
    format: Format | None = None

    def __post_init__(self) -> None:
        if self.format not in (None, "table", "parquet", "adjacency"):
            raise InputError(f"format must be 'table', 'parquet' or 'adjacency', got {self.format!r}")
        if self.separator is not None and (self.separator == "" or "\n" in self.separator):
            raise InputError(f"separator must be one or more characters of a line, got {self.separator!r}")
        if self.min_rating is not None and self.min_rating != self.min_rating:
            raise InputError("min_rating must be a number, got nan")
        if isinstance(self.user_columns, str):
            raise InputError(
                f"user_columns must be a list of names, got {self.user_columns!r}; write [{self.user_columns!r}]"
            )

    @property
    def given(self) -> dict[str, Any]:
        """The options that are not left to be guessed, by name."""
        every = {
            "user_column": self.columns.user,
            "item_column": self.columns.item,
            "rating_column": self.columns.rating,
            "time_column": self.columns.time,
            "user_columns": self.user_columns,
            "separator": self.separator,
            "header": self.header,
            "min_rating": self.min_rating,
            "format": self.format,
        }
        return {option: value for option, value in every.items() if value is not None}

    def refuse_all_but(self, *allowed: str, source: str) -> None:
        """Raise for an option that has no effect on this source."""
        for option, value in self.given.items():
            if option not in allowed:
                raise InputError(f"{option}={value!r} has no effect on {source}; leave it out")


def read_options(
    *,
    user_column: Column | None,
    item_column: Column | None,
    rating_column: Column | None,
    time_column: Column | None,
    user_columns: Sequence[str] | None,
    separator: str | None,
    header: bool | None,
    min_rating: float | None,
    format: Format | None,
) -> ReadOptions:
    """The options of a public function as one value."""
    columns = Columns(
        user=user_column,
        item=item_column,
        rating=rating_column,
        time=time_column,
        user_columns=() if user_columns is None or isinstance(user_columns, str) else tuple(user_columns),
    )
    separator = "\t" if separator == "\\t" else separator  # as people type it on the command line
    return ReadOptions(columns, user_columns, separator, header, min_rating, format)


def existing(source: str | Path) -> Path:
    """A path that is there; the error for one that is not also lists the built-in names."""
    path = Path(source).expanduser()
    if not os.path.exists(path):  # noqa: PTH110 - unlike Path.exists, never raises
        raise DataError(f"{source}: no such file or folder, and no built-in dataset; these are {', '.join(BUILT_IN)}")
    return path


def read_rows(source: Any, how: ReadOptions) -> RawInteractions:
    """The rows of one file or frame."""
    if not isinstance(source, str | Path):
        how.refuse_all_but(*COLUMN_OPTIONS, source="a frame")
        return read_frame(source, how.columns, min_rating=how.min_rating)
    path = existing(source)
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; give a file")
    match how.format or format_of(path, how):
        case "parquet":
            how.refuse_all_but(*COLUMN_OPTIONS, "format", source="a Parquet file")
            return read_parquet(path, how.columns, min_rating=how.min_rating)
        case "adjacency":
            how.refuse_all_but("format", source="a file of adjacency lists")
            return read_adjacency(path)
        case _:
            return read_table(path, how.columns, separator=how.separator, header=how.header, min_rating=how.min_rating)


COLUMN_OPTIONS = ("user_column", "item_column", "rating_column", "time_column", "user_columns", "min_rating")


def format_of(path: Path, how: ReadOptions) -> Format:
    """The format of a file, by its name or first lines."""
    if is_parquet(path):
        return "parquet"
    if how.separator is None and how.header is None and looks_like_adjacency(path):
        return "adjacency"
    return "table"
