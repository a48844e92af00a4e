"""Trained models as scorers: an inner product of embeddings, or a linear item model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Embeddings, InnerProducts
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


class Cold(NamedTuple):
    """Users and items about whom nothing was learned."""

    users: np.ndarray  # (n_users,) bool
    items: np.ndarray  # (n_items,) bool
    popularity: np.ndarray  # (n_items,) float32, the scores of every cold user

    def put(self, scores: np.ndarray, users: np.ndarray, items: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The scores (B, m) of ``users`` (B,), in the rows of cold users those of the ``items``, all unless given."""
        cold = self.users[users]
        if cold.any():
            scores[cold] = self.popularity[items[cold] if isinstance(items, np.ndarray) else items]
        return scores


def cold_in(train: Interactions, known: tuple[np.ndarray, np.ndarray] | None = None) -> Cold | None:
    """Users and items without a training interaction; None where each has one.

    Args:
        train: The training interactions.
        known: True (n_users,) and (n_items,) for those whom an earlier run has learned about.
    """
    users, items = train.counts == 0, train.popularity == 0
    if known is not None:
        users, items = users & ~known[0], items & ~known[1]
    return Cold(users, items, train.popularity.astype(np.float32)) if users.any() or items.any() else None


class EmbeddingScorer(InnerProducts):
    """x_ui = w_u · h_i; popularity for cold users.

    Args:
        users: The users' embeddings (n_users, d) float32, which a learner may change in place.
        items: The items' embeddings (n_items, d) float32.
        cold: Users and items whose embeddings say nothing; None where there are none.
    """

    def __init__(self, users: np.ndarray, items: np.ndarray, *, cold: Cold | None = None) -> None:
        super().__init__(users, items)
        self.cold = cold

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        found = super().score(users, items)
        return found if self.cold is None else self.cold.put(found, users, items)

    def score_all(self, users: np.ndarray) -> np.ndarray:
        found = super().score_all(users)
        return found if self.cold is None else self.cold.put(found, users)


class LinearScorer:
    """x_ul = Σ_{i ∈ I_u} B_il over the user's training items; popularity for users without any.

    Args:
        model: The item–item weights B.
        train: The training interactions.
    """

    def __init__(self, model: ItemModel, train: Interactions) -> None:
        self.model, self.train, self.cold = model, train, cold_in(train)

    @property
    def n_users(self) -> int:
        return self.train.n_users

    @property
    def n_items(self) -> int:
        return self.train.n_items

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        pairs = np.broadcast_to(users[:, None], items.shape)
        found = self.model.pairs(self.train, pairs.ravel(), items.ravel()).reshape(items.shape)
        return found if self.cold is None else self.cold.put(found, users, items)

    def score_all(self, users: np.ndarray) -> np.ndarray:
        found = self.model.rows(self.train, users)
        return found if self.cold is None else self.cold.put(found, users)

    def embeddings(self) -> Embeddings:
        raise InputError("a linear item model gives scores and no vectors of users and items")
