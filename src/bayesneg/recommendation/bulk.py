"""Recommendations for many users as frames, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.evaluation.ranking import users_at_a_time
from bayesneg.evaluation.vectors import CatalogueScorer
from bayesneg.interfaces import RanksInParts
from bayesneg.recommendation.lists import ItemLists, check_length, item_lists

if TYPE_CHECKING:
    import polars as pl

ROWS: Final = 1 << 18  # of a frame, about


def frames(
    scorer: CatalogueScorer,
    data: Interactions,
    seen: Interactions | None,
    users: np.ndarray,
    k: int,
    *,
    allowed: np.ndarray | None = None,
) -> Iterator[pl.DataFrame]:
    """Frames of the columns user, rank, item and score, a bounded number of rows each; no users give none.

    Args:
        scorer: A trained model.
        data: The interactions that know the identifiers.
        seen: Interactions whose items are left out; None to leave out none.
        users: Numbers (B,) of the users.
        k: Length of a list.
        allowed: Numbers of the only items that may be listed, ascending; all unless given.
    """
    check_length(k, scorer.n_items)
    step = max(users_at_a_time(scorer.n_items), ROWS // k)
    user_ids, item_ids = identifiers(data.user_ids), identifiers(data.item_ids)
    if isinstance(scorer, RanksInParts):  # each process has the lists of its users
        if allowed is not None:
            raise InputError("exclude and only restrict the catalogue of one process; leave them out with torchrun")
        users = np.sort(users)
        users = users[scorer.own_part(users)]
        n = scorer.rounds(max(1, -(-len(users) // step)))
    else:
        n = -(-len(users) // step)
    for start in range(0, n * step, step):
        part = users[start : start + step]
        if isinstance(scorer, RanksInParts):
            lists = ItemLists(*scorer.top(part, seen, k))
        else:
            lists = item_lists(scorer, seen, part, k, allowed=allowed)
        yield as_frame(lists, user_ids.gather(part), item_ids)


def as_frame(lists: ItemLists, user_ids: pl.Series, item_ids: pl.Series) -> pl.DataFrame:
    """One row per user and item, in the order of the users, best first.

    Args:
        lists: The lists of B users.
        user_ids: Their identifiers (B,).
        item_ids: The identifiers (n_items,) of the catalogue.
    """
    import polars as pl

    listed = lists.items >= 0
    ranks = np.broadcast_to(np.arange(1, lists.items.shape[1] + 1, dtype=np.int32), lists.items.shape)
    return pl.DataFrame(
        {
            "user": user_ids.gather(np.repeat(np.arange(len(listed)), listed.sum(axis=1))),
            "rank": ranks[listed],
            "item": item_ids.gather(lists.items[listed]),
            "score": lists.scores[listed],
        }
    )


def identifiers(ids: np.ndarray) -> pl.Series:
    """Raw identifiers as integers or text, the type of the data."""
    import polars as pl

    return pl.Series(ids if ids.dtype.kind in "iu" else ids.tolist())
