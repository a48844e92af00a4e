"""Parquet files: columns are found by name, and identifiers keep the type they have in the file."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from bayesneg.data.readers.columns import Columns, find
from bayesneg.data.readers.frames import read_frame
from bayesneg.data.readers.pairs import Pairs
from bayesneg.errors import DataError

MAGIC = b"PAR1"


def is_parquet(path: Path) -> bool:
    """Named so, or begins so."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return True
    try:
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise DataError(f"{path}: the file cannot be opened ({error.strerror})") from error


def read_parquet(path: Path, wanted: Columns, *, min_rating: float | None = None) -> Pairs:
    """The rows of a Parquet file; only the columns that are used are read."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        names = list(pl.read_parquet_schema(path))
        places = find(names, wanted, source=str(path))
        optional = [place for place in (places.rating, places.time) if place is not None]
        used = sorted({places.user, places.item, *optional, *places.user_columns.values()})
        frame = pl.read_parquet(path, columns=used, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: this is not a Parquet file, or it is cut off ({reason})") from error
    found = Columns(
        user=names[places.user],
        item=names[places.item],
        rating="" if places.rating is None else names[places.rating],
        time="" if places.time is None else names[places.time],
        user_columns=wanted.user_columns,
    )
    return read_frame(frame, found, min_rating=min_rating, source=str(path))
