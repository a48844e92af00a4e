"""GF-CF: low-pass filters of the user–item graph, in closed form.

Y. Shen et al., "How Powerful is Graph Convolution for Recommendation?", CIKM 2021. With X the users × items interaction
matrix, D_U and D_I its row and column sums and R = D_U^(−1/2) X D_I^(−1/2), the score of a history x_u is

    x_u RᵀR + α · x_u D_I^(−1/2) V Vᵀ D_I^(1/2),

a linear filter and the ideal low-pass filter, V the leading right singular vectors of R. Both are kept as factors, the
interactions and V, and never multiplied out. As in the authors' experiments, the linear filter is applied to x_u as it
is, without D_I^(−1/2) and D_I^(1/2) around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.linear.item_models import GraphFilterItems
from bayesneg.linear.matrices import interaction_matrix, power_or_zero
from bayesneg.seeding import stream

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ZERO = 1e-6  # singular values up to here are 0; the largest is 1


def graph_filter(train: Interactions, *, alpha: float, rank: int) -> GraphFilterItems:
    """GF-CF with ``rank`` singular vectors, fewer where there are no more; interactions and n_items × rank numbers."""
    vectors = singular_vectors(normalized_matrix(train), rank) if alpha > 0 else np.zeros((train.n_items, 0))
    left = alpha * power_or_zero(train.popularity, -0.5)[:, None] * vectors
    right = power_or_zero(train.popularity, 0.5)[:, None] * vectors
    # by row, as a file returns them: another order in memory gives another last bit
    factors = (np.asarray(each, dtype=np.float32, order="C") for each in (left, right))
    return GraphFilterItems(train.indptr, train.indices, *factors)


def normalized_matrix(train: Interactions) -> csr_array:
    """R (n_users, n_items) float64; rows and columns without interactions are 0."""
    matrix = interaction_matrix(train, np.float64)
    matrix.data = power_or_zero(np.diff(train.indptr), -0.5)[train.users]
    matrix.data *= power_or_zero(train.popularity, -0.5)[train.indices]
    return matrix


def singular_vectors(matrix: csr_array, rank: int) -> np.ndarray:
    """The leading right singular vectors (n_items, rank) of R, those of value 0 left out.

    By the Lanczos iteration of ARPACK from a fixed start, or from the Gram matrix of the shorter side if that is small.
    """
    if min(matrix.shape) <= 2 * rank:
        values, vectors = _from_gram(matrix, rank)
    else:
        from scipy.sparse.linalg import svds

        start = stream(0, "singular vectors").normal(size=min(matrix.shape))
        _, values, transposed = svds(matrix, k=rank, v0=start)
        vectors = transposed.T
    return vectors[:, values > ZERO]


def _from_gram(matrix: Any, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Singular values (r,) and right singular vectors (n_items, r) of a matrix with one short side."""
    n_users, n_items = matrix.shape
    short = matrix.T @ matrix if n_items <= n_users else matrix @ matrix.T
    squares, vectors = np.linalg.eigh(short.toarray())
    values, vectors = np.sqrt(np.maximum(squares[-rank:], 0.0)), vectors[:, -rank:]
    return values, vectors if n_items <= n_users else matrix.T @ (vectors / np.maximum(values, ZERO))
