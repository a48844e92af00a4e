"""A model in training on several processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.distributed.catalogue import ShardedScorer
from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.knots import OwnKnots
from bayesneg.distributed.parts import DrawnPart, OwnBlock, OwnPairs
from bayesneg.distributed.sharding.order import KeyedOrder
from bayesneg.distributed.sharding.owners import Owners, check_sizes
from bayesneg.distributed.sharding.past_embeddings import PastEmbeddings
from bayesneg.distributed.sharding.vectors import vectors_of
from bayesneg.distributed.steps import DistributedSteps
from bayesneg.distributed.supported import draws_together
from bayesneg.errors import InputError
from bayesneg.interfaces import (
    BPR_LOSS,
    NO_LABELS,
    Batch,
    Embeddings,
    Loss,
    Measured,
    NegativeSampler,
    OwnPart,
    RuleSampler,
    Sampled,
)
from bayesneg.models.torch.device import memory_named, one_ahead
from bayesneg.models.torch.learner import EXAMPLES, NUMBERS, THRESHOLDS, learns_one
from bayesneg.models.torch.lightgcn import LightGCN

NO_TABLES = "the embeddings are divided among processes and no process has them all; export the run, or train in one"


class DistributedLearner:
    """A model whose embeddings are divided among processes; also the scorer that samplers and evaluation see.

    All processes call its methods together, with the same arguments.

    Args:
        settings: The model.
        train: The training pairs of all processes.
        rng: The stream of initial embeddings.
        group: The processes.
    """

    def __init__(self, settings: LightGCN, train: Interactions, rng: np.random.Generator, group: ProcessGroup) -> None:
        self.settings, self.train, self.group = settings, train, group
        check_sizes(train, self.group.size)
        self.owners = Owners.balanced(train.indptr, self.group.size)
        self.pairs = OwnPairs(train, self.owners, self.group)
        with memory_named(self.group.device, settings):
            self.vectors = vectors_of(settings)(settings, self.group, self.pairs.rows, self.owners, rng)
        self._steps: DistributedSteps | None = None
        self._knots: OwnKnots | None = None
        self._block_is_new = True
        self._thresholds: Tensor | None = None  # (n,) of this process's users
        self._known: tuple[np.ndarray, np.ndarray] | None = None  # users and items that an earlier run has learned
        self._kept: tuple[Tensor, Tensor] | None = None  # users of this process, and what an earlier run ranks them by
        here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # processes of this host
        self._threads = max(1, (os.cpu_count() or 1) // here) if self.group.device.type == "cuda" else 1

    # ---------------------------------------------------------------------------------------------------- as a scorer

    @property
    def n_users(self) -> int:
        return self.train.n_users

    @property
    def n_items(self) -> int:
        return self.train.n_items

    @property
    def n_layers(self) -> int:
        """As declared by :class:`~bayesneg.interfaces.LayeredScorer`."""
        return 1

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return self._in_training().score(users, items)

    def score_all(self, users: np.ndarray) -> np.ndarray:
        return self._in_training().score_all(users)

    def embeddings(self) -> Embeddings:
        raise InputError(NO_TABLES)

    def own_part(self) -> OwnPart:
        """As declared by :class:`~bayesneg.interfaces.ScorerInParts`."""
        vectors, factors = self.vectors, self.vectors.factor_owners.range_of(self.group.rank)
        return OwnPart(vectors.user_range, vectors.item_range, factors, vectors.dim)

    def embeddings_in_parts(self) -> PastEmbeddings:
        """As declared by :class:`~bayesneg.interfaces.ScorerInParts`."""
        users, items = (self.vectors.unit(part) for part in (self.vectors.users(), self.vectors.items()))
        return PastEmbeddings(users, items, self.vectors.exchange, self.pairs.first)

    def _in_training(self) -> ShardedScorer:
        """The scores as training sees them, of the embeddings as they are now."""
        users, items = (self.vectors.unit(part) for part in (self.vectors.users(), self.vectors.items()))
        return ShardedScorer(users, items, self.vectors.exchange, self.owners, self.pairs.rows)

    def refreshed_knots(
        self, batch: Batch, ranks: np.ndarray, *, moved: float, pool: int, over_all: bool
    ) -> Tensor | None:
        """As declared by :class:`~bayesneg.interfaces.RefreshesOnDevice`; once for a block of mini-batches."""
        if self._knots is None:
            rows = self.pairs.rows_within(self.group.device)
            self._knots = OwnKnots(self.vectors, rows, ranks)
        if self._block_is_new:
            self._block_is_new = False
            vectors = self.vectors.unit(self.vectors.users()), self.vectors.unit(self.vectors.items())
            which = torch.from_numpy(batch.users.astype(np.int64) - self.pairs.first).to(self.group.device)
            with torch.no_grad():
                self._knots.refresh(which, vectors, batch.epoch, moved=moved, pool=pool, over_all=over_all)
        return self._knots.knots

    # ------------------------------------------------------------------------------------------------------- training

    def train_epoch(
        self,
        sampler: NegativeSampler,
        *,
        epoch: int,
        order: np.ndarray | KeyedOrder,
        rng: np.random.Generator,
        loss: Loss = BPR_LOSS,
        labels: Mapping[str, Interactions] = NO_LABELS,
    ) -> Iterator[Sampled | Measured]:
        assert isinstance(sampler, RuleSampler)  # fit refuses others
        self.vectors.set_learning_rate(self.settings.rate_at(epoch))
        one = learns_one(self.settings, sampler, loss)
        size = self.settings.batch_size
        if one:
            size *= max(1, min(EXAMPLES, NUMBERS // sampler.width(self.n_items)) // size)
        with memory_named(self.group.device, self.settings):
            if self._steps is None:
                self._steps = DistributedSteps(self.vectors, self.pairs, labels)
            self._refresh_thresholds(loss, epoch)
            self._steps.thresholds = self._thresholds
            blocks = self.pairs.blocks(order, size, self.settings.batch_size, threads=self._threads)
            drawn = self._drawn(sampler, blocks, epoch, rng)
            yield self._steps.run(sampler, self._announced(drawn), None if one else loss)

    def _drawn(
        self, sampler: RuleSampler, blocks: Iterator[OwnBlock], epoch: int, rng: np.random.Generator
    ) -> Iterator[DrawnPart]:
        """Each block with its draws; the next one is drawn in a thread, where that takes no other process."""
        given: dict[str, Any] = {"epoch": epoch, "rng": rng, "scorer": self, "threads": self._threads}

        def drawn(block: OwnBlock) -> DrawnPart:
            part = self.pairs.part(block, self.settings.batch_size, **given)
            return DrawnPart.of(sampler, part, self.group.device)

        return map(drawn, blocks) if draws_together(sampler) else one_ahead(drawn, blocks, self.group.device)

    def _announced(self, blocks: Iterator[DrawnPart]) -> Iterator[DrawnPart]:
        for block in blocks:
            self._block_is_new = True
            yield block

    def _refresh_thresholds(self, loss: Loss, epoch: int) -> None:
        """The users' K-th highest scores, where the loss asks for them; recomputed every few epochs."""
        rank = loss.threshold_at
        if rank is None or (self._thresholds is not None and (epoch - 1) % loss.threshold_every):
            return
        found = self._in_training().kth_highest(min(rank, self.n_items))
        self._thresholds = torch.from_numpy(found).to(self.group.device)

    # ------------------------------------------------------------------------------------------------ from another run

    def start_part_from(
        self,
        embeddings: Embeddings,
        matched: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
        known: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """As declared by :class:`~bayesneg.interfaces.StartsInParts`."""
        vectors, self._known = self.vectors, known
        own = (vectors.user_rows, vectors.user_range), (vectors.item_rows, vectors.item_range)
        for (table, (first, last)), before, (here, there) in zip(own, embeddings, matched, strict=True):
            inside = (here >= first) & (here < last)
            rows = torch.from_numpy(np.ascontiguousarray(before[there[inside]], dtype=np.float32))
            table.rows[torch.from_numpy(here[inside] - first).to(self.group.device)] = rows.to(self.group.device)
        vectors.changed()

    def keep_users(self, users: np.ndarray, ranked_by: np.ndarray) -> None:
        """As declared by :class:`~bayesneg.interfaces.KeepsUsers`."""
        own = (users >= self.pairs.first) & (users < self.pairs.last)
        rows = torch.from_numpy(np.ascontiguousarray(ranked_by[own], dtype=np.float32))
        which = torch.from_numpy(users[own] - self.pairs.first)
        self._kept = which.to(self.group.device), rows.to(self.group.device)

    # ---------------------------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, np.ndarray]:
        """The part of this process; :meth:`own_part` says which rows it has."""
        more = {} if self._thresholds is None else {f"users{THRESHOLDS}": self._thresholds}
        return {key: value.detach().cpu().numpy().copy() for key, value in (self.vectors.state() | more).items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        for key, value in self.vectors.state().items():
            value.copy_(torch.from_numpy(np.array(state[key])))
        self.vectors.changed()
        found = state.get(f"users{THRESHOLDS}")
        self._thresholds = None if found is None else torch.from_numpy(np.array(found)).to(self.group.device)

    def is_finite(self) -> bool:
        return self.vectors.is_finite()

    def frozen(self) -> ShardedScorer:
        """A copy of this process's rows, by which all processes rank together."""
        users, items = self.vectors.users().clone(), self.vectors.items().clone()
        if self._kept is not None:
            users[self._kept[0]] = self._kept[1]
        if self.settings.ranks_by_cosine:
            users, items = self.vectors.unit(users, always=True), self.vectors.unit(items, always=True)
        return ShardedScorer(
            users, items, self.vectors.exchange, self.owners, self.pairs.rows, cold=True, known=self._known
        )
