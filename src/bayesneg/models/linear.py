"""The scorer that a linear item model ends as."""

from __future__ import annotations

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Embeddings
from bayesneg.linear.item_models import ItemModel


class LinearScorer:
    """x_ul = Σ_{i ∈ I_u} B_il over what the user chose in training."""

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
