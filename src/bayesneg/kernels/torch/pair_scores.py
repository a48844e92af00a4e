"""Scores of K items for each of B examples; (B, K, d) embeddings are never held at once, but for a few megabytes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bayesneg.kernels.reference.formulas import SHORTEST_UNIT
from bayesneg.kernels.torch.formulas import unit

NUMBERS = 1 << 24  # of gathered embeddings held at once
FEW_NUMBERS = 1 << 19  # that autograd may keep: less work than gathering them again


class _PairScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, users: Tensor, table: Tensor, items: Tensor) -> Tensor:
        ctx.save_for_backward(users, table, items)
        found = torch.empty(items.shape, dtype=users.dtype, device=users.device)
        for part in _parts(items, users.shape[1]):
            found[part] = torch.einsum("bd,bkd->bk", users[part], table[items[part]].to(users.dtype))
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        users, table, items = ctx.saved_tensors
        (by_score,) = gradients
        by_users, by_table = torch.zeros_like(users), torch.zeros(table.shape, dtype=users.dtype, device=table.device)
        for part in _parts(items, users.shape[1]):
            slopes = by_score[part].to(users.dtype)
            by_users[part] = torch.einsum("bk,bkd->bd", slopes, table[items[part]].to(users.dtype))
            outer = slopes[:, :, None] * users[part][:, None, :]
            by_table.index_add_(0, items[part].reshape(-1), outer.flatten(0, 1))
        return by_users, by_table.to(table.dtype), None


def pair_scores(users: Tensor, table: Tensor, items: Tensor) -> Tensor:
    """x_bk = w_b · h_k, differentiable by both embeddings.

    Args:
        users: The users' embeddings (B, d).
        table: The embeddings (n_items, d) of all items.
        items: The items (B, K) of each example.

    Returns:
        The scores (B, K).
    """
    if items.numel() * users.shape[1] <= FEW_NUMBERS:
        vectors = table.index_select(0, items.reshape(-1)).view(*items.shape, -1)
        return (users[:, None, :] * vectors.to(users.dtype)).sum(dim=2)
    found: Tensor = _PairScores.apply(users, table, items)  # type: ignore[no-untyped-call]
    return found


def scores_of(
    users: Tensor, positives: Tensor, table: Tensor | None, items: Tensor, vectors: Tensor | None, *, cosine: bool
) -> tuple[Tensor, Tensor]:
    """The scores of positives and negatives, differentiable by all embeddings.

    Args:
        users: The users' embeddings (B, d).
        positives: The positives' embeddings (B, d).
        table: The embeddings (n_items, d) of all items; not read where ``vectors`` are given.
        items: The negatives: (B, K), or (N,), a pool that all examples share.
        vectors: Synthetic negatives (B, K, d) in place of ``items``.
        cosine: Whether scores are cosines and not inner products.

    Returns:
        The scores (B,) of the positives and (B, K) or (B, N) of the negatives.
    """
    users, positives = _unit(users, cosine), _unit(positives, cosine)
    of_positives = (users * positives).sum(dim=1)
    if vectors is not None:
        return of_positives, torch.einsum("bd,bkd->bk", users, _unit(vectors.to(users.dtype), cosine))
    assert table is not None
    if items.ndim == 1:
        return of_positives, users @ _unit(table.index_select(0, items).to(users.dtype), cosine).T
    found = pair_scores(users, table, items)
    if cosine:
        found = found / table.to(users.dtype).norm(dim=1).clamp(min=SHORTEST_UNIT)[items]
    return of_positives, found


def _unit(vectors: Tensor, cosine: bool) -> Tensor:
    return unit(vectors) if cosine else vectors


def _parts(items: Tensor, dim: int) -> list[slice]:
    """Examples in parts whose embeddings are at most ``NUMBERS`` numbers."""
    at_once = max(1, NUMBERS // max(1, items.shape[1] * dim))
    return [slice(first, first + at_once) for first in range(0, len(items), at_once)]
