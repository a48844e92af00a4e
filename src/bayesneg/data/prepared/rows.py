"""Chunks of rows to numbers on disk, with the identifiers and user features they bring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bayesneg.data.prepared.files import read_table, write_table
from bayesneg.data.prepared.growing_ids import GrowingIds
from bayesneg.data.prepared.sorting import write_run
from bayesneg.data.readers.raw_interactions import RawInteractions, alike, columns_of, one_row_each
from bayesneg.errors import DataError

MOST = np.iinfo(np.int32).max  # users and items


class RowsReader:
    """Numbers chunks in turn, after the ``n_chunks`` whose files are in ``folder`` already."""

    def __init__(self, folder: Path, n_chunks: int) -> None:
        self.folder, self.n_chunks = folder, n_chunks
        self.users, self.items = GrowingIds(self._parts("users")), GrowingIds(self._parts("items"))
        self.user_table: pl.DataFrame | None = None
        for number in range(n_chunks):
            if (path := self._path("about", number)).is_file():
                self._add_user_table(pl.read_parquet(path))

    def take(self, rows: RawInteractions) -> dict[str, Any]:
        """Store a chunk; what the journal keeps of it."""
        users, new_users = self.users.number(rows.users)
        items, new_items = self.items.number(rows.items)
        for noun, ids in (("users", self.users), ("items", self.items)):
            if len(ids) > MOST:
                raise DataError(f"{rows.source}: more {noun} than their numbers can hold (2^31 - 1)")
        number = self.n_chunks
        write_table(self._path("users", number), new_users.to_frame("id"))
        write_table(self._path("items", number), new_items.to_frame("id"))
        if rows.user_table is not None:
            write_table(self._path("about", number), rows.user_table)
            self._add_user_table(rows.user_table)
        times = None if rows.times is None else rows.times.to_numpy()
        kept = write_run(self.folder, number, users, items, times) if len(users) else 0
        self.n_chunks += 1
        return {
            "rows_kept": len(users),
            "kept": kept,
            "below": rows.n_below_min_rating,
            "times": None if times is None else str(times.dtype),
        }

    def times_of(self, chunks: Iterable[Mapping[str, Any]]) -> str | None:
        """The type of all times: fractions in one chunk make all of them floats."""
        found = {chunk["times"] for chunk in chunks} - {None}
        return None if not found else "int64" if found == {"int64"} else "float64"

    @property
    def id_types(self) -> dict[str, str]:
        """Whether identifiers are integers or text."""
        both = (("user_ids", self.users), ("item_ids", self.items))
        return {name: "int64" if ids.series.dtype == pl.Int64 else "text" for name, ids in both}

    def write_user_columns(self, folder: Path) -> list[str]:
        """The user features in the order of the users; their names."""
        if self.user_table is None:
            return []
        columns = columns_of(self.users.series.to_numpy(), self.user_table)
        types = self.user_table.schema
        frame = {name: pl.Series(values.tolist(), dtype=types[name]) for name, values in columns.items()}
        write_table(folder / "user_columns.parquet", pl.DataFrame(frame))
        return list(columns)

    def _add_user_table(self, table: pl.DataFrame) -> None:
        """The first value of a user that is there counts, over all chunks."""
        if self.user_table is not None:
            both = [alike(self.user_table[name], table[name]) for name in table.columns]
            first, second = (pl.DataFrame([pair[side] for pair in both]) for side in (0, 1))
            table = one_row_each(pl.concat([first, second]))
        self.user_table = table

    def _parts(self, what: str) -> Iterable[pl.Series]:
        return (read_table(self._path(what, number), "id") for number in range(self.n_chunks))

    def _path(self, what: str, number: int) -> Path:
        return self.folder / f"{what}-{number:06}.parquet"
