"""The scorer that every model with an inner product ends as."""

from __future__ import annotations

import numpy as np

from bayesneg.interfaces import Embeddings


class EmbeddingScorer:
    """x_ui = w_u · h_i for vectors that no longer change, or that a learner changes in place."""

    def __init__(self, users: np.ndarray, items: np.ndarray) -> None:
        self.users, self.items = users, items  # (n_users, d), (n_items, d) float32

    @property
    def n_users(self) -> int:
        return len(self.users)

    @property
    def n_items(self) -> int:
        return len(self.items)

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run has its own message
            return np.einsum("bd,bmd->bm", self.users[users], self.items[items])

    def score_all(self, users: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return self.users[users] @ self.items.T

    def embeddings(self) -> Embeddings:
        return Embeddings(self.users, self.items)
