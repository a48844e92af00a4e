"""Weighted matrix factorization by alternating least squares.

Y. Hu, Y. Koren and C. Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008. Over all pairs,
Σ c_ui (x_ui − w_u · h_i)² + λ (Σ |w_u|² + Σ |h_i|²) with weight c = α for an observed pair and 1 for every other. The
least squares of a row are not solved but approached by a few steps of conjugate gradients from where the row is
(G. Takács, I. Pilászy and D. Tikk, RecSys 2011): a step takes O(d²) and O(d) per interaction.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bayesneg.data.interactions import Interactions
from bayesneg.kernels.numba.compiling import reordering_kernel
from bayesneg.linear.item_models import FactorItems
from bayesneg.linear.matrices import by_item

STEPS = 3  # of conjugate gradients in each alternation
INIT_SCALE = 0.01  # standard deviation of the first vectors
REORDERED = {"reassoc", "contract", "nsz"}  # sums may be taken in vector lanes
CONVERGED = 1e-20  # of the squared length of a residual


def als(
    train: Interactions, *, dim: int, regularization: float, alpha: float, iterations: int, seed: int
) -> FactorItems:
    """Vectors of users and items; a user or item without interactions has a vector of zeros."""
    rng = np.random.default_rng(seed)
    users, items = (rng.normal(0.0, INIT_SCALE, (n, dim)).astype(np.float32) for n in (train.n_users, train.n_items))
    of_users = train.indptr, train.indices
    of_items = by_item(*of_users, train.n_items)
    for _ in range(iterations):
        for rows, fixed, pairs in ((users, items, of_users), (items, users, of_items)):
            gram = fixed.T @ fixed + np.float32(regularization) * np.eye(dim, dtype=np.float32)
            approach(rows, fixed, gram, *pairs, np.float32(alpha))
    return FactorItems(users, items)


@reordering_kernel
def inner(a: np.ndarray, b: np.ndarray) -> np.float32:
    total = np.float32(0)
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@reordering_kernel
def add(found: np.ndarray, factor: np.float32, vector: np.ndarray) -> None:
    for k in range(len(found)):
        found[k] += factor * vector[k]


@reordering_kernel
def times(
    gram: np.ndarray, w: np.ndarray, fixed: np.ndarray, items: np.ndarray, more: np.float32, found: np.ndarray
) -> None:
    """found = (gram + more · Σ h hᵀ) w, over the fixed rows h of the items."""
    np.dot(gram, w, found)
    for item in items:
        add(found, more * inner(fixed[item], w), fixed[item])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDERED)
def approach(
    rows: np.ndarray,  # (n, d) float32, moved
    fixed: np.ndarray,  # (m, d) float32
    gram: np.ndarray,  # (d, d) float32, of the fixed rows, with λ on its diagonal
    indptr: np.ndarray,  # (n + 1,) the observed pairs of row r are at indptr[r] … indptr[r + 1]
    indices: np.ndarray,
    alpha: np.float32,
) -> None:
    """Conjugate gradients of every row on (gram + (α − 1) Σ h hᵀ) w = α Σ h, over its observed pairs."""
    more = alpha - np.float32(1)
    residual = np.empty(rows.shape[1], dtype=np.float32)
    direction, product = np.empty_like(residual), np.empty_like(residual)
    for row in range(len(rows)):
        w, items = rows[row], indices[indptr[row] : indptr[row + 1]]
        if len(items) == 0:
            w[:] = 0
            continue
        times(gram, w, fixed, items, more, product)
        for k in range(len(w)):
            residual[k] = -product[k]
        for item in items:
            add(residual, alpha, fixed[item])
        direction[:] = residual
        length = inner(residual, residual)
        for _ in range(STEPS):
            if length < CONVERGED:
                break
            times(gram, direction, fixed, items, more, product)
            step = length / inner(direction, product)
            add(w, step, direction)
            add(residual, -step, product)
            before, length = length, inner(residual, residual)
            for k in range(len(w)):
                direction[k] = residual[k] + (length / before) * direction[k]
