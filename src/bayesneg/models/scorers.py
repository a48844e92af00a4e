"""Trained models as scorers: an inner product of embeddings, or a linear item model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Embeddings
from bayesneg.kernels.reference.formulas import SHORTEST_UNIT
from bayesneg.linear.item_models import ItemModel


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Embeddings (n, d) divided by their norms, so that inner products are cosines.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(norms, vectors.dtype.type(SHORTEST_UNIT))


class Fallback(NamedTuple):
    """The scores of users about whom nothing could be learned."""

    is_cold: np.ndarray  # (n_users,) bool, without a training interaction
    scores: np.ndarray  # (n_items,) float32, the same for all of them: popularity

    def put(self, scores: np.ndarray, users: np.ndarray, items: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The scores (B, m) of ``users`` (B,), in the rows of cold users those of the ``items``, all unless given."""
        cold = self.is_cold[users]
        if cold.any():
            scores[cold] = self.scores[items[cold] if isinstance(items, np.ndarray) else items]
        return scores


def popular_for_cold(train: Interactions) -> Fallback | None:
    """Popularity for users without a training interaction; None where every user has one."""
    is_cold = train.counts == 0
    return Fallback(is_cold, train.popularity.astype(np.float32)) if is_cold.any() else None


class EmbeddingScorer:
    """x_ui = w_u · h_i.

    Args:
        users: The users' embeddings (n_users, d) float32, which a learner may change in place.
        items: The items' embeddings (n_items, d) float32.
        fallback: Scores of cold users in place of those of their embeddings.
    """

    def __init__(self, users: np.ndarray, items: np.ndarray, *, fallback: Fallback | None = None) -> None:
        self.users, self.items, self.fallback = users, items, fallback

    @property
    def n_users(self) -> int:
        return len(self.users)

    @property
    def n_items(self) -> int:
        return len(self.items)

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run raises a separate error
            found = np.einsum("bd,bmd->bm", self.users[users], self.items[items])
        return found if self.fallback is None else self.fallback.put(found, users, items)

    def score_all(self, users: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.users[users] @ self.items.T
        return found if self.fallback is None else self.fallback.put(found, users)

    def embeddings(self) -> Embeddings:
        return Embeddings(self.users, self.items)


class LinearScorer:
    """x_ul = Σ_{i ∈ I_u} B_il over the user's training items; popularity for users without any.

    Args:
        model: The item–item weights B.
        train: The training interactions.
    """

    def __init__(self, model: ItemModel, train: Interactions) -> None:
        self.model, self.train, self.fallback = model, train, popular_for_cold(train)

    @property
    def n_users(self) -> int:
        return self.train.n_users

    @property
    def n_items(self) -> int:
        return self.train.n_items

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        pairs = np.broadcast_to(users[:, None], items.shape)
        found = self.model.pairs(self.train, pairs.ravel(), items.ravel()).reshape(items.shape)
        return found if self.fallback is None else self.fallback.put(found, users, items)

    def score_all(self, users: np.ndarray) -> np.ndarray:
        found = self.model.rows(self.train, users)
        return found if self.fallback is None else self.fallback.put(found, users)

    def embeddings(self) -> Embeddings:
        raise InputError("a linear item model gives scores and no vectors of users and items")
