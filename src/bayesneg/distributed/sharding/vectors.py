"""The embeddings of a model in parts: what each process owns of users and items, what is fetched, and a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.sharding.exchange import Exchange, Route
from bayesneg.distributed.sharding.owners import Owners
from bayesneg.distributed.sharding.table import OwnedRows, initial_rows
from bayesneg.kernels.torch.formulas import unit
from bayesneg.models.torch.lightgcn import LightGCN


class Leaves(NamedTuple):
    """The rows of a mini-batch, at which gradients begin."""

    users: Tensor  # (k, d) of the users of this process
    items: Tensor  # (k', d) fetched
    first_users: Tensor | None = None  # the same of the first layer, where the penalty is on it
    first_items: Tensor | None = None

    @property
    def first_layer(self) -> tuple[Tensor, Tensor] | None:
        if self.first_users is None or self.first_items is None:
            return None
        return self.first_users, self.first_items


class ShardedVectors:
    """Matrix factorization: the embeddings themselves.

    Args:
        settings: The model.
        group: The processes.
        train: The training pairs of this process's users, under their numbers.
        users: Which process has which users.
        rng: The stream of initial embeddings.
    """

    def __init__(
        self, settings: LightGCN, group: ProcessGroup, train: Interactions, users: Owners, rng: np.random.Generator
    ) -> None:
        self.settings, self.group = settings, group
        items = Owners.evenly(train.n_items, group.size)
        self.user_range, self.item_range = users.range_of(group.rank), items.range_of(group.rank)
        self.exchange = Exchange(group, items)
        self.dim = settings.dim * settings.ensemble_size
        n = train.n_users + train.n_items
        first = initial_rows(rng, settings.init_scale, (self.user_range, self.item_range), train.n_users, n, self.dim)
        self.user_rows, self.item_rows = (OwnedRows(part, settings, group.device) for part in first)
        self.scale = settings.ensemble_size**-0.5  # as in one process, so that the inner product is the mean
        self._penalized = settings.penalty == "first_layer"

    @property
    def item_owners(self) -> Owners:
        return self.exchange.owners

    @property
    def factor_owners(self) -> Owners:
        """Which process has what there is for each factor over all items."""
        return Owners.evenly(self.dim, self.group.size)

    def users(self) -> Tensor:
        """The embeddings of this process's users, without gradients."""
        return self.user_rows.rows if self.scale == 1.0 else self.user_rows.rows * self.scale

    def items(self) -> Tensor:
        """The embeddings of this process's items, without gradients."""
        return self.item_rows.rows if self.scale == 1.0 else self.item_rows.rows * self.scale

    def unit(self, vectors: Tensor, *, always: bool = False) -> Tensor:
        """Embeddings of norm 1 where scores are cosines, or always."""
        return unit(vectors) if always or self.settings.similarity == "cosine" else vectors

    def leaves(self, users: Tensor, route: Route) -> Leaves:
        """The rows of a mini-batch: of this process's users (k,), by their numbers within it, and of its items."""
        found = [self.users().index_select(0, users), self.exchange.fetch(self.items(), route)]
        if self._penalized:
            found += [
                self.user_rows.rows.index_select(0, users),
                self.exchange.fetch(self.item_rows.rows, route),
            ]
        return Leaves(*(part.detach().requires_grad_() for part in found))

    def step(self, leaves: Leaves, users: Tensor, route: Route, share: Tensor | float) -> None:
        """Send the gradients of the leaves back and take a step of Adam.

        Args:
            leaves: The rows of the mini-batch, after the backward pass.
            users: Their users (k,), by their numbers within this process.
            route: Where the rows of items came from.
            share: What the gradients are multiplied by: the mean is over the mini-batch of all processes.
        """
        by_users, by_items, *first = (_gradient(leaf, share) for leaf in leaves if leaf is not None)
        self._learn(users, by_users, route, self.exchange.send_back(by_items, route), first)

    def _learn(self, users: Tensor, by_users: Tensor, route: Route, by_items: Tensor, first: list[Tensor]) -> None:
        if self.scale != 1.0:
            by_users, by_items = by_users * self.scale, by_items * self.scale
        if first:
            by_users, by_items = by_users + first[0], by_items + self.exchange.send_back(first[1], route)
        self.user_rows.step(users, by_users)
        self.item_rows.step(route.touched, by_items)

    def set_learning_rate(self, rate: float) -> None:
        for table in (self.user_rows, self.item_rows):
            table.set_learning_rate(rate)

    def state(self) -> dict[str, Tensor]:
        """Rows, moments and steps of both tables; writing to them changes the model."""
        parts = {"users": self.user_rows.state(), "items": self.item_rows.state()}
        return {f"{name}.{key}": value for name, state in parts.items() for key, value in state.items()}

    def changed(self) -> None:
        """The tables were written to."""
        return

    def is_finite(self) -> bool:
        """Whether all embeddings of all processes are finite."""
        broken = sum((~torch.isfinite(table.rows).all()).long() for table in (self.user_rows, self.item_rows))
        assert isinstance(broken, Tensor)
        return int(self.group.sum(broken)) == 0


def _gradient(leaf: Tensor, share: Tensor | float) -> Tensor:
    if leaf.grad is None:
        return torch.zeros_like(leaf)
    return leaf.grad if isinstance(share, float) and share == 1 else leaf.grad * share


def vectors_of(settings: LightGCN) -> type[ShardedVectors]:
    """The class that divides the embeddings of a model."""
    if settings.layers == 0:
        return ShardedVectors
    from bayesneg.distributed.sharding.graph import ShardedGraph

    return ShardedGraph
