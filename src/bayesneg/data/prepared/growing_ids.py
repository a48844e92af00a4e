"""Identifiers that are numbered chunk by chunk, as if all rows had been seen at once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from bayesneg.data.numbering import numbered_series
from bayesneg.data.prepared.integer_table import IntegerTable
from bayesneg.data.readers.raw_interactions import alike, stacked


class GrowingIds:
    """Distinct identifiers in order of first appearance.

    They are integers until a chunk brings text. An integer of a text table is its text, so nothing is numbered anew.
    Text is looked up by a hash of 64 bits and then compared; should two texts share a hash, a join takes over.
    """

    def __init__(self, parts: Iterable[pl.Series] = ()) -> None:
        self._table: IntegerTable | None = IntegerTable()
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
        known, ids = alike(self._known, ids.alias("id"))
        if known.dtype != self._known.dtype:
            self._known = known
            self._hash_again()
        numbers, new = self._looked_up(ids) or self._joined(ids)
        self._known = stacked(self._known, new)
        return numbers, new

    def _looked_up(self, ids: pl.Series) -> tuple[np.ndarray, pl.Series] | None:
        """By the table; None where two texts share a hash."""
        if self._table is None:
            return None
        numbers, rows = self._table.number(_codes(ids))
        new = ids.gather(rows)
        if ids.dtype == pl.Int64 or (stacked(self._known, new).gather(numbers) == ids).all():
            return numbers, new
        self._table = None
        return None

    def _hash_again(self) -> None:
        """The table of the same identifiers as text."""
        self._table = IntegerTable()
        _, distinct = self._table.number(_codes(self._known))
        if len(distinct) < len(self._known):
            self._table = None

    def _joined(self, ids: pl.Series) -> tuple[np.ndarray, pl.Series]:
        """The same by a join with all that is known."""
        places, distinct = numbered_series(ids)
        known = self._known.to_frame("id").with_row_index("number")
        joined = distinct.to_frame("id").join(known, on="id", how="left", maintain_order="left")["number"]
        numbers = joined.cast(pl.Int64).fill_null(-1).to_numpy().copy()
        is_new = numbers < 0
        numbers[is_new] = len(self) + np.arange(np.count_nonzero(is_new))
        return numbers[places], distinct.filter(pl.Series(is_new))


def _codes(ids: pl.Series) -> np.ndarray:
    """Integers (n,) that stand for identifiers in the table: themselves, or a hash of the text."""
    return ids.to_numpy() if ids.dtype == pl.Int64 else ids.hash().to_numpy().view(np.int64)
