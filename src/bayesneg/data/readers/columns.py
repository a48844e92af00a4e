"""Which column is the user, the item, the rating and the time: guessed from common names, or as given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bayesneg.errors import DataError, InputError

Column = str | int  # a name, or a position from 0

# In order of preference; compared in lower case without spaces, dashes and underscores.
_NAMES = {
    "user": (
        "userid user uid u customerid customer visitorid visitor memberid member reviewerid reviewer accountid account "
        "clientid client buyerid buyer personid person profileid profile username usersha1 sessionid session"
    ),
    "item": (
        "itemid item iid i movieid movie productid product videoid video songid song trackid track artistid artist "
        "albumid album bookid book isbn businessid business asin parentasin articleid article newsid news sku gameid "
        "game appid app poiid poi venueid venue locationid location recipeid recipe hotelid hotel courseid course"
    ),
    "rating": "rating ratings score stars star overall rate ratingvalue ratingscore preference watchratio",
    "time": (
        "timestamp time ts datetime date unixtime unixtimestamp unixreviewtime reviewtime createdat eventtime ratedat"
    ),
}
KNOWN_NAMES = {role: tuple(names.split()) for role, names in _NAMES.items()}
POSITIONS = {"user": 0, "item": 1, "rating": 2, "time": 3}  # of a file without a header
_TYPED = re.compile(r":(token|token_seq|float|float_seq)$")  # RecBole writes user_id:token


@dataclass(frozen=True)
class Columns:
    """The columns that the caller gave; None means guess, and "" means that there is no such column."""

    user: Column | None = None
    item: Column | None = None
    rating: Column | None = None
    time: Column | None = None
    user_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnPositions:
    """The positions of the columns, from 0."""

    user: int
    item: int
    rating: int | None
    time: int | None
    user_columns: dict[str, int]


def plain(name: str) -> str:
    """A header's name without RecBole's type."""
    return _TYPED.sub("", name.strip())


def is_header(fields: Sequence[str], wanted: Columns) -> bool:
    """Whether a first line names a user or an item, or holds a name the caller gave."""
    given = {simple(column) for column in (wanted.user, wanted.item) if isinstance(column, str) and column}
    names = {simple(field) for field in fields}
    return bool(names & (given | {*KNOWN_NAMES["user"], *KNOWN_NAMES["item"]}))


def find(names: Sequence[str], wanted: Columns, *, source: str) -> ColumnPositions:
    """The places of the columns among named ones; a name that is not there is an error that lists those that are."""
    places = ColumnPositions(
        user=_needed(names, "user", wanted.user, source),
        item=_needed(names, "item", wanted.item, source),
        rating=_optional(names, "rating", wanted.rating, source),
        time=_optional(names, "time", wanted.time, source),
        user_columns={name: _given_column(names, "user_columns", name, source) for name in wanted.user_columns},
    )
    return _checked(places, source)


def find_by_position(n_fields: int, wanted: Columns, *, source: str) -> ColumnPositions:
    """User, item, rating and time in this order, as far as there are columns, or at the positions the caller gave."""
    numbers = [str(position) for position in range(n_fields)]
    if n_fields < 2:
        raise DataError(
            f"{source} line 1: one field only; every row needs a user and an item (set the separator if it was missed)"
        )
    taken = {column for column in (wanted.user, wanted.item) if column is not None}

    def place(role: str, column: Column | None) -> int | None:
        if column is None:
            position = POSITIONS[role]
            return position if position < n_fields and position not in taken else None
        return None if column == "" else _given_column(numbers, f"{role}_column", column, source)

    user, item = place("user", wanted.user), place("item", wanted.item)
    if user is None or item is None:
        raise InputError(f"{source}: give both user_column and item_column for a file without a header")
    user_columns = {name: _given_column(numbers, "user_columns", name, source) for name in wanted.user_columns}
    return _checked(
        ColumnPositions(user, item, place("rating", wanted.rating), place("time", wanted.time), user_columns), source
    )


def simple(name: str) -> str:
    """A name as it is compared: no RecBole type, no case, no spaces, dashes or underscores."""
    return re.sub(r"[\s_\-.]", "", plain(name).lower())


def _needed(names: Sequence[str], role: str, column: Column | None, source: str) -> int:
    place = _optional(names, role, column, source)
    if place is None:
        raise DataError(
            f"{source}: no {role} column was recognized among {', '.join(map(repr, names))}; name it with "
            f"{role}_column (--{role}-column), or set header=False (--no-header) if the first line is data"
        )
    return place


def _optional(names: Sequence[str], role: str, column: Column | None, source: str) -> int | None:
    if column == "":
        return None
    if column is not None:
        return _given_column(names, f"{role}_column", column, source)
    found = [simple(name) for name in names]
    return next((found.index(known) for known in KNOWN_NAMES[role] if known in found), None)


def _given_column(names: Sequence[str], argument: str, column: Column, source: str) -> int:
    if isinstance(column, str):
        for form in (str, plain, simple):
            matches = [place for place, name in enumerate(names) if form(name) == form(column)]
            if matches:
                return matches[0]
    position = int(column) if isinstance(column, int) or column.isdecimal() else -1
    if 0 <= position < len(names):
        return position
    raise InputError(f"{argument}: {source} has no column {column!r}; its columns are {', '.join(map(repr, names))}")


def _checked(places: ColumnPositions, source: str) -> ColumnPositions:
    if places.user == places.item:
        raise InputError(f"{source}: user_column and item_column are the same column; they must differ")
    return places
