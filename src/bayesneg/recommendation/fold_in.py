"""Vectors for users and items that training has not seen, in closed form.

A model with vectors maps a history of items to the vector of a user. That map is fitted to the users it was trained on:
with x_u = Σ_{i ∈ I_u} h_i / |I_u|^(3/4), ridge regression gives w ≈ w̄ + (x − x̄) M. A new user is one product with a
d × d matrix. Items are folded in likewise, from the vectors of their users.

The other closed form, used for ALS alone, fixes the items and solves for the user,
(Σ_i h_i h_iᵀ + (α − 1) Σ_{i ∈ I_u} h_i h_iᵀ + λ) w = α Σ_{i ∈ I_u} h_i: the step that trained the model itself. For
other losses it has the wrong objective; benchmarks/quality/fold_in.py has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, Protocol

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Scorer
from bayesneg.linear.matrices import by_item
from bayesneg.models.scorers import EmbeddingScorer

EXPONENT: Final = 0.75  # both by benchmarks/quality/fold_in.py, on users of no test
RIDGE: Final = 0.03
UNIT: Final = 1e-3  # how far from 1 the norms of unit vectors may be


class FoldsIn(Protocol):
    """A rule that gives a vector to a history."""

    def vector(self, history: np.ndarray) -> np.ndarray:
        """The vector (d,) float32 of a history (n,) of numbers, each once."""
        ...


@dataclass(frozen=True, eq=False)
class RegressionFoldIn:
    """w = w̄ + (x − x̄) M with x = Σ h / n^(3/4), fitted to vectors whose histories are known.

    Args:
        known: Vectors (n, d) that training gave; a row of ``indptr`` is the history of each.
        others: Vectors (m, d) of what histories consist of.
        indptr: Start of each history, (n + 1,).
        indices: The histories.
        exponent: Of the length n of a history: 1 would be the mean, 0 the sum.
        ridge: The penalty, relative to the variance of x; where x does not vary, every vector is w̄.
    """

    known: np.ndarray
    others: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    exponent: float = EXPONENT
    ridge: float = RIDGE

    def vector(self, history: np.ndarray) -> np.ndarray:
        mean_x, mean_w, weights, are_unit = self._fitted
        bounds = np.array([0, len(history)], dtype=np.int64)
        x = self._inputs(bounds, np.sort(history).astype(np.int32), np.zeros(1, dtype=np.int64))[0]
        vector = mean_w + (x - mean_x) @ weights
        if are_unit:
            vector /= max(float(np.linalg.norm(vector)), np.finfo(np.float64).tiny)
        return vector.astype(np.float32)

    @cached_property
    def _fitted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
        rows = np.flatnonzero(np.diff(self.indptr))
        x, w = self._inputs(self.indptr, self.indices, rows), self.known[rows].astype(np.float64)
        mean_x, mean_w = x.mean(axis=0), w.mean(axis=0)
        size = float(np.square(x).sum())
        x -= mean_x
        spread = float(np.square(x).sum())
        norms = np.linalg.norm(w, axis=1)
        are_unit = bool((np.abs(norms - 1) < UNIT).all())
        if spread <= np.finfo(np.float64).eps * size:  # one history, or alike ones: nothing to regress on
            return mean_x, mean_w, np.zeros((x.shape[1], w.shape[1])), are_unit
        gram = x.T @ x
        gram[np.diag_indices_from(gram)] += self.ridge * spread / x.shape[1]
        return mean_x, mean_w, np.linalg.solve(gram, x.T @ (w - mean_w)), are_unit

    def _inputs(self, indptr: np.ndarray, indices: np.ndarray, rows: np.ndarray) -> np.ndarray:
        from bayesneg.linear.scoring import sums_of

        lengths = np.diff(indptr)[rows].astype(np.float64)
        return sums_of(self.others, indptr, indices, rows).astype(np.float64) / lengths[:, None] ** self.exponent


@dataclass(frozen=True, eq=False)
class LeastSquaresFoldIn:
    """The user's step of alternating least squares, with the items fixed; or the item's, with the users fixed.

    Args:
        others: Vectors (m, d) of what histories consist of.
        alpha: Weight of an observed pair; every other pair has weight 1.
        regularization: L2 penalty on the vector.
    """

    others: np.ndarray
    alpha: float
    regularization: float

    def vector(self, history: np.ndarray) -> np.ndarray:
        observed = self.others[history].astype(np.float64)
        system = self._gram + (self.alpha - 1) * observed.T @ observed
        system[np.diag_indices_from(system)] += self.regularization
        return np.linalg.solve(system, self.alpha * observed.sum(axis=0)).astype(np.float32)

    @cached_property
    def _gram(self) -> np.ndarray:
        others = self.others.astype(np.float64)
        return others.T @ others


def fold_in_of(
    scorer: Scorer, train: Interactions, settings: Mapping[str, Any] | None, *, of: Literal["users", "items"]
) -> FoldsIn | None:
    """The rule that gives vectors to new users or new items; None for a model without vectors.

    Args:
        scorer: A trained model.
        train: The interactions it was trained on.
        settings: The model's settings as recorded, with its ``class``.
        of: Whose vectors are wanted.
    """
    if not isinstance(scorer, EmbeddingScorer):
        return None
    known, others = (scorer.users, scorer.items) if of == "users" else (scorer.items, scorer.users)
    if settings is not None and settings.get("class") == "ALS":
        return LeastSquaresFoldIn(others, settings["alpha"], settings["regularization"])
    if of == "users":
        return RegressionFoldIn(known, others, train.indptr, train.indices)
    return RegressionFoldIn(known, others, *by_item(train.indptr, train.indices, train.n_items))
