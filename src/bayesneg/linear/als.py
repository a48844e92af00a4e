"""Weighted matrix factorization by alternating least squares, with the ``implicit`` library (the extra ``als``).

Y. Hu, Y. Koren and C. Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008. Over all pairs,
Σ c_ui (x_ui − w_u · h_i)² + λ (Σ |w_u|² + Σ |h_i|²) with weight c = α for an observed pair and 1 for every other.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.linear.item_models import FactorItems
from bayesneg.linear.matrices import interaction_matrix


def als(
    train: Interactions, *, dim: int, regularization: float, alpha: float, iterations: int, seed: int
) -> FactorItems:
    """Vectors of users and items; a user without interactions has a vector of zeros."""
    require_implicit("ALS")
    from implicit.cpu.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    with warnings.catch_warnings():
        # it asks for an environment variable; the time is the same with and without BLAS threads
        warnings.filterwarnings("ignore", message=r".*BLAS.* is configured to use", category=RuntimeWarning)
        model = AlternatingLeastSquares(
            factors=dim,
            regularization=regularization,
            alpha=alpha,
            iterations=iterations,
            num_threads=1,
            random_state=seed,
        )
    model.fit(csr_matrix(interaction_matrix(train, np.float32)), show_progress=False)
    return FactorItems(np.asarray(model.user_factors), np.asarray(model.item_factors))


def require_implicit(what: str) -> None:
    if find_spec("implicit") is None:
        raise InputError(f"{what} needs implicit, which is not installed; run: pip install 'bayesneg[als]'")
