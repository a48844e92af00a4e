"""Mini-batches with several weighted negatives, or a shared pool, and any loss.

Each batch is drawn, weighed and learned from on the model's device. What was sampled is measured on some examples of
every few batches, on the device too: it takes almost as many kernels as learning. Sums are fetched once per block of
batches. On a GPU a step with a shared pool is recorded as a CUDA graph, with its measures and without, which the others
replay: its kernels take less time than launching them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Batch, Loss, Measured, Negatives, NegativeSampler, RuleSampler, Sums
from bayesneg.interfaces.loss import check_has_minimum
from bayesneg.kernels.reference.losses import LossValues, Scores
from bayesneg.kernels.reference.pools import EqualWeights, SharedPool
from bayesneg.kernels.torch.losses import counted
from bayesneg.kernels.torch.pools import sums_in_rows
from bayesneg.kernels.torch.score_lists import TrainingRows
from bayesneg.models.torch.device import rows_on
from bayesneg.models.torch.negatives import BatchNegatives, HostDraws, check_batch_size, on_device
from bayesneg.models.torch.trainable import Trainable

MEASURED = 128  # examples of a mini-batch whose negatives are measured, or
MEASURED_EVERY = 4  # times as many of one in so many batches
BATCHES = 32  # whose sums are fetched together


class WeightedSteps:
    """The steps of one epoch with one sampler and one loss.

    Args:
        trainable: The module with its optimizer.
        train: The training interactions.
        rows: The same on the device.
        loss: The loss.
        labels: Known false negatives, by the name of the measure.
    """

    def __init__(
        self,
        trainable: Trainable,
        train: Interactions,
        rows: TrainingRows,
        loss: Loss,
        labels: Mapping[str, Interactions],
    ) -> None:
        self.trainable, self.loss, self.device = trainable, loss, trainable.device
        self.measured_every = max(1, min(MEASURED_EVERY, trainable.settings.batch_size // MEASURED))
        self.sums = SampledSums(labels, self.device, MEASURED * self.measured_every)
        self.negatives = BatchNegatives(train, rows, HostDraws(self.device), scores_at_once=trainable.settings.chunk)
        self.thresholds: Tensor | None = None  # (n_users,)
        self._recordings: dict[bool, RecordedStep] = {}  # whether the step is measured → its graph

    def run(self, sampler: NegativeSampler, batches: Iterator[Batch]) -> Iterator[Measured]:
        """Train on the batches; yields what was sampled, every few batches."""
        n = 0
        for n, batch in enumerate(batches, start=1):
            check_batch_size(sampler, batch, self.trainable.settings.batch_size)
            self._step(sampler, batch, measured=(n - 1) % self.measured_every == 0)
            if n % BATCHES == 0:
                yield self.sums.fetched()
        if n % BATCHES:
            yield self.sums.fetched()
        self.negatives.store()

    def _step(self, sampler: NegativeSampler, batch: Batch, *, measured: bool) -> None:
        if self._recordable(sampler, batch):
            assert isinstance(sampler, RuleSampler)
            self._replay(sampler, batch, measured=measured)
            return
        users, positives = (on_device(part, torch.int64, self.device) for part in (batch.users, batch.positives))
        self._learn(sampler, batch, users, positives, measured=measured)

    def _learn(
        self,
        sampler: NegativeSampler,
        batch: Batch,
        users: Tensor,
        positives: Tensor,
        pool: SharedPool | None = None,
        *,
        measured: bool,
    ) -> None:
        layered = isinstance(sampler, RuleSampler) and sampler.makes_vectors
        scores = self.trainable.forward(users, layered=layered)
        with torch.no_grad():
            negatives = self.negatives.of(sampler, batch, users, positives, scores, pool)
        if not isinstance(sampler, RuleSampler):
            cosine, said = (
                self.trainable.settings.similarity == "cosine",
                f"{type(sampler).__name__}.sample returned one",
            )
            check_has_minimum(self.loss, negatives, len(users), cosine=cosine, given=said)
        more: dict[str, Any] = {} if self.thresholds is None else {"threshold": self.thresholds[users]}
        given, values = self.trainable.learn(scores, positives, negatives, self.loss, **more)
        self.sums.count(given)
        if measured:
            self.sums.add(users, negatives, given, values)

    # ------------------------------------------------------------------------------------------------- as a CUDA graph

    def _recordable(self, sampler: NegativeSampler, batch: Batch) -> bool:
        """Whether the step is the same for all full batches; the first one is not recorded, it makes what is kept."""
        if self.device.type != "cuda" or self.loss.form() is None:
            return False
        n = len(batch.users)
        return n == self.trainable.settings.batch_size and self.negatives.recordable(sampler, n)

    def _replay(self, sampler: RuleSampler, batch: Batch, *, measured: bool) -> None:
        pool, rule = sampler.pool(batch), sampler.rule(batch)
        numbers = () if isinstance(rule, EqualWeights) else (rule.weight, rule.ramp)
        thresholds = None if self.thresholds is None else self.thresholds.data_ptr()
        same = type(rule), numbers, pool.corrects, len(pool.items), pool.log_q is None, thresholds
        recorded = self._recordings.get(measured)
        if recorded is None or recorded.same != same:
            buffers = PoolBuffers(batch, pool, self.device)
            buffers.fill(batch, pool)
            changed = [self.sums.sums, self.sums.counts]

            def step() -> None:
                self._learn(sampler, batch, *buffers.tensors(), measured=measured)

            self._recordings[measured] = RecordedStep(same, buffers, self.trainable.recorded(step, changed))
            return
        recorded.buffers.fill(batch, pool)
        recorded.graph.replay()


class PoolBuffers:
    """A batch and its pool on a GPU, at fixed addresses.

    Args:
        batch: A batch of the size of all others.
        pool: Its pool, in host memory.
        device: The GPU.
    """

    def __init__(self, batch: Batch, pool: SharedPool, device: torch.device) -> None:
        self.sizes = [len(batch.users), len(batch.users), len(pool.items)]
        self.whole = torch.empty(sum(self.sizes), dtype=torch.int64, device=device)
        self.log_q = None if pool.log_q is None else torch.empty(self.sizes[2], device=device)
        self.corrects = pool.corrects

    def fill(self, batch: Batch, pool: SharedPool) -> None:
        """Copy a batch and its pool, without waiting for the GPU."""
        packed = torch.empty(sum(self.sizes), dtype=torch.int64, pin_memory=True)
        np.concatenate((batch.users, batch.positives, pool.items), out=packed.numpy())
        self.whole.copy_(packed, non_blocking=True)
        if self.log_q is not None:
            self.log_q.copy_(on_device(pool.log_q, torch.float32, self.log_q.device))

    def tensors(self) -> tuple[Tensor, Tensor, SharedPool]:
        """The users, the positives and the pool."""
        users, positives, items = self.whole.split(self.sizes)  # type: ignore[no-untyped-call]
        return users, positives, SharedPool(items, self.log_q, self.corrects)


class RecordedStep(NamedTuple):
    """A step as a CUDA graph."""

    same: tuple[Any, ...]  # what all steps that replay it have in common
    buffers: PoolBuffers
    graph: torch.cuda.CUDAGraph


class SampledSums:
    """What was sampled, as sums on the device: weights, information, gradients, and the part on false negatives.

    Args:
        labels: Known false negatives, by the name of the measure.
        device: The device of the tensors that are added.
        examples: Number of examples of a batch that are measured, the first of it.
    """

    def __init__(self, labels: Mapping[str, Interactions], device: torch.device, examples: int = MEASURED) -> None:
        self.examples = examples
        self.labels = {name: rows_on(data, device) for name, data in labels.items()}
        self.sums = torch.zeros(3 + 3 * len(self.labels), dtype=torch.float64, device=device)
        self.counts = torch.zeros(2, dtype=torch.int64, device=device)  # measured, skipped

    @torch.no_grad()
    def count(self, given: Scores) -> None:
        """Count the examples of a batch without a negative."""
        self.counts[1] += (counted(given.weights) <= 0).sum()

    @torch.no_grad()
    def add(self, users: Tensor, negatives: Negatives, given: Scores, values: LossValues) -> None:
        """Add some examples of a batch."""
        some = slice(self.examples)
        weights = given.weights[some]
        self.counts[0] += (counted(weights) > 0).sum()
        weights = weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-30)  # an example counts as one
        info = weights * torch.sigmoid(given.negatives[some] - given.positive[some, None])
        parts = torch.stack([weights, info, values.by_negatives[some].abs()])  # (3, b, K)
        found = [parts.sum(dim=(1, 2), dtype=torch.float64)]
        for rows in self.labels.values():
            found.append(sums_in_rows(parts, users[some], negatives.items, rows))
        self.sums += torch.cat(found)

    def fetched(self) -> Measured:
        """The sums, which begin again."""
        sums, (examples, skipped) = self.sums.tolist(), self.counts.tolist()
        self.sums.zero_()
        self.counts.zero_()
        all_, *false = (Sums(*sums[first : first + 3]) for first in range(0, len(sums), 3))
        return Measured(examples, skipped, all_, dict(zip(self.labels, false, strict=True)))
