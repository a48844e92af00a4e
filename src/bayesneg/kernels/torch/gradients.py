"""Gradients of the BPR loss of a batch, in torch, and the Triton kernels where they run."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from shutil import which
from typing import Any

import torch
from torch import Tensor


@cache
def fused_for(device: torch.device) -> Any:
    """The module ``kernels.triton`` where it runs on the device, otherwise None."""
    compiler = os.environ.get("CC") or which("gcc") or which("clang") or which("cc")  # Triton builds its launchers
    if device.type != "cuda" or find_spec("triton") is None or compiler is None:
        return None
    return import_module("bayesneg.kernels.triton")


def bpr_gradients(
    users: Tensor,
    items: Tensor,
    batch_users: Tensor,
    positives: Tensor,
    negatives: Tensor,
    strength: float,
    ensemble_size: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the BPR loss with an L2 penalty on the batch's embeddings.

    The loss is the mean of −ln σ(x_i − x_j) + ½·strength·(|w_u|² + |h_i|² + |h_j|²) over the examples that have a
    negative. In an ensemble the embeddings of its models are concatenated, each divided by the square root of
    ``ensemble_size``, and the loss is the sum of the models' losses.

    Args:
        users: All users' embeddings (n_users, d).
        items: All items' embeddings (n_items, d).
        batch_users: The users (B,) of the batch.
        positives: The positives (B,).
        negatives: The negatives (B,), −1 where an example has none.
        strength: The weight of the penalty.
        ensemble_size: Number of models concatenated in the embeddings.

    Returns:
        The gradients by users (n_users, d) and items (n_items, d), and 1 − σ(x_i − x_j) (B,), 0 without a negative.
    """
    keep = negatives >= 0
    negatives = negatives.clamp(min=0)
    w, h_i, h_j = (
        vectors.index_select(0, rows).view(len(rows), ensemble_size, -1)
        for vectors, rows in ((users, batch_users), (items, positives), (items, negatives))
    )
    gaps = (w * (h_i - h_j)).sum(dim=2)  # (B, ensemble_size)
    share = (ensemble_size * keep / keep.sum().clamp(min=1))[:, None, None]
    pull, shrink = torch.sigmoid(-ensemble_size * gaps)[:, :, None] * share, strength * share
    user_gradients, item_gradients = torch.zeros_like(users), torch.zeros_like(items)
    user_gradients.index_add_(0, batch_users, (shrink * w - pull * (h_i - h_j)).flatten(1))
    item_gradients.index_add_(0, positives, (shrink * h_i - pull * w).flatten(1))
    item_gradients.index_add_(0, negatives, (shrink * h_j + pull * w).flatten(1))
    return user_gradients, item_gradients, torch.sigmoid(-gaps.sum(dim=1)) * keep


def penalty_gradients(
    users: Tensor, items: Tensor, batch_users: Tensor, positives: Tensor, negatives: Tensor, strength: float
) -> tuple[Tensor, Tensor]:
    """Gradients of the mean of ½·strength·(|w_u|² + |h_i|² + |h_j|²) alone, by users and by items."""
    keep = negatives >= 0
    share = (strength * keep / keep.sum().clamp(min=1))[:, None]
    found = torch.zeros_like(users), torch.zeros_like(items)
    for side, vectors, rows in ((0, users, batch_users), (1, items, positives), (1, items, negatives.clamp(min=0))):
        found[side].index_add_(0, rows, share * vectors.detach().index_select(0, rows))
    return found
