"""Vectors of users and items as a scorer: the inner product."""

from __future__ import annotations

import numpy as np

from bayesneg.interfaces.sampling import Embeddings


class InnerProducts:
    """x_ui = w_u · h_i.

    Args:
        users: Vectors of the users (n_users, d) float32, which a learner may change in place.
        items: Vectors of the items (n_items, d) float32.
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
