"""The result of every reader: rows with raw identifiers, before they are numbered.

Numbering comes last so that two files (train and test, or the two parts of Yahoo!-R3) can share one id space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from bayesneg.data.interactions import Interactions
from bayesneg.data.numbering import numbered
from bayesneg.errors import DataError

USER = "user"  # the identifier column of a table of users


@dataclass(frozen=True, eq=False)
class RawInteractions:
    """Rows as read: users, items, perhaps times, and user features."""

    users: pl.Series  # (n,) raw ids: Int64 or String
    items: pl.Series  # (n,)
    times: pl.Series | None = None  # (n,) numbers
    user_table: pl.DataFrame | None = None  # the column "user" and one more for each user column
    catalogue: pl.Series | None = None  # all items, with or without interactions
    n_below_min_rating: int = 0
    source: str = "data"  # for messages

    def interactions(self, *, name: str) -> Interactions:
        """Numbered in order of first appearance, duplicates collapsed and counted."""
        self.check_not_empty()
        users, user_ids = numbered(self.users)
        items, item_ids = self._numbered_items()
        return Interactions.from_numbers(
            users,
            items,
            user_ids=user_ids,
            item_ids=item_ids,
            times=None if self.times is None else self.times.to_numpy(),
            user_columns=columns_of(user_ids, self.user_table),
            name=name,
            n_below_min_rating=self.n_below_min_rating,
        )

    def check_not_empty(self) -> None:
        """Raise if there are no interactions."""
        if len(self.users) == 0:
            raise nothing_left(self.source, self.n_below_min_rating)

    def _numbered_items(self) -> tuple[np.ndarray, np.ndarray]:
        if self.catalogue is None:
            return numbered(self.items)
        numbers, known = numbered(stacked(self.items, self.catalogue))
        return numbers[: len(self.items)], known


def nothing_left(source: str, n_below_min_rating: int) -> DataError:
    """The error for a source without interactions."""
    if n_below_min_rating == 0:
        return DataError(f"{source}: no interactions; every row needs a user and an item")
    return DataError(
        f"{source}: no interactions are left, all {n_below_min_rating:,} ratings are below min_rating; lower it"
    )


def alike(first: pl.Series, second: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Both as they are; where one holds integers and the other text, both as text."""
    if first.dtype == second.dtype:
        return first, second
    return first.cast(pl.String), second.cast(pl.String)


def stacked(first: pl.Series, second: pl.Series) -> pl.Series:
    """Both one after the other, as :func:`alike` makes them."""
    first, second = alike(first, second)
    return pl.concat([first.alias("id"), second.alias("id")], rechunk=True)


def concatenate(first: RawInteractions, second: RawInteractions, *, source: str) -> RawInteractions:
    """The rows of both; times are kept where both have them."""
    both_timed = first.times is not None and second.times is not None
    return RawInteractions(
        users=stacked(first.users, second.users),
        items=stacked(first.items, second.items),
        times=_stacked_times(first.times, second.times) if both_timed else None,
        user_table=first.user_table if first.user_table is not None else second.user_table,
        n_below_min_rating=first.n_below_min_rating + second.n_below_min_rating,
        source=source,
    )


def _stacked_times(first: pl.Series | None, second: pl.Series | None) -> pl.Series | None:
    if first is None or second is None:
        return None
    if first.dtype != second.dtype:
        first, second = first.cast(pl.Float64), second.cast(pl.Float64)
    return pl.concat([first.alias("time"), second.alias("time")])


def one_row_each(table: pl.DataFrame) -> pl.DataFrame:
    """One row for each user, in the order they come: in every column the first value that is there."""
    numbers = pl.selectors.float()
    return (
        table.with_columns(numbers.fill_nan(None))
        .group_by(USER, maintain_order=True)
        .agg(pl.all().first(ignore_nulls=True))
    )


def columns_of(user_ids: np.ndarray, table: pl.DataFrame | None) -> dict[str, np.ndarray]:
    """Each column of the table as objects (n_users,) in the order of ``user_ids``; None where a user is not in it.

    Of a user with several rows, the first value that is not missing counts.
    """
    if table is None:
        return {}
    known = pl.DataFrame({USER: pl.Series(user_ids.tolist())})
    if known.schema[USER] != table.schema[USER]:
        known, table = known.cast({USER: pl.String}), table.cast({USER: pl.String})
    matched = known.join(one_row_each(table), on=USER, how="left", maintain_order="left")
    return {name: np.array(matched[name].to_list(), dtype=object) for name in matched.columns if name != USER}
