"""Embeddings smoothed over the user–item graph, in torch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bayesneg.data.interactions import Interactions


def normalised_adjacency(train: Interactions) -> Tensor:
    """D^(−1/2) A D^(−1/2) as sparse CSR (n_users + n_items)², built in O(interactions)."""
    n_users, n = train.n_users, train.n_users + train.n_items
    by_item = np.argsort(train.indices, kind="stable")
    columns = np.concatenate((train.indices.astype(np.int64) + n_users, train.users[by_item].astype(np.int64)))
    degrees = np.concatenate((train.counts, train.popularity))
    starts = np.concatenate(([0], np.cumsum(degrees)))
    scale = 1.0 / np.sqrt(np.maximum(degrees, 1))
    values = np.repeat(scale, degrees) * scale[columns]
    whole = np.int32 if max(n, len(columns)) < 2**31 else np.int64  # the narrower halves what a product must read
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks")
        return torch.sparse_csr_tensor(
            torch.from_numpy(starts.astype(whole)),
            torch.from_numpy(columns.astype(whole)),
            torch.from_numpy(values.astype(np.float32)),
            (n, n),
        )


class Smooth(torch.autograd.Function):
    """ÂX; Â is symmetric, so the gradient is ÂG and no transpose is ever made."""

    @staticmethod
    def forward(ctx: Any, adjacency: Tensor, x: Tensor) -> Tensor:
        ctx.adjacency = adjacency
        return torch.sparse.mm(adjacency, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, torch.sparse.mm(ctx.adjacency, gradients[0])


class SmoothedEmbeddings(nn.Module):
    """User and item vectors: the mean of the embeddings and of what each layer makes of them."""

    def __init__(self, first: np.ndarray, train: Interactions, layers: int) -> None:
        super().__init__()
        self.n_users, self.layers = train.n_users, layers
        self.first = nn.Parameter(torch.from_numpy(first))  # (n_users + n_items, d)
        self.register_buffer("adjacency", normalised_adjacency(train) if layers else None, persistent=False)

    def forward(self) -> tuple[Tensor, Tensor]:
        total = layer = self.first
        for _ in range(self.layers):
            layer = Smooth.apply(self.adjacency, layer)  # type: ignore[no-untyped-call]
            total = total + layer
        vectors = total / (self.layers + 1)
        users, items = torch.split(vectors, [self.n_users, len(vectors) - self.n_users])
        return users, items
