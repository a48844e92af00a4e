"""This process's part of the mini-batches: which pairs are its own, and what is drawn for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.sharding.order import KeyedOrder
from bayesneg.distributed.sharding.owners import Owners, window
from bayesneg.interfaces import Batch, RuleSampler, Scorer, Share
from bayesneg.kernels.reference.plans import PoolPlan
from bayesneg.kernels.reference.pools import SharedPool
from bayesneg.kernels.torch.choices.base import DrawTensors
from bayesneg.kernels.torch.score_lists import TrainingRows
from bayesneg.models.torch.negatives import held_out_pairs, on_device
from bayesneg.samplers.posterior.sampler import PosteriorSampler


class Part(NamedTuple):
    """This process's part of a block of mini-batches."""

    batch: Batch  # its pairs in the block
    counts: np.ndarray  # (n, size) pairs of each process in each mini-batch
    slices: list[slice]  # its pairs of each mini-batch
    firsts: np.ndarray  # (n,) where each mini-batch begins in the block

    def of(self, number: int) -> Batch:
        """Its pairs in one mini-batch."""
        block, part = self.batch, self.slices[number]
        assert block.share is not None
        total = int(self.counts[number].sum())
        share = Share(block.share.places[part] - self.firsts[number], total, block.share.start)
        return Batch(
            block.users[part], block.positives[part], block.positions[part], block.epoch, block.train, block.scorer,
            block.rng, block.threads, share,
        )  # fmt: skip


class OwnBlock(NamedTuple):
    """This process's pairs in a block."""

    n: int  # pairs of all processes
    places: np.ndarray  # (k,) of its pairs in the block, ascending
    own: np.ndarray  # (k,) the pairs
    counts: np.ndarray  # (mini-batches, size) pairs of each process


class OwnPairs:
    """The training pairs of this process's users.

    Args:
        train: The training pairs of all processes.
        owners: Which process has which users.
        group: The processes.
    """

    def __init__(self, train: Interactions, owners: Owners, group: ProcessGroup) -> None:
        self.group, self.owners = group, owners
        self.first, self.last = owners.range_of(group.rank)
        self.rows = window(train, self.first, self.last)
        self.bounds = np.asarray(train.indptr[owners.bounds])  # (size + 1,) pairs before each process's

    def rows_within(self, device: torch.device) -> TrainingRows:
        """The pairs on a device, with this process's users numbered from 0."""
        indptr = torch.from_numpy(self.rows.indptr[self.first : self.last + 1].copy()).to(device)
        items = torch.from_numpy(self.rows.indices.copy()).to(device)
        return TrainingRows(indptr, items, self.rows.n_items, int(self.rows.counts.max(initial=0)))

    def blocks(self, order: np.ndarray | KeyedOrder, size: int, batch_size: int, *, threads: int) -> Iterator[OwnBlock]:
        """Which of the pairs of each block of ``size`` are this process's; all processes ask for it together."""
        which = self._computed if isinstance(order, KeyedOrder) else self._found
        return which(order, size, batch_size, threads)  # type: ignore[arg-type]

    def part(
        self, block: OwnBlock, batch_size: int, *, epoch: int, rng: np.random.Generator, scorer: Scorer, threads: int
    ) -> Part:
        """The part of a block, in mini-batches of ``batch_size``."""
        start, (n, places, own, counts) = int(self.bounds[self.group.rank]), block
        firsts = np.arange(0, n, batch_size)
        edges = np.searchsorted(places, [*firsts, n]).tolist()
        batch = Batch(
            self.rows.users[own - start], self.rows.indices[own - start], own, epoch, self.rows, scorer, rng, threads,
            Share(places, n, start),
        )  # fmt: skip
        return Part(batch, counts, [slice(low, high) for low, high in pairwise(edges)], firsts)

    def _found(self, order: np.ndarray, size: int, batch_size: int, threads: int) -> Iterator[OwnBlock]:
        """This process's pairs among those of a block, all of which it knows."""
        start, stop = self.bounds[self.group.rank], self.bounds[self.group.rank + 1]
        for begin in range(0, len(order), size):
            positions = order[begin : begin + size]
            owner = np.searchsorted(self.bounds[1:-1], positions, side="right")
            places = np.flatnonzero((positions >= start) & (positions < stop))
            number, n_batches = np.arange(len(positions)) // batch_size, -(-len(positions) // batch_size)
            counts = np.bincount(number * self.group.size + owner, minlength=n_batches * self.group.size)
            yield OwnBlock(len(positions), places, positions[places], counts.reshape(n_batches, self.group.size))

    def _computed(self, order: KeyedOrder, size: int, batch_size: int, threads: int) -> Iterator[OwnBlock]:
        """The same where a process knows the places of its own pairs alone; the others say how many they have."""
        start, stop = self.bounds[self.group.rank : self.group.rank + 2].tolist()
        whole = order.places(start, stop, threads=threads)
        for begin in range(0, len(order), size):
            n = min(size, len(order) - begin)
            low, high = np.searchsorted(whole, [begin, begin + n])
            places = whole[low:high] - begin
            edges = np.searchsorted(places, [*range(0, n, batch_size), n])
            own = torch.from_numpy(np.diff(edges)[None]).to(self.group.device)
            counts = self.group.gather(own, [1] * self.group.size, "counts").T.cpu().numpy()
            yield OwnBlock(n, places, order.pairs(whole[low:high], threads=threads), counts)


class DrawnPart(NamedTuple):
    """This process's part of a block of mini-batches, with what is drawn for it, on the device."""

    part: Part
    users: Tensor  # (n,) int64
    positives: Tensor  # (n,) int64
    draws: DrawTensors | None  # of each example; None where they share a pool
    sizes: np.ndarray | None  # (n,) how many are drawn for each, in host memory

    @classmethod
    def of(cls, sampler: RuleSampler, part: Part, device: torch.device) -> DrawnPart:
        """Draw for a part, where that needs no other process and no score."""
        users, positives = (on_device(array, torch.int64, device) for array in (part.batch.users, part.batch.positives))
        if sampler.is_shared:
            return cls(part, users, positives, None, None)
        drawn, kinds = sampler.draws(part.batch), (torch.int64, torch.int64, torch.float64, torch.float64)
        tensors = (on_device(array, kind, device) for array, kind in zip(drawn, kinds, strict=True))
        return cls(part, users, positives, DrawTensors(*tensors), drawn.sizes)


class PartDraws:
    """What was drawn for a mini-batch, on the device; as a source of draws."""

    def __init__(self, group: ProcessGroup) -> None:
        self.group, self.device = group, group.device
        self.drawn: DrawTensors | None = None

    def draws(self, sampler: RuleSampler, batch: Batch, users: Tensor, positives: Tensor) -> DrawTensors:
        assert self.drawn is not None
        return self.drawn

    def pool(self, sampler: RuleSampler, batch: Batch, positives: Tensor) -> SharedPool:
        """The pool that the examples of all processes share."""
        plan = sampler.plan(batch)
        in_batch = isinstance(plan, PoolPlan) and plan.size is None
        positives_of_all = self._gathered(batch) if in_batch else batch.positives
        pool = sampler.pool(replace(batch, positives=positives_of_all, share=None))
        if isinstance(sampler, PosteriorSampler):
            sampler.parts().prior.read_ahead(pool.items)
        log_q = None if pool.log_q is None else on_device(pool.log_q, torch.float32, self.device)
        return SharedPool(on_device(pool.items, torch.int64, self.device), log_q, pool.corrects)

    def _gathered(self, batch: Batch) -> np.ndarray:
        """The positives of all processes in their order."""
        share = batch.share
        assert share is not None
        if self.group.size == 1:
            return batch.positives
        positives = torch.zeros(share.total, dtype=torch.int32)
        positives[torch.from_numpy(share.places)] = torch.from_numpy(np.ascontiguousarray(batch.positives))
        return self.group.sum(positives.to(self.device), "positives").cpu().numpy()

    def trained_on(self, sampler: RuleSampler, batch: Batch, users: Tensor, positives: Tensor) -> Tensor:
        return on_device(~held_out_pairs(sampler, batch), torch.bool, self.device)
