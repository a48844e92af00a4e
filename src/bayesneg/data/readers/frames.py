"""Typed columns: pandas, polars and Arrow frames (through narwhals), Parquet files, and SciPy sparse matrices."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from bayesneg.data.interactions import Interactions
from bayesneg.data.readers.columns import Columns, find
from bayesneg.data.readers.raw_interactions import RawInteractions, nothing_left
from bayesneg.data.readers.tables import no_rating_column, user_table
from bayesneg.data.readers.values import as_times
from bayesneg.errors import DataError, InputError, PanicError, first_line, no_panic

PARQUET_MAGIC = b"PAR1"


def read_frame(
    frame: Any,
    wanted: Columns,
    *,
    min_rating: float | None = None,
    source: str = "the frame",
    first_row: int = 0,
    texts: Container[str] = (),
) -> RawInteractions:
    """The rows of a frame; identifiers keep the type they have there.

    Of a part of a larger frame, ``first_row`` is its place there, and ``texts`` names the columns that other parts
    make text.
    """
    table = _opened(frame, source)
    places = find(table.columns, wanted, source=source)
    if min_rating is not None and places.rating is None:
        raise no_rating_column(source, tuple(table.columns))
    columns = {
        "user": _ids(table, places.user, "user", source, first_row, texts),
        "item": _ids(table, places.item, "item", source, first_row, texts),
    }
    if places.time is not None:
        columns["time"] = _times(table, places.time, source, first_row)
    if min_rating is not None and places.rating is not None:
        columns["rating"] = _ratings(table, places.rating, source, first_row)
    columns |= {f"about {name}": _column(table, place) for name, place in places.user_columns.items()}
    rows = pl.DataFrame(columns)
    kept = rows if min_rating is None else rows.filter(pl.col("rating") >= min_rating)
    return RawInteractions(
        users=kept["user"],
        items=kept["item"],
        times=kept["time"] if "time" in kept.columns else None,
        user_table=user_table(kept, places.user_columns),
        n_below_min_rating=len(rows) - len(kept),
        source=source,
    )


def is_parquet(path: Path) -> bool:
    """Named so, or begins so."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return True
    try:
        with path.open("rb") as stream:
            return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
    except OSError as error:
        raise DataError(f"{path}: the file cannot be opened ({error.strerror})") from error


def read_parquet(path: Path, wanted: Columns, *, min_rating: float | None = None) -> RawInteractions:
    """The rows of a Parquet file; only the columns that are used are read."""
    with _parquet_errors(path):
        schema, found = parquet_schema(path, wanted)
        frame = pl.read_parquet(path, columns=list(schema), glob=False)
    return read_frame(frame, found, min_rating=min_rating, source=str(path))


def parquet_schema(path: Path, wanted: Columns) -> tuple[dict[str, pl.DataType], Columns]:
    """The columns that are used, with their types, in the order of the file; and what each is, by name."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    with _parquet_errors(path):
        schema = pl.read_parquet_schema(path)
    names = list(schema)
    places = find(names, wanted, source=str(path))
    optional = [place for place in (places.rating, places.time) if place is not None]
    used = sorted({places.user, places.item, *optional, *places.user_columns.values()})
    found = Columns(
        user=names[places.user],
        item=names[places.item],
        rating="" if places.rating is None else names[places.rating],
        time="" if places.time is None else names[places.time],
        user_columns=wanted.user_columns,
    )
    return {names[place]: schema[names[place]] for place in used}, found


def parquet_chunks(
    path: Path,
    wanted: Columns,
    *,
    min_rating: float | None = None,
    first_row: int = 0,
    size: int,
    texts: Container[str] = (),
) -> Iterator[tuple[int, RawInteractions]]:
    """The rows of a Parquet file from ``first_row`` on, about ``size`` of them at a time, each with the rows it took.

    ``texts`` are the columns whose identifiers :func:`become_text`.
    """
    schema, found = parquet_schema(path, wanted)
    if min_rating is not None and not found.rating:
        raise no_rating_column(str(path), tuple(schema))
    rows = pl.scan_parquet(path, glob=False).select(list(schema)).slice(first_row)
    with _parquet_errors(path):
        for frame in rows.collect_batches(chunk_size=size, maintain_order=True, engine="streaming"):
            if len(frame):
                yield (
                    len(frame),
                    read_frame(frame, found, min_rating=min_rating, source=str(path), first_row=first_row, texts=texts),
                )
                first_row += len(frame)


def become_text(paths: Sequence[Path], name: str, dtype: pl.DataType) -> bool:
    """Whether the identifiers of a column of Parquet files are text, though it holds numbers: by the rule of a frame.

    A single 1.5 or 2^63 decides it, so such columns are read once more.
    """
    if not (dtype.is_float() or dtype in (pl.UInt64, pl.Int128)):
        return False
    values = pl.col(name)
    fits = values.cast(pl.Int64, strict=False).is_not_null()
    is_integer = (fits & (values == values.round()) if dtype.is_float() else fits) | values.is_null()
    return not pl.scan_parquet(list(paths), glob=False).select(is_integer.all()).collect(engine="streaming").item()


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    try:
        with no_panic():
            yield
    except (pl.exceptions.PolarsError, OSError, PanicError) as error:
        reason = first_line(error)
        raise DataError(f"{path}: this is not a Parquet file, or it is cut off ({reason})") from error


def read_matrix(matrix: Any, *, name: str, min_rating: float | None = None) -> Interactions:
    """A users × items matrix of SciPy: every stored value that is not zero is an interaction.

    Rows and columns are the identifiers, the empty ones too, so that numbers mean the same before and after.
    """
    entries = matrix.tocoo()
    if entries.ndim != 2:
        raise InputError(f"source: a sparse array must be users × items, got {entries.ndim} dimension(s)")
    rows, columns, values = entries.row, entries.col, np.asarray(entries.data)
    stored = values != 0
    kept = stored if min_rating is None else stored & (values >= min_rating)
    n_below = int(stored.sum() - kept.sum())
    if not kept.any():
        raise nothing_left(name, n_below)
    return Interactions.from_numbers(
        rows[kept],
        columns[kept],
        user_ids=np.arange(entries.shape[0]),
        item_ids=np.arange(entries.shape[1]),
        name=name,
        n_below_min_rating=n_below,
    )


def _opened(frame: Any, source: str) -> nw.DataFrame[Any]:
    try:
        table = nw.from_native(frame)
    except TypeError as error:
        raise InputError(
            f"source must be a built-in name, a path, a frame (pandas, polars, Arrow) or a SciPy sparse matrix, "
            f"got {type(frame).__name__}"
        ) from error
    except nw.exceptions.NarwhalsError as error:
        raise DataError(f"{source}: {' '.join(str(error).split())}") from error
    table = table.collect() if isinstance(table, nw.LazyFrame) else table
    if len(table) == 0:
        raise DataError(f"{source}: no rows; every row needs a user and an item")
    return table


def _ids(
    table: nw.DataFrame[Any], place: int, noun: str, source: str, first_row: int, texts: Container[str]
) -> pl.Series:
    """Integers or text; whole floats, which is what pandas makes of integers with gaps, become integers again."""
    values = _column(table, place)
    empty = values.is_null() if not values.dtype.is_float() else values.is_null() | values.is_nan()
    if values.dtype == pl.String:
        empty = empty | (values.str.strip_chars() == "")
    if empty.any():
        raise DataError(
            f"{source} row {first_row + _first(empty)}: {noun} is empty; every row needs a user and an item "
            "(rows count from 1)"
        )
    if values.dtype.is_nested():
        raise DataError(f"{source}: the column of the {noun}s holds {values.dtype}; identifiers are integers or text")
    if table.columns[place] in texts:
        return values.cast(pl.String)
    if values.dtype.is_integer() or (values.dtype.is_float() and (values == values.round()).all()):
        integers = values.cast(pl.Int64, strict=False)
        return integers if not integers.has_nulls() else values.cast(pl.String)
    return values.cast(pl.String)


def _times(table: nw.DataFrame[Any], place: int, source: str, first_row: int) -> pl.Series:
    values = _column(table, place)
    times = as_times(values)
    if times.has_nulls():
        row = _first(times.is_null())
        raise DataError(
            f"{source} row {first_row + row}: time {values[row - 1]!r} is neither a number nor a date such as "
            '2024-12-31; correct it, or read without times (time_column="")'
        )
    return times


def _ratings(table: nw.DataFrame[Any], place: int, source: str, first_row: int) -> pl.Series:
    values = _column(table, place)
    ratings = values.cast(pl.Float64, strict=False).fill_nan(None)
    if ratings.has_nulls():
        row = _first(ratings.is_null())
        raise DataError(
            f"{source} row {first_row + row}: rating {values[row - 1]!r} is not a number; min_rating needs one per row"
        )
    return ratings


def _column(table: nw.DataFrame[Any], place: int) -> pl.Series:
    """One column as polars has it, without asking for pyarrow."""
    column = table[table.columns[place]]
    if column.implementation.is_polars() or column.implementation.is_pyarrow():
        return pl.Series(column.to_native())
    if (column.dtype.is_numeric() or column.dtype == nw.Datetime) and column.null_count() == 0:
        values = column.to_numpy()
        return pl.Series(values.astype("datetime64[us]") if values.dtype.kind == "M" else values)
    return pl.Series([_scalar(value) for value in column.to_list()], strict=False)


def _scalar(value: Any) -> Any:
    return None if value != value else value  # NaN is how pandas marks a missing text


def _first(mask: pl.Series) -> int:
    return int(mask.arg_true()[0]) + 1
