"""Identifiers that are numbered chunk by chunk, as if all rows had been seen at once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from bayesneg.data.numbering import numbered_series
from bayesneg.data.readers.raw_interactions import alike, stacked


class GrowingIds:
    """Distinct identifiers in order of first appearance.

    They are integers until a chunk brings text. An integer of a text table is its text, so nothing is numbered anew.
    """

    def __init__(self, parts: Iterable[pl.Series] = ()) -> None:
        self.ids: pl.Series | None = None
        for part in parts:
            self._append(part)

    def __len__(self) -> int:
        return 0 if self.ids is None else len(self.ids)

    @property
    def series(self) -> pl.Series:
        """The identifiers in the order of their numbers."""
        return pl.Series("id", [], dtype=pl.Int64) if self.ids is None else self.ids

    def number(self, ids: pl.Series) -> tuple[np.ndarray, pl.Series]:
        """The number of each identifier (n,) int64, and those that are new."""
        places, distinct = numbered_series(ids)
        numbers = self._known(distinct)
        is_new = numbers < 0
        numbers[is_new] = len(self) + np.arange(np.count_nonzero(is_new))
        new = distinct.filter(pl.Series(is_new))
        self._append(new)
        return numbers[places], new

    def _known(self, distinct: pl.Series) -> np.ndarray:
        """The numbers of distinct identifiers, −1 for new ones."""
        if self.ids is None:
            return np.full(len(distinct), -1)
        known, asked = alike(self.ids, distinct)
        table = known.to_frame("id").with_row_index("number")
        found = asked.to_frame("id").join(table, on="id", how="left", maintain_order="left")["number"]
        return found.cast(pl.Int64).fill_null(-1).to_numpy().copy()

    def _append(self, new: pl.Series) -> None:
        self.ids = new.alias("id") if self.ids is None else stacked(self.ids, new)
