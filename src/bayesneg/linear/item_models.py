"""Item models: x_ul = Σ_{i ∈ I_u} B_il, in four ways of holding B; and w_u · h_l, with vectors of users too.

The diagonal of B is 0. That of a product of narrow or sparse matrices is not, which matters only for the scores of
items that the user has already interacted with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.integrity.arrays import ArraySpec, Specs, check_arrays
from bayesneg.linear.matrices import by_item, power_or_zero

VECTORS: dict[str, ArraySpec] = {
    "input_vectors": ArraySpec(("items", "dim")),
    "item_vectors": ArraySpec(("items", "dim")),
}


@dataclass(frozen=True, eq=False)
class ItemModel(ABC):
    """Scores from the items in a user's history."""

    kind: ClassVar[str]
    specs: ClassVar[Specs]  # of the arrays in a file
    rows_are_pairs: ClassVar[bool] = True  # to the bit

    @property
    @abstractmethod
    def n_items(self) -> int: ...

    def rows(self, history: Interactions, users: np.ndarray) -> np.ndarray:
        """Scores (B, n_items) float32 of every item for users (B,), from their ``history``."""
        _check("users", users, history.n_users)
        return self._rows(history, users)

    def pairs(self, history: Interactions, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Scores (P,) float32 of pairs (P,)."""
        _check("users", users, history.n_users)
        _check("items", items, self.n_items)
        return self._pairs(history, users, items)

    @abstractmethod
    def _rows(self, history: Interactions, users: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _pairs(self, history: Interactions, users: np.ndarray, items: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Everything there is to it, for a file."""


@dataclass(frozen=True, eq=False)
class DenseItems(ItemModel):
    """B as a whole: memory grows with the square of the catalogue."""

    weights: np.ndarray  # (n_items, n_items) float32
    kind: ClassVar[str] = "dense"
    specs: ClassVar[Specs] = {"weights": ArraySpec(("items", "items"))}

    @property
    def n_items(self) -> int:
        return len(self.weights)

    def _rows(self, history: Interactions, users: np.ndarray) -> np.ndarray:
        from bayesneg.linear import scoring

        return scoring.dense_rows(self.weights, history.indptr, history.indices, users)

    def _pairs(self, history: Interactions, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        from bayesneg.linear import scoring

        return scoring.dense_pairs(self.weights, history.indptr, history.indices, users, items)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"weights": self.weights}


@dataclass(frozen=True, eq=False)
class NeighbourItems(ItemModel):
    """Of each column of B the few entries that matter: memory grows with items times neighbours."""

    starts: np.ndarray  # (n_items + 1,) int64
    neighbours: np.ndarray  # (n,) int32, those of item l at starts[l] … starts[l + 1], ascending
    weights: np.ndarray  # (n,) float32
    kind: ClassVar[str] = "neighbours"
    specs: ClassVar[Specs] = {
        "starts": ArraySpec(("items + 1",), "integer", starts_of="neighbours"),
        "neighbours": ArraySpec(("entries",), "integer", least=0, below="items"),
        "weights": ArraySpec(("entries",)),
    }

    @property
    def n_items(self) -> int:
        return len(self.starts) - 1

    def _rows(self, history: Interactions, users: np.ndarray) -> np.ndarray:
        from bayesneg.linear import scoring

        return scoring.sparse_rows(*self._by_neighbour, history.indptr, history.indices, users)

    @cached_property
    def _by_neighbour(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same weights by row of B."""
        order = np.argsort(self.neighbours, kind="stable")
        counts = np.bincount(self.neighbours, minlength=self.n_items)
        about = np.repeat(np.arange(self.n_items, dtype=np.int32), np.diff(self.starts))
        return np.concatenate(([0], np.cumsum(counts))), about[order], self.weights[order]

    def _pairs(self, history: Interactions, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        from bayesneg.linear import scoring

        return scoring.sparse_pairs(
            self.starts, self.neighbours, self.weights, history.indptr, history.indices, users, items
        )

    def arrays(self) -> dict[str, np.ndarray]:
        return {"starts": self.starts, "neighbours": self.neighbours, "weights": self.weights}


@dataclass(frozen=True, eq=False)
class LowRankItems(ItemModel):
    """B = C Dᵀ: a user is the sum of its items' vectors in C, and is compared with those in D."""

    input_vectors: np.ndarray  # (n_items, d) float32, C
    item_vectors: np.ndarray  # (n_items, d) float32, D
    kind: ClassVar[str] = "low-rank"
    specs: ClassVar[Specs] = VECTORS
    rows_are_pairs: ClassVar[bool] = False  # a row is a product of matrices, whose sums have another order

    @property
    def n_items(self) -> int:
        return len(self.item_vectors)

    def _rows(self, history: Interactions, users: np.ndarray) -> np.ndarray:
        return self.user_vectors(history, users) @ self.item_vectors.T

    def _pairs(self, history: Interactions, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        from bayesneg.linear import scoring

        distinct, places = np.unique(users, return_inverse=True)
        return scoring.products(self.user_vectors(history, distinct), self.item_vectors, places, items)

    def user_vectors(self, history: Interactions, users: np.ndarray) -> np.ndarray:
        """(B, d) float32."""
        from bayesneg.linear import scoring

        return scoring.sums_of(self.input_vectors, history.indptr, history.indices, users)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"input_vectors": self.input_vectors, "item_vectors": self.item_vectors}


@dataclass(frozen=True, eq=False)
class GraphFilterItems(ItemModel):
    """B = RᵀR + C Dᵀ with R the normalised interactions of the users it was fitted to: memory grows with those."""

    indptr: np.ndarray  # (n_users + 1,) int64, the items of each user
    indices: np.ndarray  # (n,) int32
    input_vectors: np.ndarray  # (n_items, d) float32, C
    item_vectors: np.ndarray  # (n_items, d) float32, D
    kind: ClassVar[str] = "graph-filter"
    specs: ClassVar[Specs] = VECTORS | {
        "indptr": ArraySpec(("users + 1",), "integer", starts_of="indices"),
        "indices": ArraySpec(("pairs",), "integer", least=0, below="items"),
    }
    rows_are_pairs: ClassVar[bool] = False  # the part of low rank differs in the last bit

    @property
    def n_items(self) -> int:
        return len(self.item_vectors)

    def _rows(self, history: Interactions, users: np.ndarray) -> np.ndarray:
        from bayesneg.linear import graph_kernels

        graph, factors = self._graph
        rows = graph_kernels.walk_rows(
            *graph, self.indptr, self.indices, *factors, history.indptr, history.indices, users
        )
        rows += self._low_rank.rows(history, users)
        return rows

    def _pairs(self, history: Interactions, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        from bayesneg.linear import graph_kernels

        graph, factors = self._graph
        scores = self._low_rank.pairs(history, users, items)
        order = np.argsort(users, kind="stable")
        scores[order] += graph_kernels.walk_pairs(
            *graph, len(self.indptr) - 1, *factors, history.indptr, history.indices, users[order], items[order]
        )
        return scores

    @cached_property
    def _low_rank(self) -> LowRankItems:
        return LowRankItems(self.input_vectors, self.item_vectors)

    @cached_property
    def _graph(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """The users of each item, and the factors of items and of users: 1/√c_i and 1/n_u."""
        degrees, popularity = np.diff(self.indptr), np.bincount(self.indices, minlength=self.n_items)
        graph = by_item(self.indptr, self.indices, self.n_items)
        return graph, (power_or_zero(popularity, -0.5), power_or_zero(degrees, -1.0))

    def arrays(self) -> dict[str, np.ndarray]:
        names = ("indptr", "indices", "input_vectors", "item_vectors")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class FactorItems(ItemModel):
    """x_ul = w_u · h_l with the users' vectors of the fit: the history must be the data that it was fitted to."""

    user_vectors: np.ndarray  # (n_users, d) float32
    item_vectors: np.ndarray  # (n_items, d) float32
    kind: ClassVar[str] = "factors"
    specs: ClassVar[Specs] = {
        "user_vectors": ArraySpec(("users", "dim")),
        "item_vectors": ArraySpec(("items", "dim")),
    }
    rows_are_pairs: ClassVar[bool] = False  # a row is a product of matrices

    @property
    def n_items(self) -> int:
        return len(self.item_vectors)

    def _rows(self, history: Interactions, users: np.ndarray) -> np.ndarray:
        return self.user_vectors[users] @ self.item_vectors.T

    def _pairs(self, history: Interactions, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        from bayesneg.linear import scoring

        return scoring.products(self.user_vectors, self.item_vectors, users, items)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"user_vectors": self.user_vectors, "item_vectors": self.item_vectors}


KINDS: dict[str, type[DenseItems | NeighbourItems | LowRankItems | GraphFilterItems | FactorItems]] = {
    model.kind: model for model in (DenseItems, NeighbourItems, LowRankItems, GraphFilterItems, FactorItems)
}


def item_model_of(kind: str, arrays: Mapping[str, np.ndarray], history: Interactions) -> ItemModel:
    """The model that :meth:`ItemModel.arrays` were taken from, for users and items as in ``history``."""
    sizes = {"users": history.n_users, "items": history.n_items}
    check_arrays(arrays, KINDS[kind].specs, sizes, only=True)
    return KINDS[kind](**arrays)


def _check(noun: str, numbers: np.ndarray, n: int) -> None:
    """Compiled code looks up whatever it is given."""
    if numbers.size and (numbers.min() < 0 or numbers.max() >= n):
        wrong = numbers[(numbers < 0) | (numbers >= n)].flat[0]
        raise InputError(f"{noun} must be numbers from 0 to {n - 1}, got {wrong}")
