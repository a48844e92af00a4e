"""A user or an item that training has not seen, as a model would see it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Scorer
from bayesneg.models.scorers import EmbeddingScorer, LinearScorer
from bayesneg.recommendation.fold_in import FoldsIn
from bayesneg.recommendation.lists import ItemLists, check_length, item_lists
from bayesneg.recommendation.restrictions import allowed_items
from bayesneg.recommendation.similar import history_of, nearest_items


@dataclass(frozen=True, eq=False)
class NewUser:
    """A user whom training has not seen, folded in; :meth:`bayesneg.Run.fold_in` gives one.

    Args:
        items: Identifiers of the user's items that the model knows.
        unknown: Identifiers of those that it does not know, which had no effect.
        vector: The user's vector (d,) float32; None for an item model, which has none.
        scorer: Scores of this one user, number 0.
        history: The items as interactions of this one user.
    """

    items: Sequence[Any]
    unknown: Sequence[Any]
    vector: np.ndarray | None
    scorer: Scorer
    history: Interactions

    def __repr__(self) -> str:
        unknown = f", {len(self.unknown):,} unknown" if self.unknown else ""
        return f"NewUser({len(self.items):,} items{unknown})"

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
        vector: The item's vector (d,) float32.
        scorer: The trained model.
        train: The training interactions.
        model: The name of the model, for errors.
    """

    users: Sequence[Any]
    unknown: Sequence[Any]
    vector: np.ndarray
    scorer: EmbeddingScorer
    train: Interactions
    model: str = "this model"

    def __repr__(self) -> str:
        unknown = f", {len(self.unknown):,} unknown" if self.unknown else ""
        return f"NewItem({len(self.users):,} users{unknown})"

    def similar(self, k: int = 10) -> list[tuple[Any, float]]:
        """The known items that are most similar to the new one.

        Args:
            k: How many items.

        Returns:
            Pairs of raw item identifier and cosine, best first.
        """
        return pairs(nearest_items(self.scorer.items, self.vector, None, k, model=self.model), self.train.item_ids)

    def recommend_to(self, k: int = 10) -> list[tuple[Any, float]]:
        """The users with the highest scores for the new item, those whom it was folded in with left out.

        Args:
            k: How many users.

        Returns:
            Pairs of raw user identifier and score, best first.
        """
        if k > self.train.n_users:
            raise InputError(f"k must be at most the number of users {self.train.n_users}, got {k}")
        check_length(k, self.train.n_users)
        numbers = [self.train.user_number(user) for user in self.users]
        known = Interactions(
            indptr=np.array([0, len(numbers)], dtype=np.int64),
            indices=np.sort(numbers).astype(np.int32),
            user_ids=np.zeros(1, dtype=np.int64),
            item_ids=self.train.user_ids,
        )
        turned = EmbeddingScorer(self.vector[None], self.scorer.users)  # the item as a user of users
        return pairs(item_lists(turned, known, np.zeros(1, dtype=np.int64), k), self.train.user_ids)


def new_user(
    scorer: Scorer, train: Interactions, items: np.ndarray, unknown: Sequence[Any], fold: FoldsIn | None
) -> NewUser:
    """A user with these items (n,); ``fold`` gives a vector, and is None for an item model."""
    history = history_of(train, items)
    ids = [plain(train.item_ids[item]) for item in items]
    if fold is not None and isinstance(scorer, EmbeddingScorer):
        vector = fold.vector(history.indices)
        return NewUser(ids, unknown, vector, EmbeddingScorer(vector[None], scorer.items), history)
    if isinstance(scorer, LinearScorer):
        return NewUser(ids, unknown, None, LinearScorer(scorer.model, history), history)
    raise InputError(
        "this model gives scores and no vectors, so a new user cannot be folded in; train it again with the user's "
        "items, or train a model with vectors (MF, LightGCN) or an item model (EASE, ItemKNN)"
    )


def pairs(lists: ItemLists, ids: np.ndarray) -> list[tuple[Any, float]]:
    """The first list as raw identifiers and scores."""
    listed = zip(lists.items[0], lists.scores[0], strict=True)
    return [(plain(ids[item]), float(score)) for item, score in listed if item >= 0]


def plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    return value.item() if isinstance(value, np.generic) else value
