"""Which items may be recommended: not those already seen, not those excluded, or only some."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bayesneg.data.identifiers import Unknown, check_identifier, find, numbers_of
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.errors import InputError


def seen_by(split: Split, *, include_seen: bool, include_held_out: bool) -> Interactions | None:
    """The interactions whose items are left out: everything known, the training part, or nothing."""
    if include_seen:
        return None
    return split.train if include_held_out else split.known


def allowed_items(
    data: Interactions, exclude: Iterable[Any] | None, only: Iterable[Any] | None, *, unknown: Unknown = "error"
) -> np.ndarray | None:
    """Numbers of the items that may be recommended, ascending; None where all may.

    Args:
        data: The data that knows the items.
        exclude: Identifiers of items to leave out; unknown ones are never recommended anyway.
        only: Identifiers of the only items to recommend.
        unknown: Whether an unknown item in ``only`` is an error or is skipped.
    """
    if exclude is None and only is None:
        return None
    allowed = np.ones(data.n_items, dtype=bool)
    if only is not None:
        wanted, _ = numbers_of(only, data.numbers_of_items, argument="only", noun="item", unknown=unknown)
        allowed[:] = False
        allowed[wanted] = True
    if exclude is not None:
        if isinstance(exclude, str | bytes) or not isinstance(exclude, Iterable):
            raise InputError(f"exclude must be several identifiers of items, got {exclude!r:.60}")
        for item in exclude:
            check_identifier(item, data.numbers_of_items, "item")
            number = find(item, data.numbers_of_items)
            if number is not None:
                allowed[number] = False
    if not allowed.any():
        raise InputError("exclude leaves no item to recommend; exclude fewer items, or allow more with only")
    return np.flatnonzero(allowed)
