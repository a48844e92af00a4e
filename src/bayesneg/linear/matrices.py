"""Interactions as a SciPy sparse matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesneg.data.interactions import Interactions

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def interaction_matrix(train: Interactions, precision: Any) -> csr_array:
    """X (n_users, n_items): 1 where a user interacted with an item."""
    from scipy.sparse import csr_array

    ones = np.ones(len(train), dtype=precision)
    shape = (train.n_users, train.n_items)
    return csr_array((ones, train.indices, train.indptr), shape=shape, copy=True)  # the originals are frozen
