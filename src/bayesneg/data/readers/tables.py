"""Text tables: CSV, TSV, ``::`` and any other separator, with or without a header; one row for each interaction.

The good path never touches a row in Python: polars reads, checks and types the columns in one streaming pass. Only
when that pass meets something wrong does :mod:`~bayesneg.data.readers.faults` read again to find the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Literal

import polars as pl

from bayesneg.data.readers.columns import Columns
from bayesneg.data.readers.faults import raise_first_fault
from bayesneg.data.readers.raw_interactions import USER, RawInteractions, nothing_left, one_row_each
from bayesneg.data.readers.sniffing import QUOTED_FIELD, Layout, sniff
from bayesneg.data.readers.values import as_ids, as_times, typed
from bayesneg.errors import DataError, InputError

Encoding = Literal["utf8", "utf8-lossy"]
_WHOLE_LINE = "\x1f"  # a separator that does not occur, to read lines as they are


def read_table(
    path: Path,
    wanted: Columns,
    *,
    separator: str | None = None,
    header: bool | None = None,
    min_rating: float | None = None,
) -> RawInteractions:
    """The rows of a text table; rows rated below ``min_rating`` are left out and counted."""
    layout = table_layout(path, wanted, separator=separator, header=header, min_rating=min_rating)
    return _as_rows(_collected(layout, min_rating), layout, min_rating)


def table_layout(
    path: Path, wanted: Columns, *, separator: str | None, header: bool | None, min_rating: float | None
) -> Layout:
    """The layout of a table, which has ratings where they are asked for."""
    layout = sniff(path, wanted, separator=separator, header=header)
    if min_rating is not None and layout.places.rating is None:
        raise no_rating_column(str(path), layout.names if layout.header else ())
    return layout


def table_chunks(
    layout: Layout, *, min_rating: float | None = None, first_row: int = 0, size: int
) -> Iterator[tuple[int, RawInteractions]]:
    """The rows of a text table from ``first_row`` on, about ``size`` of them at a time, each with the rows it took.

    Columns are typed for each chunk: of two chunks, one may hold integers and the other text.
    """

    @cache
    def raise_fault() -> None:  # once, since it reads the whole file
        raise_first_fault(layout, rating_needed=min_rating is not None)

    encoding: Encoding = "utf8"
    while True:
        rows, names = _used_columns(_fields(layout, encoding), layout, min_rating)
        try:
            for frame, is_last in _with_last(_batches(rows, first_row, size)):
                found = typed(frame.lazy(), names)
                found = _checked(_without_blank_end(found, layout.path) if is_last else found, layout, raise_fault)
                yield len(frame), _as_rows(found, layout, min_rating)
                first_row += len(frame)
            return
        except pl.exceptions.NoDataError:  # polars before 2.0, for a file with a header alone
            return
        except pl.exceptions.PolarsError as error:
            raise_fault()
            if encoding == "utf8-lossy":
                raise _not_a_table(layout, error) from error
            encoding = "utf8-lossy"


def _batches(rows: pl.LazyFrame, first_row: int, size: int) -> Iterator[pl.DataFrame]:
    yield from rows.slice(first_row).collect_batches(chunk_size=size, maintain_order=True, engine="streaming")


def _with_last(frames: Iterator[pl.DataFrame]) -> Iterator[tuple[pl.DataFrame, bool]]:
    """Each frame that has rows, and whether it is the last."""
    before = None
    for frame in frames:
        if before is not None and len(frame):
            yield before, False
        before = frame if len(frame) else before
    if before is not None:
        yield before, True


def _as_rows(frame: pl.DataFrame, layout: Layout, min_rating: float | None) -> RawInteractions:
    n_rows = len(frame)
    if min_rating is not None:
        frame = frame.filter("kept")
    return RawInteractions(
        users=frame["user"],
        items=frame["item"],
        times=frame["time"] if "time" in frame.columns else None,
        user_table=user_table(frame, layout.places.user_columns),
        n_below_min_rating=n_rows - len(frame),
        source=str(layout.path),
    )


def no_rating_column(source: str, names: tuple[str, ...]) -> InputError:
    """The error of asking for ratings where there are none."""
    columns = f" among {', '.join(map(repr, names))}" if names else ""
    return InputError(
        f"min_rating: {source} has no column known as the rating{columns}; name it with rating_column "
        "(--rating-column), or leave min_rating out"
    )


def user_table(frame: pl.DataFrame, names: dict[str, int]) -> pl.DataFrame | None:
    """The user features in the rows, one row per user."""
    if not names:
        return None
    columns = (pl.col(f"about {name}").alias(name) for name in names)
    return one_row_each(frame.select(pl.col("user").alias(USER), *columns))


def _collected(layout: Layout, min_rating: float | None) -> pl.DataFrame:
    """The columns as they are typed; a second pass over the file if a row is invalid."""
    try:
        frame = typed(*_used_columns(_fields(layout, "utf8"), layout, min_rating))
    except pl.exceptions.PolarsError:
        raise_first_fault(layout, rating_needed=min_rating is not None)
        frame = _collected_lossy(layout, min_rating)
    return _checked(
        _without_blank_end(frame, layout.path),
        layout,
        lambda: raise_first_fault(layout, rating_needed=min_rating is not None),
    )


def _checked(frame: pl.DataFrame, layout: Layout, raise_fault: Callable[[], None]) -> pl.DataFrame:
    """The rows without blank lines; an error for the first one that is invalid."""
    frame = _timed(_without_blank_ids(frame))
    if not frame["fine"].all():
        raise_fault()
        frame = frame.filter("filled")  # the others are blank lines
        frame = frame.with_columns(as_ids(frame["user"]), as_ids(frame["item"]))
        if "time" in frame.columns and frame["time"].has_nulls():
            raise DataError(
                f'{layout.path}: some times cannot be read; read without times (time_column="", --time-column "")'
            )
    return frame


def _collected_lossy(layout: Layout, min_rating: float | None) -> pl.DataFrame:
    """Once the used columns are known to be valid, unused ones may have any encoding (film titles in Latin-1)."""
    try:
        return typed(*_used_columns(_fields(layout, "utf8-lossy"), layout, min_rating))
    except pl.exceptions.NoDataError as error:  # polars before 2.0, for a file with a header alone
        raise nothing_left(str(layout.path), 0) from error
    except pl.exceptions.PolarsError as error:
        raise _not_a_table(layout, error) from error


def _not_a_table(layout: Layout, error: Exception) -> DataError:
    return DataError(f"{layout.path}: this cannot be read as a table; {str(error).splitlines()[0]}")


def _without_blank_ids(frame: pl.DataFrame) -> pl.DataFrame:
    """Identifiers of blanks alone are as empty as none; integers have none, so only text is looked through."""
    for name in ("user", "item"):
        if frame.schema[name] == pl.String:
            filled = pl.col(name).str.strip_chars() != ""
            frame = frame.with_columns(pl.col("fine") & filled, pl.col("filled") & filled)
    return frame


def _timed(frame: pl.DataFrame) -> pl.DataFrame:
    if "time" not in frame.columns:
        return frame
    times = as_times(frame["time"]).alias("time")
    return frame.with_columns(times, pl.col("fine") & times.is_not_null())


def _without_blank_end(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Blank lines at the end are common; dropping them here avoids the second pass."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - 4096))
        end = stream.read()
    n_blank = end[len(end.rstrip()) :].count(b"\n") - 1
    return frame.head(-n_blank) if n_blank > 0 and not frame["filled"].tail(n_blank).any() else frame


def _used_columns(fields: pl.LazyFrame, layout: Layout, min_rating: float | None) -> tuple[pl.LazyFrame, list[str]]:
    """The columns that are used, under plain names, with the checks of each row; and the names of those to type."""
    places = layout.places
    user, item = pl.col(f"f{places.user}"), pl.col(f"f{places.item}")
    filled = _is_filled(user) & _is_filled(item)
    # A last field that is missing may be an empty one or a line that ended early; the second pass decides.
    fine = filled & pl.col(f"f{layout.n_fields - 1}").is_not_null()
    fine &= pl.col(f"f{layout.n_fields}").is_null()  # a field too many
    used = {"user": user, "item": item}
    if places.time is not None:
        used["time"] = pl.col(f"f{places.time}")
    used |= {f"about {name}": pl.col(f"f{place}") for name, place in places.user_columns.items()}
    extra = [filled.alias("filled")]
    if places.rating is not None:
        rating = pl.col(f"f{places.rating}")
        if min_rating is not None:
            rating = rating.str.strip_chars()
            extra.append((rating.cast(pl.Float64, strict=False) >= min_rating).fill_null(False).alias("kept"))
        fine &= rating.cast(pl.Float64, strict=False).is_not_nan().fill_null(False)
    columns = (column.alias(name) for name, column in used.items())
    return fields.select(*columns, *extra, fine.fill_null(False).alias("fine")), list(used)


def _fields(layout: Layout, encoding: Encoding) -> pl.LazyFrame:
    """Every field as text, f0 … f(n−1); f(n) holds what a line has beyond the others, and should be null."""
    n = layout.n_fields
    if len(layout.separator.encode()) == 1:
        frame = _scan(layout, encoding, layout.separator, [f"f{place}" for place in range(n)], layout.quote)
        if layout.unquotes:
            frame = frame.with_columns(pl.all().map_batches(unquoted, return_dtype=pl.String, is_elementwise=True))
        return frame.with_columns(pl.lit(None, dtype=pl.String).alias(f"f{n}"))  # polars itself refuses more fields
    parts = pl.col("line").str.strip_chars_end("\r").str.split_exact(layout.separator, n)
    fields = parts.struct.rename_fields([f"f{place}" for place in range(n + 1)]).alias("fields")
    return _scan(layout, encoding, _WHOLE_LINE, ["line"], None).select(fields).unnest("fields")


def unquoted(fields: pl.Series) -> pl.Series:
    """The fields; of those in quotation marks what is between them, where a doubled mark is one.

    A mark that opens and does not close, or closes before the end, is a character of the field.
    """
    if not fields.str.contains('"', literal=True).any():
        return fields
    inner = fields.str.extract(QUOTED_FIELD).str.replace_all('""', '"', literal=True)
    return inner.fill_null(fields)


def _scan(layout: Layout, encoding: Encoding, separator: str, names: list[str], quote: str | None) -> pl.LazyFrame:
    return pl.scan_csv(
        layout.path,
        has_header=False,
        skip_rows=layout.n_skipped,
        separator=separator,
        quote_char=quote,
        schema=dict.fromkeys(names, pl.String),
        encoding=encoding,
        glob=False,
    )


def _is_filled(field: pl.Expr) -> pl.Expr:
    return field.is_not_null() & (field != "")
