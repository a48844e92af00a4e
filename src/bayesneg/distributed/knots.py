"""Summaries of the score lists of this process's users, over the items of all processes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bayesneg.distributed.sharding.exchange import Route
from bayesneg.distributed.sharding.vectors import ShardedVectors
from bayesneg.kernels.numba.summaries import REACH, thinned
from bayesneg.kernels.torch.formulas import lengths_of
from bayesneg.kernels.torch.score_lists import TrainingRows
from bayesneg.models.torch.summaries import TorchSummaries


class OwnKnots(TorchSummaries):
    """The knots of this process's users, who are numbered from 0 here.

    The pool of items that a list is summarised from is chosen once an epoch by all processes together: the mean and
    the covariance of the users' directions are summed over them, each process rates its items, and the ratings, one
    number per item, are gathered. The rows of the pool are fetched for each block of mini-batches.
    """

    def __init__(self, vectors: ShardedVectors, rows: TrainingRows, ranks: np.ndarray) -> None:
        super().__init__(rows, ranks, vectors.dim, vectors.group.device)
        self.vectors = vectors
        self._route: Route | None = None

    def _choose_pool(self, users: Tensor, items: Tensor, size: int) -> None:
        group, owners = self.vectors.group, self.vectors.item_owners
        n_items = int(owners.bounds[-1])
        order = np.arange(n_items)
        if n_items > size:
            directions = (users / lengths_of(users)).double()
            d = users.shape[1]
            sums = torch.zeros(d + d * d + 1, dtype=torch.float64, device=group.device)
            sums[:d], sums[-1] = directions.sum(dim=0), len(directions)
            sums[d:-1] = (directions.T @ directions).flatten()
            group.sum(sums, "summaries")
            mean, second = sums[:d] / sums[-1], sums[d:-1].view(d, d) / sums[-1]
            covariance, own = second - torch.outer(mean, mean), items.double()
            variance = ((own @ covariance) * own).sum(dim=1).clamp(min=0)
            reach = (own @ mean + REACH * variance.sqrt()).float()
            counts = np.diff(owners.bounds).tolist()
            order = np.argsort(-group.gather(reach, counts, "summaries").cpu().numpy(), kind="stable")
        chosen = thinned(order, size)
        self.items, self.weights, self.slots = (torch.from_numpy(array).to(group.device) for array in chosen)
        ids, self._places = np.unique(chosen.items, return_inverse=True)
        (self._route,) = self.vectors.exchange.routes([torch.from_numpy(ids.astype(np.int32)).to(group.device)])

    def _pooled(self, items: Tensor) -> Tensor:
        """The rows of the pool as they are now."""
        assert self._route is not None
        rows = self.vectors.exchange.fetch(items, self._route)
        return rows[torch.from_numpy(self._places).to(rows.device)]
