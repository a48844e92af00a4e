"""The source files of prepared data: which they are, in which order, and that they have the same columns."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from bayesneg.data.prepared.folder import is_prepared
from bayesneg.data.readers.columns import Columns
from bayesneg.data.readers.frames import become_text, parquet_chunks, parquet_schema
from bayesneg.data.readers.raw_interactions import RawInteractions
from bayesneg.data.readers.sniffing import Layout, sample_lines
from bayesneg.data.readers.tables import no_rating_column, table_chunks, table_layout
from bayesneg.data.reading import COLUMN_OPTIONS, Format, ReadOptions, format_of
from bayesneg.errors import DataError, InputError


@dataclass(frozen=True)
class Sources:
    """The files, all of one format and with the same columns."""

    files: tuple[Path, ...]
    how: ReadOptions
    format: Format
    schema: Mapping[str, pl.DataType]  # of Parquet: the columns that are used
    columns: Columns  # of Parquet: what each is
    layouts: tuple[Layout, ...]  # of text tables: one for each file

    @property
    def is_parquet(self) -> bool:
        return self.format == "parquet"

    def facts(self) -> list[dict[str, Any]]:
        """Each file with its size and the time of its last change."""
        found = [(path, _still_there(path).stat()) for path in self.files]
        return [{"file": str(path), "bytes": at.st_size, "modified_ns": at.st_mtime_ns} for path, at in found]

    @cached_property
    def n_rows(self) -> int:
        """The rows of all files; of text tables estimated from the length of their first lines."""
        for path in self.files:
            _still_there(path)
        if self.is_parquet:
            return int(pl.scan_parquet(list(self.files), glob=False).select(pl.len()).collect().item())
        return sum(map(_n_lines, self.files))

    @cached_property
    def _texts(self) -> frozenset[str]:
        ids = (str(name) for name in (self.columns.user, self.columns.item))
        return frozenset(name for name in ids if become_text(self.files, name, self.schema[name]))

    def chunks(self, number: int, *, first_row: int, size: int) -> Iterator[tuple[int, RawInteractions]]:
        """The rows of one file from ``first_row`` on, about ``size`` at a time, each with the rows it took."""
        _still_there(self.files[number])
        if self.is_parquet:
            return parquet_chunks(
                self.files[number],
                self.columns,
                min_rating=self.how.min_rating,
                first_row=first_row,
                size=size,
                texts=self._texts,
            )
        layout = self.layouts[number]
        return table_chunks(layout, min_rating=self.how.min_rating, first_row=first_row, size=size)


def find_sources(given: str | Path | Sequence[str | Path], how: ReadOptions) -> Sources:
    """The files of a file, a folder, a glob, or several of these, in the order of their names."""
    several = [given] if isinstance(given, str | Path) else list(given)
    if not several:
        raise InputError("sources must name at least one file, folder or glob, got none")
    files = tuple(file.resolve() for one in several for file in _files(one))
    repeated = next((file for place, file in enumerate(files) if file in files[:place]), None)
    if repeated is not None:
        raise InputError(f"sources: {repeated} is given twice; give each file once")
    formats = {file: how.format or format_of(file, how) for file in files}
    kind = formats[files[0]]
    for file, other in formats.items():
        if other == "adjacency":
            raise InputError(f"{file}: adjacency lists are not prepared; read them with bn.load, or save them as pairs")
        if other != kind:
            raise DataError(f"{file}: this is a file of format {other} where {files[0]} is {kind}; give files of one")
    if kind == "parquet":
        how.refuse_all_but(*COLUMN_OPTIONS, "format", source="Parquet files")
        return _parquet(files, how)
    return _tables(files, how)


def _still_there(path: Path) -> Path:
    """A source that was there when the command began."""
    if not path.is_file():
        raise DataError(f"{path}: the file was removed while it was prepared; put it back and give the same command")
    return path


def _files(given: str | Path) -> list[Path]:
    path = Path(given).expanduser()
    if is_prepared(path):
        raise InputError(f"{path}: this folder is prepared already; bn.load opens it, and DATA of every command is it")
    if path.is_dir():
        found = sorted(each for each in path.iterdir() if each.is_file() and each.name[0] not in "._")
        if not found:
            raise DataError(f"{path}: the folder holds no files; give one with Parquet or CSV files")
        return found
    if path.is_file():
        return [path]
    found = sorted(Path(name) for name in glob.glob(str(path)) if Path(name).is_file())  # noqa: PTH207 - any root
    if not found:
        what = "no file matches" if glob.has_magic(str(path)) else "no such file or folder"
        raise DataError(f"{given}: {what}; check the path")
    return found


def _parquet(files: tuple[Path, ...], how: ReadOptions) -> Sources:
    first, columns = parquet_schema(files[0], how.columns)
    if how.min_rating is not None and not columns.rating:
        raise no_rating_column(str(files[0]), tuple(first))
    for file in files[1:]:
        try:
            other, _ = parquet_schema(file, columns)
        except InputError as error:
            if error.__cause__ is not None:  # not a Parquet file at all
                raise
            raise DataError(f"{file}: it has other columns than {files[0]}: {error}") from error
        for name, dtype in first.items():
            if other[name] != dtype:
                raise DataError(
                    f"{file}: column {name!r} holds {other[name]} where {files[0]} has {dtype}; "
                    "all files need the same columns"
                )
    return Sources(files, how, "parquet", first, columns, ())


def _tables(files: tuple[Path, ...], how: ReadOptions) -> Sources:
    reading = {"separator": how.separator, "header": how.header, "min_rating": how.min_rating}
    first = table_layout(files[0], how.columns, **reading)  # type: ignore[arg-type]
    layouts = [first]
    for file in files[1:]:
        try:
            other = table_layout(file, how.columns, **{**reading, "separator": first.separator})  # type: ignore[arg-type]
        except InputError as error:
            raise DataError(f"{file}: it is not a table like {files[0]}: {error}") from error
        if (other.header, other.names) != (first.header, first.names):
            raise DataError(
                f"{file}: its columns are {_columns(other)} where {files[0]} has {_columns(first)}; "
                "all files need the same columns"
            )
        layouts.append(other)
    return Sources(files, how, "table", {}, how.columns, tuple(layouts))


def _columns(layout: Layout) -> str:
    if not layout.header:
        return f"{layout.n_fields} without names"
    return ", ".join(map(repr, layout.names))


def _n_lines(path: Path) -> int:
    lines, _ = sample_lines(path)
    return int(path.stat().st_size * len(lines) / (sum(len(line.encode()) + 1 for line in lines)))
