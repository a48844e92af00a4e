"""What is known of items, such as titles: columns to show beside their identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesneg.data.identifiers import find, plain
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.recommendation.bulk import identifiers
from bayesneg.recommendation.small_tables import id_column, read_small_table

if TYPE_CHECKING:
    import polars as pl

TAKEN = ("user", "rank", "item", "score")  # columns of recommendations


@dataclass(frozen=True, eq=False)
class ItemData:
    """Columns of items, aligned with their numbers.

    Args:
        table: One row for each item of the catalogue, in the order of numbers; null where nothing is known.
        missing: Identifiers of items without a row in the file.
        n_unknown: Rows of items that the catalogue does not have.
        repeated: Identifiers of items with several rows, of which the first counts.
        item_ids: Raw identifiers (n_items,).
    """

    table: pl.DataFrame
    missing: Sequence[Any]
    n_unknown: int
    repeated: Sequence[Any]
    item_ids: np.ndarray

    @property
    def columns(self) -> list[str]:
        return self.table.columns

    def beside(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A frame with a column ``item``, and the items' columns after its own."""
        return frame.join(self._by_item, on="item", how="left", maintain_order="left")

    def row(self, item: int) -> list[str]:
        """The values of the item of this number as text, empty where nothing is known."""
        return ["" if value is None else str(value) for value in self.table.row(item)]

    @cached_property
    def _by_item(self) -> pl.DataFrame:
        renamed = {name: f"item_{name}" for name in self.columns if name in TAKEN}
        return self.table.rename(renamed).insert_column(0, identifiers(self.item_ids).alias("item"))


def read_item_data(
    path: str | Path, data: Interactions, *, columns: Sequence[str] | None = None, option: str = "--item-data"
) -> ItemData:
    """Read a table of items.

    Args:
        path: A CSV or TSV file with a heading, Parquet, or JSON lines; also MovieLens' u.item and movies.dat.
        data: The interactions whose items are described.
        columns: The columns to keep; all unless given.
        option: What the file was given as, for errors.

    Returns:
        The columns; the first row of an item counts.
    """
    import polars as pl

    source = Path(path)
    table = read_small_table(source, "item")
    key = id_column(table.columns, "item")
    if key is None:
        raise InputError(
            f"{option} {source} has no column known as the item among {', '.join(map(repr, table.columns))}; its first "
            "line must name the columns, one of them item or id"
        )
    others = [name for name in table.columns if name != key]
    for name in columns or ():
        if name not in others:
            raise InputError(f"{option} {source} has no column {name!r} beside its items; it has {', '.join(others)}")
    places = np.full(data.n_items, -1, dtype=np.int64)
    n_unknown, repeated = 0, {}
    for place, raw in enumerate(table[key].to_list()):
        number = None if raw is None else find(raw.strip() if isinstance(raw, str) else raw, data.numbers_of_items)
        if number is None:
            n_unknown += 1
        elif places[number] < 0:
            places[number] = place
        else:
            repeated[number] = plain(data.item_ids[number])
    if (places < 0).all():
        example = table[key][0] if len(table) else "nothing"
        raise InputError(
            f"{option} {source}: column {key!r} names no item of the run; it holds {example!r}, items of the run look "
            f"like {', '.join(map(repr, data.item_ids[:3].tolist()))}"
        )
    rows = pl.Series(np.where(places < 0, len(table), places))
    blank = pl.DataFrame({name: [None] for name in table.columns}, schema=table.schema)
    aligned = pl.concat([table, blank])[rows].select(list(columns) if columns else others)
    missing = [plain(each) for each in data.item_ids[places < 0]]
    return ItemData(aligned, missing, n_unknown, list(repeated.values()), data.item_ids)
