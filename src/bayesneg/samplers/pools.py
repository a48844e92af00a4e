"""Pools of negatives that all examples of a mini-batch share."""

from __future__ import annotations

import numpy as np

from bayesneg.checks import boolean
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, CandidateDraw
from bayesneg.kernels.reference.pools import SharedPool
from bayesneg.samplers.candidates import UniformDraw


def uniform_pool(size: int, batch: Batch) -> SharedPool:
    """A pool of ``size`` items of the catalogue, uniformly without replacement."""
    n_items = batch.train.n_items
    return SharedPool(batch.rng.choice(n_items, min(size, n_items), replace=False, shuffle=False).astype(np.int32))


def check_shared(shared: bool, draw: CandidateDraw) -> None:
    """A shared pool is drawn from the whole catalogue, where a draw for each user has no meaning."""
    boolean("shared", shared)
    if shared and not isinstance(draw, UniformDraw):
        raise InputError(
            f"shared=True draws one pool for all users; {type(draw).__name__} draws for each user, use shared=False"
        )
