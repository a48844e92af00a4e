"""Identifiers that are numbered chunk by chunk, as if all rows had been seen at once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from bayesneg.data.numbering import numbered_series
from bayesneg.data.prepared.integer_table import IntegerTable
from bayesneg.data.readers.raw_interactions import stacked


class GrowingIds:
    """Distinct identifiers in order of first appearance.

    They are integers until a chunk brings text. An integer of a text table is its text, so nothing is numbered anew.
    """

    def __init__(self, parts: Iterable[pl.Series] = ()) -> None:
        self._integers: IntegerTable | None = IntegerTable()
        self._known = pl.Series("id", [], dtype=pl.Int64)
        for part in parts:
            self.number(part)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def series(self) -> pl.Series:
        """The identifiers in the order of their numbers."""
        return self._known

    def number(self, ids: pl.Series) -> tuple[np.ndarray, pl.Series]:
        """The number of each identifier (n,) int64, and those that are new."""
        if self._integers is not None and ids.dtype == pl.Int64:
            numbers, found = self._integers.number(ids.to_numpy())
            new = pl.Series("id", found)
        else:
            self._integers = None
            numbers, new = self._joined(ids.cast(pl.String))
        self._known = stacked(self._known, new)
        return numbers, new

    def _joined(self, ids: pl.Series) -> tuple[np.ndarray, pl.Series]:
        """The same for text, by a join with all that is known."""
        places, distinct = numbered_series(ids)
        known = self._known.cast(pl.String).to_frame("id").with_row_index("number")
        joined = distinct.to_frame("id").join(known, on="id", how="left", maintain_order="left")["number"]
        numbers = joined.cast(pl.Int64).fill_null(-1).to_numpy().copy()
        is_new = numbers < 0
        numbers[is_new] = len(self) + np.arange(np.count_nonzero(is_new))
        return numbers[places], distinct.filter(pl.Series(is_new))
