"""A user or an item that training has not seen, as a model would see it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesneg.data.identifiers import plain
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Scorer
from bayesneg.models.scorers import EmbeddingScorer, LinearScorer
from bayesneg.recommendation.fold_in import FoldsIn
from bayesneg.recommendation.lists import ItemLists, check_length, cold_of, item_lists
from bayesneg.recommendation.restrictions import allowed_items
from bayesneg.recommendation.similar import history_of, nearest_items


@dataclass(frozen=True, eq=False)
class NewUser:
    """A user whom training has not seen, folded in; :meth:`bayesneg.Run.fold_in` gives one.

    Args:
        items: Identifiers of the user's items that the model knows.
        unknown: Identifiers of those that it does not know, which had no effect.
        untrained: Identifiers of those without a training interaction, which had no effect and are not recommended.
        vector: The user's vector (d,) float32; None for an item model, which has none.
        scorer: Scores of this one user, number 0.
        history: The items as interactions of this one user.
    """

    items: Sequence[Any]
    unknown: Sequence[Any]
    untrained: Sequence[Any]
    vector: np.ndarray | None
    scorer: Scorer
    history: Interactions

    def __repr__(self) -> str:
        return f"NewUser({len(self.items):,} items{_without_effect(self)})"

    def recommend(
        self,
        *,
        k: int = 10,
        exclude: Iterable[Any] | None = None,
        only: Iterable[Any] | None = None,
        include_seen: bool = False,
    ) -> list[tuple[Any, float]]:
        """The highest-scored items for the new user.

        Args:
            k: How many items.
            exclude: Identifiers of items that are never recommended.
            only: Identifiers of the only items that may be recommended.
            include_seen: Also recommend the items that the user was folded in with.

        Returns:
            Pairs of raw item identifier and score, best first; fewer than ``k`` where no more are left.
        """
        allowed = allowed_items(self.history, exclude, only)
        seen = None if include_seen else self.history
        found = item_lists(self.scorer, seen, np.zeros(1, dtype=np.int64), k, allowed=allowed)
        return pairs(found, self.history.item_ids)


@dataclass(frozen=True, eq=False)
class NewItem:
    """An item that training has not seen, folded in; :meth:`bayesneg.Run.fold_in` gives one.

    Args:
        users: Identifiers of the item's users that the model knows.
        unknown: Identifiers of those that it does not know, which had no effect.
        untrained: Identifiers of those without a training interaction, which had no effect.
        vector: The item's vector (d,) float32.
        scorer: The trained model.
        train: The training interactions.
        model: The name of the model, for errors.
    """

    users: Sequence[Any]
    unknown: Sequence[Any]
    untrained: Sequence[Any]
    vector: np.ndarray
    scorer: EmbeddingScorer
    train: Interactions
    model: str = "this model"

    def __repr__(self) -> str:
        return f"NewItem({len(self.users):,} users{_without_effect(self)})"

    def similar(self, k: int = 10) -> list[tuple[Any, float]]:
        """The known items that are most similar to the new one.

        Args:
            k: How many items.

        Returns:
            Pairs of raw item identifier and cosine, best first.
        """
        return pairs(nearest_items(self.scorer, self.vector, None, k, model=self.model), self.train.item_ids)

    def recommend_to(self, k: int = 10) -> list[tuple[Any, float]]:
        """The users with the highest scores for the new item.

        Those whom it was folded in with are left out, and those about whom nothing was learned.

        Args:
            k: How many users.

        Returns:
            Pairs of raw user identifier and score, best first.
        """
        check_length(k, self.train.n_users, "users")
        numbers = np.array([self.train.user_number(user) for user in self.users], dtype=np.int32)
        if self.scorer.cold is not None:
            numbers = np.union1d(numbers, np.flatnonzero(self.scorer.cold.users).astype(np.int32))
        known = Interactions(
            indptr=np.array([0, len(numbers)], dtype=np.int64),
            indices=np.sort(numbers),
            user_ids=np.zeros(1, dtype=np.int64),
            item_ids=self.train.user_ids,
        )
        turned = EmbeddingScorer(self.vector[None], self.scorer.users)  # the item as a user of users
        return pairs(item_lists(turned, known, np.zeros(1, dtype=np.int64), k), self.train.user_ids)


def new_user(
    scorer: Scorer, train: Interactions, items: np.ndarray, unknown: Sequence[Any], fold: FoldsIn | None
) -> NewUser:
    """A user with these items (n,); ``fold`` gives a vector, and is None for an item model."""
    cold = cold_of(scorer)
    learned, untrained = _sorted_out(items, None if cold is None else cold.items, train.item_ids, "item")
    whole, history = history_of(train, items), history_of(train, learned)
    ids = [plain(train.item_ids[item]) for item in learned]
    if fold is not None and isinstance(scorer, EmbeddingScorer):
        vector = fold.vector(history.indices)
        return NewUser(ids, unknown, untrained, vector, EmbeddingScorer(vector[None], scorer.items), whole)
    if isinstance(scorer, LinearScorer):
        return NewUser(ids, unknown, untrained, None, LinearScorer(scorer.model, history), whole)
    raise InputError(
        "this model gives scores and no vectors, so a new user cannot be folded in; train it again with the user's "
        "items, or train a model with vectors (MF, LightGCN) or an item model (EASE, ItemKNN)"
    )


def new_item(
    scorer: EmbeddingScorer, train: Interactions, users: np.ndarray, unknown: Sequence[Any], fold: FoldsIn, model: str
) -> NewItem:
    """An item with these users (n,); ``model`` is the name of the model, for errors."""
    cold = None if scorer.cold is None else scorer.cold.users
    learned, untrained = _sorted_out(users, cold, train.user_ids, "user")
    ids = [plain(train.user_ids[user]) for user in learned]
    return NewItem(ids, unknown, untrained, fold.vector(learned), scorer, train, model)


def _sorted_out(
    numbers: np.ndarray, cold: np.ndarray | None, ids: np.ndarray, noun: str
) -> tuple[np.ndarray, list[Any]]:
    """The numbers of those that training has learned about, and the identifiers of the others."""
    if cold is None or not cold[numbers].any():
        return numbers, []
    untrained = [plain(each) for each in ids[numbers[cold[numbers]]]]
    if len(untrained) == len(numbers):
        which = f"{noun} {untrained[0]!r} has" if len(untrained) == 1 else f"the {len(untrained):,} {noun}s have"
        raise InputError(
            f"{which} no training interaction, so there is nothing to fold in; give at least one {noun} that has some, "
            "or train on data in which it has (--final trains on all)"
        )
    return numbers[~cold[numbers]], untrained


def _without_effect(newcomer: NewUser | NewItem) -> str:
    """``, 2 unknown, 1 untrained``."""
    counts = {"unknown": len(newcomer.unknown), "untrained": len(newcomer.untrained)}
    return "".join(f", {n:,} {name}" for name, n in counts.items() if n)


def pairs(lists: ItemLists, ids: np.ndarray) -> list[tuple[Any, float]]:
    """The first list as raw identifiers and scores."""
    listed = zip(lists.items[0], lists.scores[0], strict=True)
    return [(plain(ids[item]), float(score)) for item, score in listed if item >= 0]
