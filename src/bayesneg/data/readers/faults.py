"""The slow second pass over a table that cannot be read: find the first faulty line and name its fault."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import TextIO

import polars as pl

from bayesneg.data.readers.sniffing import Layout, split_line
from bayesneg.data.readers.values import as_times
from bayesneg.errors import DataError


def raise_first_fault(layout: Layout, *, rating_needed: bool) -> None:
    """Raise for the first faulty line; return if every line is fine or blank."""
    for number, fields in _rows(layout):
        fault = _fault(fields, layout, rating_needed)
        if fault:
            raise DataError(f"{layout.path} line {number}: {fault}")


def _rows(layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """The line number and fields of every row that is not blank; the bytes that are no UTF-8 become surrogates."""
    with layout.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
        if layout.quote:
            rows = _quoted_rows(stream, layout)
        else:
            rows = ((n, split_line(line.rstrip("\r\n"), layout.separator)) for n, line in enumerate(stream, 1))
        for number, fields in rows:
            blank = len(fields) <= 1 and not "".join(fields).strip()
            if number > layout.n_skipped and not blank:
                yield number, fields


def _quoted_rows(stream: TextIO, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(stream, delimiter=layout.separator, strict=True)
    number = 1  # where the row begins; a quoted field may run over several lines
    try:
        for fields in reader:
            yield number, fields
            number = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{layout.path} line {number}: a quotation mark does not fit ({error})") from error


def _fault(fields: list[str], layout: Layout, rating_needed: bool) -> str | None:
    places = layout.places
    if len(fields) != layout.n_fields:
        wrong = "too few fields" if len(fields) < layout.n_fields else "too many fields"
        return f"{wrong}, {len(fields)} where the first line has {layout.n_fields} (separated by {layout.separator!r})"
    for noun, place in (("user", places.user), ("item", places.item)):
        if not fields[place].strip():
            return f"{noun} is empty; every row needs a user and an item"
    used = [places.user, places.item, *places.user_columns.values()]
    used += [place for place in (places.rating, places.time) if place is not None]
    if any(_is_surrogate(fields[place]) for place in used):
        return "the text is not UTF-8; save the file in that encoding"
    if places.rating is not None and (fault := _rating_fault(fields[places.rating], rating_needed)):
        return fault
    if places.time is not None and not _is_time(fields[places.time]):
        return (
            f"time {fields[places.time]!r} is neither a number nor a date such as 2024-12-31; correct it, "
            'or read without times (time_column="", --time-column "")'
        )
    return None


def _rating_fault(rating: str, needed: bool) -> str | None:
    if not rating.strip():
        return "rating is empty; with min_rating every row needs one" if needed else None
    try:
        if float(rating) == float(rating):
            return None
    except ValueError:
        pass
    return f'rating {rating!r} is not a number; correct it, or drop ratings (rating_column="", --rating-column "")'


def _is_time(text: str) -> bool:
    for parse in (float, datetime.fromisoformat):  # as_times decides, but takes long for one value
        with suppress(ValueError):
            parse(text)
            return True
    return not as_times(pl.Series([text])).has_nulls()


def _is_surrogate(text: str) -> bool:
    return any("\udc80" <= letter <= "\udcff" for letter in text)
