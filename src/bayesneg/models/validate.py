"""Validation of what a custom sampler returns."""

from __future__ import annotations

import numpy as np

from bayesneg.errors import InputError
from bayesneg.interfaces import NO_NEGATIVE, Batch


def validate_negatives(negatives: np.ndarray, batch: Batch) -> np.ndarray:
    """The negatives (B,), or an error unless each is in the catalogue and unobserved by its user."""
    items = np.asarray(negatives)  # a torch tensor on the CPU is taken as well
    if items.shape != batch.users.shape or not np.issubdtype(items.dtype, np.integer):
        raise InputError(
            f"sample must return {len(batch.users)} item numbers, one for each pair of the batch, "
            f"got {items.dtype} of shape {items.shape}"
        )
    if ((items < NO_NEGATIVE) | (items >= batch.train.n_items)).any():
        raise InputError(f"sample must return item numbers from 0 to {batch.train.n_items - 1}, or -1 to skip a pair")
    observed = (items >= 0) & batch.train.contains(batch.users, np.maximum(items, 0))
    if observed.any():
        first = int(np.flatnonzero(observed)[0])
        raise InputError(
            f"sample returned item {items[first]} for user {batch.users[first]}, a training item of that user; "
            "a negative must be an unobserved item"
        )
    return items
