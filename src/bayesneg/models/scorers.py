"""Trained models as scorers: an inner product of embeddings, or a linear item model."""

from __future__ import annotations

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


class EmbeddingScorer:
    """x_ui = w_u · h_i.

    Args:
        users: The users' embeddings (n_users, d) float32, which a learner may change in place.
        items: The items' embeddings (n_items, d) float32.
    """

    def __init__(self, users: np.ndarray, items: np.ndarray) -> None:
        self.users, self.items = users, items

    @property
    def n_users(self) -> int:
        return len(self.users)

    @property
    def n_items(self) -> int:
        return len(self.items)

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run raises a separate error
            return np.einsum("bd,bmd->bm", self.users[users], self.items[items])

    def score_all(self, users: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return self.users[users] @ self.items.T

    def embeddings(self) -> Embeddings:
        return Embeddings(self.users, self.items)


class LinearScorer:
    """x_ul = Σ_{i ∈ I_u} B_il over the user's training items.

    Args:
        model: The item–item weights B.
        train: The training interactions.
    """

    def __init__(self, model: ItemModel, train: Interactions) -> None:
        self.model, self.train = model, train

    @property
    def n_users(self) -> int:
        return self.train.n_users

    @property
    def n_items(self) -> int:
        return self.train.n_items

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        pairs = np.broadcast_to(users[:, None], items.shape)
        return self.model.pairs(self.train, pairs.ravel(), items.ravel()).reshape(items.shape)

    def score_all(self, users: np.ndarray) -> np.ndarray:
        return self.model.rows(self.train, users)

    def embeddings(self) -> Embeddings:
        raise InputError("a linear item model gives scores and no vectors of users and items")
