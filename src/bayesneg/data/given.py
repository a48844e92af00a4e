"""Splits that somebody else made: a training file and a test file over one shared set of identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bayesneg.data.interactions import Interactions, numbered
from bayesneg.data.readers.columns import Column
from bayesneg.data.readers.pairs import Pairs, columns_of, together
from bayesneg.data.readers.users import choose, read_users
from bayesneg.data.reading import Format, existing, read_pairs, reading
from bayesneg.data.splits import Split
from bayesneg.errors import DataError, InputError


def read_split(
    train_source: Any,
    test_source: Any,
    *,
    validation: float = 0.0,
    seed: int = 0,
    user_file: str | Path | None = None,
    overlap: Literal["raise", "drop"] = "raise",
    user_column: Column | None = None,
    item_column: Column | None = None,
    rating_column: Column | None = None,
    time_column: Column | None = None,
    user_columns: Sequence[str] | None = None,
    separator: str | None = None,
    header: bool | None = None,
    min_rating: float | None = None,
    name: str | None = None,
    format: Format | None = None,
) -> Split:
    """The parts as they are given, files or frames, read with the same options as :func:`~bayesneg.data.load.load`.

    ``user_file`` is a table with a user column and what is known about each user. ``validation`` is the share of the
    training part that is set aside, drawn with ``seed``. A pair in both parts is an error, since the test part must be
    unseen; ``overlap="drop"`` takes such pairs out of the test part.
    """
    if overlap not in ("raise", "drop"):
        raise InputError(f"overlap must be 'raise' or 'drop', got {overlap!r}")
    if not 0 <= validation < 1:
        raise InputError(f"validation must be a share of at least 0 and less than 1, got {validation}")
    how = reading(
        user_column=user_column,
        item_column=item_column,
        rating_column=rating_column,
        time_column=time_column,
        user_columns=None if user_file is not None else user_columns,
        separator=separator,
        header=header,
        min_rating=min_rating,
        format=format,
    )
    train, test = read_pairs(train_source, how), read_pairs(test_source, how)
    if user_file is not None:
        table = choose(read_users(existing(user_file), user_column=user_column), user_columns, source=str(user_file))
        train = replace(train, user_table=table)
    split = _split(train, test, name=name or _name_of(train_source), overlap=overlap)
    if validation == 0:
        return split
    from bayesneg.data.splits import carve_validation

    return carve_validation(split, validation, seed=seed)


def _split(train: Pairs, test: Pairs, *, name: str, overlap: str) -> Split:
    """Numbered together, so that both parts mean the same user by the same number."""
    train.check_not_empty()
    test.check_not_empty()
    both = together(train, test, source=name)
    users, user_ids = numbered(both.users)
    items, item_ids = numbered(both.items)
    columns = columns_of(user_ids, both.user_table)

    def part(rows: slice, pairs: Pairs) -> Interactions:
        return Interactions.from_numbers(
            users[rows],
            items[rows],
            user_ids=user_ids,
            item_ids=item_ids,
            times=None if both.times is None else both.times[rows].to_numpy(),
            user_columns=columns,
            name=name,
            n_below_min_rating=pairs.n_below_min_rating,
        )

    n_train = len(train.users)
    trained, tested = part(slice(0, n_train), train), part(slice(n_train, None), test)
    return Split(train=trained, test=_unseen(trained, tested, train.source, test.source, overlap), how="given")


def _unseen(train: Interactions, test: Interactions, train_name: str, test_name: str, overlap: str) -> Interactions:
    seen = train.contains(test.users, test.indices)
    if not seen.any():
        return test
    n_seen = int(np.count_nonzero(seen))
    if overlap == "raise":
        raise DataError(
            f"{n_seen:,} of the {len(test):,} pairs in {test_name} are in {train_name} too; the test part must be "
            'unseen, so take them out of one file; in Python, overlap="drop" drops them from the test part'
        )
    if n_seen == len(test):
        raise DataError(f"{test_name}: no pair is left, all {n_seen:,} are in {train_name} too")
    kept = test.select(~seen)
    return replace(kept, n_duplicates=test.n_duplicates, n_below_min_rating=test.n_below_min_rating)


def _name_of(source: Any) -> str:
    return Path(source).stem if isinstance(source, str | Path) else "frame"
