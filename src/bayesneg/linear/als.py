"""Weighted matrix factorization by alternating least squares.

Y. Hu, Y. Koren and C. Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008. Over all pairs,
Σ c_ui (x_ui − w_u · h_i)² + λ (Σ |w_u|² + Σ |h_i|²) with weight c = α for an observed pair and 1 for every other. The
least squares of a row are not solved but approached by a few steps of conjugate gradients from where the row is
(G. Takács, I. Pilászy and D. Tikk, RecSys 2011): a step takes O(d²) and O(d) per interaction.
"""

from __future__ import annotations

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.linear.item_models import FactorItems
from bayesneg.linear.matrices import by_item

INIT_SCALE = 0.01  # standard deviation of the first vectors


def als(
    train: Interactions, *, dim: int, regularization: float, alpha: float, iterations: int, seed: int
) -> FactorItems:
    """Vectors of users and items; a user or item without interactions has a vector of zeros."""
    from bayesneg.linear.als_kernel import approach

    rng = np.random.default_rng(seed)
    users, items = (rng.normal(0.0, INIT_SCALE, (n, dim)).astype(np.float32) for n in (train.n_users, train.n_items))
    of_users = train.indptr, train.indices
    of_items = by_item(*of_users, train.n_items)
    for _ in range(iterations):
        for rows, fixed, pairs in ((users, items, of_users), (items, users, of_items)):
            gram = fixed.T @ fixed + np.float32(regularization) * np.eye(dim, dtype=np.float32)
            approach(rows, fixed, gram, *pairs, np.float32(alpha))
    return FactorItems(users, items)
