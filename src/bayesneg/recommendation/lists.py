"""Recommendation lists that are the same for one user as for many at once.

A product of matrices may differ in the last bit with the number of its rows. So the product only finds the likely
items; these are scored pair by pair, which does not depend on other users, and ranked by that. Rounding is bounded by
γ_d · |w| · |h|: where an item outside could still belong to the list, the user's whole row is scored pair by pair.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.evaluation._topk import top_k, warn_of_nan
from bayesneg.evaluation.ranking import users_at_a_time
from bayesneg.evaluation.vectors import CatalogueScorer
from bayesneg.linear.item_models import LowRankItems
from bayesneg.models.scorers import Cold, EmbeddingScorer, LinearScorer

SPARE: Final = 16  # items beyond k that are scored pair by pair


class ItemLists(NamedTuple):
    """The best items of some users."""

    items: np.ndarray  # (B, k) int32 item numbers, best first; −1 after the last
    scores: np.ndarray  # (B, k) float32; NaN after the last


class Vectors(NamedTuple):
    """Vectors whose inner product is the score."""

    users: np.ndarray  # (B, d) float32 of the users asked for
    items: np.ndarray  # (n_items, d) float32 of the whole catalogue


def item_lists(
    scorer: CatalogueScorer,
    seen: Interactions | None,
    users: np.ndarray,
    k: int,
    *,
    allowed: np.ndarray | None = None,
) -> ItemLists:
    """The k best items of each user, by score and then by item number; NaN ranks last.

    Args:
        scorer: A trained model.
        seen: Interactions whose items are left out; None to leave out none.
        users: Numbers (B,) of the users.
        k: Length of a list.
        allowed: Numbers of the only items that may be listed, ascending; all unless given.

    Returns:
        The lists; a user with fewer items left has a shorter one.
    """
    check_length(k, scorer.n_items)
    if seen is not None and (scorer.n_users, scorer.n_items) != (seen.n_users, seen.n_items):
        raise InputError(
            f"the model scores {scorer.n_users} users and {scorer.n_items} items, "
            f"the data has {seen.n_users} and {seen.n_items}; rank with the data it was trained on"
        )
    users = np.asarray(users, dtype=np.int64)
    items = np.full((len(users), k), -1, dtype=np.int32)
    scores = np.full((len(users), k), np.nan, dtype=np.float32)
    n_columns = scorer.n_items if allowed is None else len(allowed)
    width = min(k, n_columns)
    catalogue = None
    for start in range(0, len(users), users_at_a_time(scorer.n_items)) if width else ():
        rows = slice(start, start + users_at_a_time(scorer.n_items))
        masked = _masked(seen, users[rows], allowed)
        found = _vectors(scorer, users[rows])
        if found is None:
            lists = _by_rows(scorer, users[rows], masked, width, allowed)
        else:
            if catalogue is None:  # taken once
                catalogue = np.ascontiguousarray(found.items if allowed is None else found.items[allowed])
            lists = _by_vectors(np.ascontiguousarray(found.users), catalogue, masked, width)
            if (cold := is_cold(scorer, users[rows])).any():  # their scores are not those of their vectors
                some = users[rows][cold]
                popular = _by_rows(scorer, some, _masked(seen, some, allowed), width, allowed)
                lists.items[cold], lists.scores[cold] = popular
        numbers = lists.items if allowed is None else np.append(allowed, -1)[lists.items]
        items[rows, :width], scores[rows, :width] = numbers, lists.scores
    return ItemLists(items, scores)


def check_length(k: int, n_items: int, noun: str = "items") -> None:
    """An error unless a list of ``k`` items can be made of the catalogue; ``noun`` is what it lists."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputError(f"k must be a whole number, got {k!r}")
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    if k > n_items:
        raise InputError(f"k must be at most the number of {noun} {n_items}, got {k}")


def _vectors(scorer: CatalogueScorer, users: np.ndarray) -> Vectors | None:
    """Vectors whose inner products are the scores; None for a model without."""
    if isinstance(scorer, EmbeddingScorer):
        return Vectors(scorer.users[users], scorer.items)
    if isinstance(scorer, LinearScorer) and isinstance(scorer.model, LowRankItems):
        return Vectors(scorer.model.user_vectors(scorer.train, users), scorer.model.item_vectors)
    return None


def cold_of(scorer: CatalogueScorer) -> Cold | None:
    """The users and items that a model has learned nothing about; None where there are none, or it does not say."""
    return scorer.cold if isinstance(scorer, EmbeddingScorer | LinearScorer) else None


def is_cold(scorer: CatalogueScorer, users: np.ndarray) -> np.ndarray:
    """True (B,) for users who are ranked by popularity."""
    cold = cold_of(scorer)
    return np.zeros(len(users), dtype=bool) if cold is None else cold.users[users]


class Masked(NamedTuple):
    """The columns that are left out of each row, as CSR."""

    indptr: np.ndarray  # (B + 1,) int64
    indices: np.ndarray  # int32


def _masked(seen: Interactions | None, users: np.ndarray, allowed: np.ndarray | None) -> Masked:
    """The columns of seen items, where columns are the allowed items."""
    if seen is None:
        return Masked(np.zeros(len(users) + 1, dtype=np.int64), np.empty(0, dtype=np.int32))
    rows = [seen.row(user) for user in users.tolist()]
    if allowed is not None:
        columns = np.full(seen.n_items, -1, dtype=np.int32)
        columns[allowed] = np.arange(len(allowed), dtype=np.int32)
        rows = [places[places >= 0] for places in (columns[row] for row in rows)]
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Masked(ends, np.concatenate(rows).astype(np.int32) if rows else np.empty(0, dtype=np.int32))


def _by_rows(
    scorer: CatalogueScorer, users: np.ndarray, masked: Masked, k: int, allowed: np.ndarray | None
) -> ItemLists:
    """One user's scores at a time: a row never depends on the others."""
    columns = slice(None) if allowed is None else allowed
    scores = np.empty((len(users), scorer.n_items if allowed is None else len(allowed)), dtype=np.float32)
    for place in range(len(users)):
        scores[place] = scorer.score_all(users[place : place + 1])[0][columns]
    warn_of_nan(scores)
    items = top_k(scores, np.arange(len(users)), *masked, k)
    return ItemLists(items, _taken(scores, items))


def _by_vectors(users: np.ndarray, catalogue: np.ndarray, masked: Masked, k: int) -> ItemLists:
    from bayesneg.linear.scoring import products

    rows = np.arange(len(users))
    rough = users @ catalogue.T  # (B, n)
    warn_of_nan(rough)
    wide = min(k + SPARE, rough.shape[1])
    likely = top_k(rough, rows, *masked, wide)  # (B, k + SPARE)
    exact = np.full(likely.shape, -np.inf, dtype=np.float32)
    listed = likely >= 0
    exact[listed] = products(users, catalogue, np.repeat(rows, wide)[listed.ravel()], likely[listed])
    order = np.lexsort((likely, -exact, ~listed))[:, :k]  # unlisted ones last
    items, scores = np.take_along_axis(likely, order, axis=1), np.take_along_axis(exact, order, axis=1)
    scores[items < 0] = np.nan
    for place in np.flatnonzero(_uncertain(users, catalogue, rough, likely, scores)):
        whole_row = products(users, catalogue, np.full(len(catalogue), place), np.arange(len(catalogue)))[None]
        own = masked.indptr[place : place + 2] - masked.indptr[place]
        hidden = masked.indices[masked.indptr[place] : masked.indptr[place + 1]]
        items[place] = top_k(whole_row, np.zeros(1, dtype=np.int64), own, hidden, k)[0]
        scores[place] = _taken(whole_row, items[place : place + 1])[0]
    return ItemLists(items, scores)


def _uncertain(
    users: np.ndarray, catalogue: np.ndarray, rough: np.ndarray, likely: np.ndarray, scores: np.ndarray
) -> np.ndarray:
    """True (B,) where an item outside of the likely ones could have the score of the last listed one."""
    if likely.shape[1] == len(catalogue):
        return np.zeros(len(users), dtype=bool)
    depth = catalogue.shape[1] * np.finfo(np.float32).eps  # twice γ_d: once for each of the two sums
    longest = np.sqrt(np.max(np.einsum("nd,nd->n", catalogue, catalogue)))
    margin = depth * longest * np.linalg.norm(users, axis=1) * 1.001
    best_outside = _taken(rough, likely[:, -1:])[:, 0]
    return (likely[:, -1] >= 0) & ~(scores[:, -1] > best_outside + margin)


def _taken(scores: np.ndarray, items: np.ndarray) -> np.ndarray:
    """The scores of listed items, NaN where there is none."""
    found = np.take_along_axis(scores, np.maximum(items, 0), axis=1)
    found[items < 0] = np.nan
    return found
