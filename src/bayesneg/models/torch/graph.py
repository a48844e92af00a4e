"""Embeddings smoothed over the user–item graph, in torch."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

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
    whole = np.int32 if max(n, len(columns)) < 2**31 else np.int64  # int32 halves the memory that a product reads
    return sparse_matrix(starts.astype(whole), columns.astype(whole), values.astype(np.float32), (n, n))


def sparse_matrix(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> Tensor:
    """A sparse CSR tensor from the starts of its rows, their columns and values."""
    indptr, indices, numbers = (torch.from_numpy(part) for part in (starts, columns, values))
    with warnings.catch_warnings():  # torch calls its CSR tensors a beta
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks")
        return torch.sparse_csr_tensor(indptr, indices, numbers, shape)


class Smooth(torch.autograd.Function):
    """The mean of X, ÂX, …, Â^L X; Â is symmetric, so the gradient is the same mean of G and no transpose is made."""

    @staticmethod
    def forward(ctx: Any, adjacency: Tensor, layers: int, x: Tensor) -> Tensor:
        ctx.adjacency, ctx.layers = adjacency, layers
        return mean_of_layers(adjacency, layers, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        return None, None, mean_of_layers(ctx.adjacency, ctx.layers, gradients[0])


def mean_of_layers(adjacency: Tensor, layers: int, x: Tensor) -> Tensor:
    """By Horner's scheme, x + Â(x + Â(x + …)), so that each layer is one product and the mean is taken in the last."""
    total = x
    for layer in range(layers):
        share = 1.0 / (layers + 1) if layer == layers - 1 else 1.0
        total = torch.addmm(x, adjacency, total, beta=share, alpha=share)
    return total


class Hop(torch.autograd.Function):
    """ÂX; Â is symmetric, so the gradient is ÂG."""

    @staticmethod
    def forward(ctx: Any, adjacency: Tensor, x: Tensor) -> Tensor:
        ctx.adjacency = adjacency
        return adjacency @ x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, ctx.adjacency @ gradients[0]


class KeptUsers(NamedTuple):
    """Users without a training interaction, whom an earlier run has learned about.

    The graph has no edge for them, so that smoothing leaves a part of the first layer alone, and weight decay would
    shrink that: they stay as they were.
    """

    users: np.ndarray  # (n,) int64
    rows: Tensor  # the same on the device
    first: Tensor  # (n, d) their first-layer embeddings
    ranked_by: np.ndarray  # (n, d) float32 the vectors that the earlier run ranks them by

    def restore(self, module: SmoothedEmbeddings) -> None:
        """Undo what training did to their first-layer embeddings."""
        with torch.no_grad():
            module.first.index_copy_(0, self.rows, self.first)


class SmoothedEmbeddings(nn.Module):
    """The embeddings of LightGCN: the mean of the first-layer embeddings and of what each graph convolution gives.

    In an ensemble the embeddings of its models are concatenated, divided by the square root of ``ensemble_size``,
    so that the inner product is the mean of the models' scores.
    """

    def __init__(self, first: np.ndarray, train: Interactions, layers: int, *, ensemble_size: int = 1) -> None:
        super().__init__()
        self.n_users, self.layers, self.ensemble_size = train.n_users, layers, ensemble_size
        self.first = nn.Parameter(torch.from_numpy(first))  # (n_users + n_items, d)
        self.register_buffer("adjacency", normalised_adjacency(train) if layers else None, persistent=False)

    def forward(self) -> tuple[Tensor, Tensor]:
        vectors = self.first
        if self.layers:
            vectors = Smooth.apply(self.adjacency, self.layers, vectors)  # type: ignore[no-untyped-call]
        if self.ensemble_size > 1:
            vectors = vectors * self.ensemble_size**-0.5
        return self._sides(vectors)

    def first_layer(self) -> tuple[Tensor, Tensor]:
        """The embeddings of users and items before any graph convolution."""
        return self._sides(self.first)

    def layer_embeddings(self) -> tuple[list[Tensor], list[Tensor]]:
        """As declared by :class:`~bayesneg.interfaces.LayeredModule`: X, ÂX, …, Â^L X."""
        found = [self.first * self.ensemble_size**-0.5 if self.ensemble_size > 1 else self.first]
        for _ in range(self.layers):
            found.append(Hop.apply(self.adjacency, found[-1]))  # type: ignore[no-untyped-call]
        users, items = zip(*(self._sides(layer) for layer in found), strict=True)
        return list(users), list(items)

    def _sides(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        users, items = torch.split(vectors, [self.n_users, len(vectors) - self.n_users])
        return users, items
