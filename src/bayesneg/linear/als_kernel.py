"""A few steps of conjugate gradients for every row of an alternation (numba)."""

from __future__ import annotations

import numpy as np
from numba import njit

from bayesneg.kernels.numba.compiling import reordering_kernel

STEPS = 3  # of conjugate gradients in each alternation
CONVERGED = 1e-20  # of the squared length of a residual
REORDERED = {"reassoc", "contract", "nsz"}  # sums may be taken in vector lanes


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
