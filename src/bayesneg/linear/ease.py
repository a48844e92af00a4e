"""EASE: a linear item–item model in closed form.

H. Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019. Of all B with a zero diagonal,
|X − XB|² + l2·|B|² is least for B_il = −P_il / P_ll, i ≠ l, with P = (XᵀX + l2·1)⁻¹ and X the users × items interaction
matrix.

P is dense. For a large catalogue XᵀX is approximated by V S² Vᵀ + D, its leading ``rank`` eigenvectors and the rest of
its diagonal; P and B then follow from a rank × rank system (the Woodbury identity) and are never written out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.linear.inverse import inverted, sees_gpu
from bayesneg.linear.item_models import DenseItems, ItemModel, LowRankItems
from bayesneg.linear.matrices import interaction_matrix
from bayesneg.seeding import stream

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE_ITEMS = 8192  # up to here B is dense, 256 MiB
EXACT_ITEMS = 4096  # up to here it is solved in double precision
RANK = 512
POWER_STEPS = 6  # of the subspace iteration
USERS = 1 << 14  # per block of the product
SPARE = 32  # oversampling beyond the rank, for the accuracy of the last vectors


Form = Literal["auto", "dense", "low-rank"]


def ease(train: Interactions, *, l2: float, form: Form = "auto") -> ItemModel:
    """EASE, dense or of low rank; with ``"auto"`` dense up to 8,192 items."""
    whole = train.n_items <= DENSE_ITEMS if form == "auto" else form == "dense"
    return dense_ease(train, l2=l2) if whole else low_rank_ease(train, l2=l2)


def dense_ease(train: Interactions, *, l2: float) -> DenseItems:
    """EASE as published; (n_items, n_items) numbers, on a GPU beyond 8,192 items where torch sees one."""
    x = interaction_matrix(train, np.float64 if train.n_items <= EXACT_ITEMS else np.float32)
    gram = (x.T @ x).toarray(order="F")
    gram[np.diag_indices_from(gram)] += l2
    weights = inverted(gram, gpu=train.n_items > DENSE_ITEMS and sees_gpu())
    if weights is None:
        raise InputError(f"l2 must be large enough for the precision of numbers, got {l2:g}; try a larger one")
    weights /= -weights.diagonal()  # column l by P_ll
    np.fill_diagonal(weights, 0.0)
    return DenseItems(np.ascontiguousarray(weights, dtype=np.float32))


def low_rank_ease(train: Interactions, *, l2: float, rank: int = RANK) -> LowRankItems:
    """EASE with all of XᵀX but its leading eigenvectors reduced to its diagonal; n_items × rank numbers."""
    vectors, values = leading_eigenvectors(train, min(rank, min(train.n_users, train.n_items)))  # V, S²
    rest = np.maximum(train.popularity - (vectors**2) @ values, 0.0) + l2  # (n_items,), D + l2
    scaled = vectors / rest[:, None]
    inner = np.linalg.inv(np.diag(1.0 / values) + vectors.T @ scaled)  # (rank, rank)
    left = scaled @ inner  # P = 1/rest − left · scaledᵀ
    diagonal = 1.0 / rest - np.einsum("ik,ik->i", left, scaled)
    return LowRankItems(left.astype(np.float32), (scaled / diagonal[:, None]).astype(np.float32))


def leading_eigenvectors(train: Interactions, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """The ``rank`` leading eigenvectors (n_items, rank) of XᵀX and their values, by randomised subspace iteration.

    N. Halko, P. G. Martinsson and J. A. Tropp, "Finding Structure with Randomness", SIAM Review 2011. Values of 0 are
    left out.
    """
    x = interaction_matrix(train, np.float64)
    width = min(rank + SPARE, *x.shape)
    basis = stream(0, "leading eigenvectors").normal(size=(train.n_items, width))
    for _ in range(POWER_STEPS):
        basis, _ = np.linalg.qr(_gram_times(x, basis))
    values, turn = np.linalg.eigh(basis.T @ _gram_times(x, basis))
    values, turn = values[::-1][:rank], turn[:, ::-1][:, :rank]
    kept = values > values[0] * 1e-12
    return basis @ turn[:, kept], values[kept]


def _gram_times(x: csr_array, basis: np.ndarray) -> np.ndarray:
    """XᵀX · basis, some users at a time: nothing of the size users × width is made."""
    total = np.zeros_like(basis)
    for start in range(0, x.shape[0], USERS):
        rows = x[start : start + USERS]
        total += rows.T @ (rows @ basis)
    return total
