"""Embeddings as they were at the end of an epoch, each process its rows: what a prior that follows scores reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bayesneg.distributed.sharding.exchange import Exchange
from bayesneg.distributed.sharding.owners import distinct
from bayesneg.distributed.supported import parts_of
from bayesneg.interfaces import NegativeSampler, Scorer
from bayesneg.samplers.posterior.sampler import PosteriorSampler


class PastEmbeddings:
    """As declared by :class:`~bayesneg.interfaces.EmbeddingsInParts`.

    Args:
        users: The embeddings (n, d) of this process's users.
        items: The embeddings (n, d) of this process's items.
        exchange: Who has which items, and how their rows are fetched.
        first_user: The number of this process's first user.
    """

    def __init__(self, users: Tensor, items: Tensor, exchange: Exchange, first_user: int) -> None:
        self.users = users.detach().to("cpu", copy=True).numpy()
        self.first_user = first_user
        self._shard, self._exchange = items.detach().clone(), exchange
        self._pool: tuple[np.ndarray, np.ndarray] | None = None  # items, ascending, and their rows

    @property
    def items(self) -> np.ndarray:
        return self._shard.cpu().numpy()

    def scores(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        ids, rows = self._fetched(items)
        w, h = self.users[users - self.first_user], rows[np.searchsorted(ids, items)]
        return np.einsum("...d,...d->...", w, h)

    def read_ahead(self, items: np.ndarray) -> None:
        self._pool = self._fetched(items)

    def pool_scores(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        assert self._pool is not None
        ids, rows = self._pool
        found: np.ndarray = self.users[users[:, 0] - self.first_user] @ rows[np.searchsorted(ids, items[0])].T
        return found

    def total(self, part: Any) -> np.ndarray:
        group = self._exchange.group
        return group.sum(torch.from_numpy(np.array(part)).to(group.device), "prior").cpu().numpy()

    def _fetched(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each item once, ascending, and their rows."""
        ids = distinct(torch.from_numpy(np.asarray(items, dtype=np.int32).ravel()))
        (route,) = self._exchange.routes([ids.to(self._shard.device)])
        return ids.numpy(), self._exchange.fetch(self._shard, route).cpu().numpy()


def reread(sampler: NegativeSampler, scorer: Scorer) -> None:
    """Give a resumed sampler the embeddings that its prior had read when the checkpoint was written.

    A checkpoint is written at the end of an epoch, where the prior has read the embeddings of the model, which the
    checkpoint has.

    Args:
        sampler: The sampler, with its state.
        scorer: The model, with its state.
    """
    for part in parts_of(sampler):
        if isinstance(part, PosteriorSampler) and part.parts().prior.uses_scores:
            part.parts().prior.end_epoch(scorer)
