"""The model of a finished run, divided among processes: each reads its rows of the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open

from bayesneg.data.interactions import Interactions
from bayesneg.distributed.catalogue import ShardedScorer
from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.sharding.exchange import Exchange
from bayesneg.distributed.sharding.owners import Owners, check_sizes, window
from bayesneg.errors import DamagedError, InputError
from bayesneg.models.serialization import COLD


def load_sharded(weights: Path, train: Interactions, device: torch.device) -> ShardedScorer:
    """Read the rows of this process; all processes call it together.

    Args:
        weights: The file of a run of a model with embeddings.
        train: The training pairs of all processes.
        device: Where the rows go.

    Returns:
        The scorer that all processes use together.
    """
    group = ProcessGroup(device)
    check_sizes(train, group.size)
    users = Owners.balanced(train.indptr, group.size)
    exchange = Exchange(group, Owners.evenly(train.n_items, group.size))
    with safe_open(weights, framework="pt") as stored:
        if not {"users", "items"} <= set(stored.keys()):
            raise InputError(f"{weights} holds no embeddings of users and items; several processes rank by these")
        shapes = {name: tuple(stored.get_slice(name).get_shape()) for name in ("users", "items")}
        if (len(shapes["users"]), len(shapes["items"])) != (2, 2) or shapes != {
            "users": (train.n_users, shapes["items"][1]),
            "items": (train.n_items, shapes["users"][1]),
        }:
            raise DamagedError(f"{weights} is damaged: its embeddings are not those of the data; train it again")
        first, last = users.range_of(group.rank)
        of_users = stored.get_slice("users")[first:last].to(device)
        of_items = stored.get_slice("items")[exchange.first : exchange.last].to(device)
        known = (_known(stored, COLD[0], train.n_users), _known(stored, COLD[1], train.n_items))
    own = window(train, first, last)
    return ShardedScorer(of_users, of_items, exchange, users, own, cold=True, known=known)


def _known(stored: Any, cold: str, n: int) -> np.ndarray:
    """True (n,) but for those who are cold in the weights."""
    return ~stored.get_tensor(cold).numpy() if cold in stored.keys() else np.ones(n, dtype=bool)  # noqa: SIM118
