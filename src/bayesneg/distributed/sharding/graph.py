"""LightGCN in parts: the product with the normalised adjacency, its vectors gathered in blocks of items.

A process has the pairs of its users. For each block of items, in the same order everywhere, the owner sends the block's
vectors to all, who add what their users gain; and all send what the block's items gain from their users, which is
summed at the owner. Nothing larger than a block is held of other processes' items, and vectors of users never travel. A
product sends or receives 2 · 4 · d · items bytes per process, a step 2 · layers products.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
import torch.distributed as dist
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.sharding.exchange import Route
from bayesneg.distributed.sharding.owners import Owners
from bayesneg.distributed.sharding.vectors import ShardedVectors
from bayesneg.models.torch.graph import sparse_matrix
from bayesneg.models.torch.lightgcn import LightGCN

NUMBERS = 1 << 24  # of a block's vectors


class GraphBlock(NamedTuple):
    """A block of items, with the part of the adjacency that is of this process's users."""

    owner: int
    rows: slice  # within the owner's items
    to_users: Tensor  # sparse CSR (users, block)
    to_items: Tensor  # its transpose


class ShardedGraph(ShardedVectors):
    """LightGCN: the mean of the first-layer embeddings and of what each graph convolution gives.

    The arguments are those of :class:`ShardedVectors`.
    """

    def __init__(
        self, settings: LightGCN, group: ProcessGroup, train: Interactions, users: Owners, rng: np.random.Generator
    ) -> None:
        super().__init__(settings, group, train, users, rng)
        self.blocks = _blocks(train, self.user_range, self.item_owners, group, max(1, NUMBERS // self.dim))
        self._smoothed: tuple[Tensor, Tensor] | None = None

    def users(self) -> Tensor:
        return self._vectors()[0]

    def items(self) -> Tensor:
        return self._vectors()[1]

    def changed(self) -> None:
        self._smoothed = None

    def _vectors(self) -> tuple[Tensor, Tensor]:
        """The smoothed embeddings; all processes ask for them together after each step."""
        if self._smoothed is None:
            users, items = self._mean_of_layers(self.user_rows.rows, self.item_rows.rows)
            self._smoothed = users * self.scale, items * self.scale
        return self._smoothed

    def _learn(self, users: Tensor, by_users: Tensor, route: Route, by_items: Tensor, first: list[Tensor]) -> None:
        of_users = torch.zeros_like(self.user_rows.rows).index_copy_(0, users, by_users * self.scale)
        of_items = torch.zeros_like(self.item_rows.rows).index_copy_(0, route.touched, by_items * self.scale)
        of_users, of_items = self._mean_of_layers(of_users, of_items)  # the adjacency is symmetric
        if first:
            of_users.index_add_(0, users, first[0])
            of_items.index_add_(0, route.touched, self.exchange.send_back(first[1], route))
        self.user_rows.step_with(of_users)
        self.item_rows.step_with(of_items)
        self.changed()

    def _mean_of_layers(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """As in one process, by Horner's scheme."""
        layers, total = self.settings.layers, (users, items)
        for layer in range(layers):
            share = 1.0 / (layers + 1) if layer == layers - 1 else 1.0
            by_users, by_items = self._product(*total)
            total = (users + by_users) * share, (items + by_items) * share
        return total

    def _product(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """The adjacency times the vectors of all users and items: the rows of this process."""
        of_users, of_items = torch.zeros_like(users), torch.zeros_like(items)
        for owner, rows, to_users, to_items in self.blocks:
            own, n = owner == self.group.rank, rows.stop - rows.start
            block = items[rows].contiguous() if own else items.new_empty(n, items.shape[1])
            gained = to_items @ users
            if self.group.size > 1:
                dist.broadcast(block, owner)
                dist.reduce(gained, owner)
                sent = block.element_size() * block.numel()
                self.group.sent["graph"] += sent * (self.group.size - 1) if own else sent
            of_users += to_users @ block
            if own:
                of_items[rows] = gained
        return of_users, of_items


def _blocks(
    train: Interactions, user_range: tuple[int, int], owners: Owners, group: ProcessGroup, size: int
) -> list[GraphBlock]:
    """The adjacency of this process's users, block by block."""
    first, last = user_range
    indptr = train.indptr[first : last + 1]
    degrees = np.diff(indptr)
    popularity = group.sum(torch.from_numpy(np.bincount(train.indices, minlength=train.n_items)).to(group.device))
    of_users = 1.0 / np.sqrt(np.maximum(degrees, 1))
    of_items = 1.0 / np.sqrt(np.maximum(popularity.cpu().numpy(), 1))
    values = (np.repeat(of_users, degrees) * of_items[train.indices]).astype(np.float32)
    whole = scipy.sparse.csr_array((values, train.indices, indptr), shape=(last - first, train.n_items)).tocsc()
    found = []
    for owner in range(group.size):
        begin, end = owners.range_of(owner)
        for start in range(begin, end, size):
            stop = min(start + size, end)
            part = whole[:, start:stop]
            to_users, to_items = (_on(matrix.tocsr(), group.device) for matrix in (part, part.T))
            found.append(GraphBlock(owner, slice(start - begin, stop - begin), to_users, to_items))
    return found


def _on(matrix: scipy.sparse.csr_array, device: torch.device) -> Tensor:
    """A sparse matrix on a device."""
    starts, columns = (part.astype(np.int64) for part in (matrix.indptr, matrix.indices))
    return sparse_matrix(starts, columns, matrix.data, matrix.shape).to(device)
