"""Mini-batches with several weighted negatives, or a shared pool, and any loss.

Each batch is drawn, weighed and learned from on the model's device. What was sampled is measured on some examples of
each batch, on the device too: sums are fetched once per block of batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, Loss, Measured, Negatives, NegativeSampler, RuleSampler, Sums
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.losses import LossValues, Scores
from bayesneg.kernels.reference.pools import SharedPool
from bayesneg.kernels.torch.choices.base import DrawTensors, TensorBatch, torch_choice
from bayesneg.kernels.torch.pools import TorchPoolWeights, pooled, slots_of
from bayesneg.kernels.torch.score_lists import TrainingRows, contains
from bayesneg.kernels.torch.selections import EXECUTIONS, TorchOne, TorchSelection, torch_selection
from bayesneg.models.torch.batch_scores import DirectScores, EmbeddingScores
from bayesneg.models.torch.steps import first_of_its_user
from bayesneg.models.torch.trainable import Trainable
from bayesneg.models.validate import validate_weighted

MEASURED = 128  # examples of a mini-batch whose negatives are measured
BATCHES = 32  # whose sums are fetched together


class WeightedSteps:
    """The steps of one epoch with one sampler and one loss.

    Args:
        trainable: The module with its optimizer.
        rows: The training rows on the device.
        loss: The loss.
        labels: Known false negatives, by the name of the measure.
    """

    def __init__(
        self, trainable: Trainable, rows: TrainingRows, loss: Loss, labels: Mapping[str, Interactions]
    ) -> None:
        self.trainable, self.rows, self.loss, self.device = trainable, rows, loss, trainable.device
        self.labels = {name: rows_on(data, self.device) for name, data in labels.items()}
        self.weigher: TorchPoolWeights | None = None
        self.selection: TorchSelection | None = None
        self.thresholds: Tensor | None = None  # (n_users,)
        self.sums = torch.zeros(3 + 3 * len(self.labels), dtype=torch.float64, device=self.device)
        self.counts = torch.zeros(2, dtype=torch.int64, device=self.device)  # measured, skipped

    def run(self, sampler: NegativeSampler, batches: Iterator[Batch]) -> Iterator[Measured]:
        """Train on the batches; yields what was sampled, every few batches."""
        n = 0
        for n, batch in enumerate(batches, start=1):
            self._step(sampler, batch)
            if n % BATCHES == 0:
                yield self._fetched()
        if n % BATCHES:
            yield self._fetched()
        if isinstance(self.selection, TorchOne):
            self.selection.choice.store()

    def _step(self, sampler: NegativeSampler, batch: Batch) -> None:
        users, positives = (self._tensor(part) for part in (batch.users, batch.positives))
        scores = self.trainable.forward(users)
        with torch.no_grad():
            negatives = self._negatives(sampler, batch, users, positives, scores)
        more: dict[str, Any] = {} if self.thresholds is None else {"threshold": self.thresholds[users]}
        given, values = self.trainable.learn(scores, positives, negatives, self.loss, **more)
        with torch.no_grad():
            self._measure(users, negatives, given, values)

    # ------------------------------------------------------------------------------------------------------ negatives

    def _negatives(
        self,
        sampler: NegativeSampler,
        batch: Batch,
        users: Tensor,
        positives: Tensor,
        scores: EmbeddingScores | DirectScores,
    ) -> Negatives:
        if not isinstance(sampler, RuleSampler):
            return self._given(sampler.sample(batch), batch)
        rule = sampler.rule(batch)
        if sampler.is_shared:
            pool = self._pool(sampler, batch)
            if self.weigher is None or type(self.weigher.rule) is not type(rule):
                self.weigher = TorchPoolWeights(rule, self.device)
            else:
                self.weigher.update(rule)
            tensors = self._tensors(batch, users, positives, sampler.draws(batch) if sampler.holds_out else None)
            weights = self.weigher.weigh(pool, tensors, self.rows, scores, scores.of_pool(pool.items))
            if sampler.holds_out:
                weights *= (tensors.draws.sizes > 0)[:, None]
            return Negatives(pool.items, weights, pool.log_q if pool.corrects else None)
        if self.selection is None or type(self.selection.rule) is not type(rule):
            self.selection = torch_selection(rule, self.device)
            if isinstance(self.selection, TorchOne):
                self.selection.choice.load(rule)
        self.selection.update(rule)
        draws = sampler.draws(batch)
        items, weights = self.selection.select(self._tensors(batch, users, positives, draws, rule), self.rows, scores)
        log_q = sampler.log_q()
        q = None if log_q is None else self._log_q(log_q)[items.clamp(min=0)]
        return Negatives(items.clamp(min=0), weights, q)

    def _given(self, answer: Any, batch: Batch) -> Negatives:
        """The negatives of a custom sampler, on the device."""
        found = validate_weighted(answer, batch)
        items = self._tensor(found.items)
        weights = torch.as_tensor(found.weights, dtype=torch.float32, device=self.device)
        log_q = None if found.log_q is None else torch.as_tensor(found.log_q, dtype=torch.float32, device=self.device)
        return Negatives(items.clamp(min=0), weights, log_q, found.vectors)

    def _pool(self, sampler: RuleSampler, batch: Batch) -> SharedPool:
        pool = sampler.pool(batch)
        log_q = None if pool.log_q is None else torch.as_tensor(pool.log_q, dtype=torch.float32, device=self.device)
        return SharedPool(self._tensor(pool.items), log_q, pool.corrects)

    def _log_q(self, log_q: np.ndarray) -> Tensor:
        return torch.as_tensor(log_q, dtype=torch.float32, device=self.device)

    def _tensors(
        self, batch: Batch, users: Tensor, positives: Tensor, draws: Draws | None, rule: Any = None
    ) -> TensorBatch:
        """The batch on the device; ranks and firsts only for rules that ask for them."""
        train, most_rank = batch.train, 0
        firsts = torch.zeros(0, dtype=torch.int64, device=self.device)
        if rule is not None and type(rule) not in EXECUTIONS and draws is not None:
            choice = torch_choice(rule)
            most_rank = choice.highest_rank(rule, draws, train.n_items)
            if choice.needs_firsts:
                firsts = self._tensor(first_of_its_user(batch.users))
        empty = np.zeros((len(users), 0))
        draws = draws or Draws(empty, np.zeros(0), empty, empty)
        whole = [self._tensor(part) for part in (draws.candidates, draws.sizes)]
        real = [torch.as_tensor(part, device=self.device) for part in (draws.priors, draws.uniforms)]
        starts = self.rows.indptr[users]
        counts = self.rows.indptr[users + 1] - starts
        capacity, chunk = int(train.counts[batch.users].sum()), max(1, self.trainable.settings.chunk // len(users))
        return TensorBatch(
            users, positives, starts, counts, firsts, DrawTensors(*whole, *real), capacity, most_rank, chunk
        )

    def _tensor(self, array: np.ndarray) -> Tensor:
        found = torch.from_numpy(np.asarray(array).astype(np.int64))
        if self.device.type == "cuda":
            return found.pin_memory().to(self.device, non_blocking=True)
        return found

    # ------------------------------------------------------------------------------------------------------- measures

    def _measure(self, users: Tensor, negatives: Negatives, given: Scores, values: LossValues) -> None:
        """Add the sums of some examples: weights, information, gradients, and the part on known false negatives."""
        weights = given.weights[:MEASURED]
        there = (given.weights > 0).any(dim=1)
        self.counts += torch.stack([there[:MEASURED].sum(), (~there).sum()])
        info = weights * torch.sigmoid(given.negatives[:MEASURED] - given.positive[:MEASURED, None])
        parts = torch.stack([weights, info, values.by_negatives[:MEASURED].abs()])  # (3, b, K)
        found = [parts.sum(dim=(1, 2), dtype=torch.float64)]
        for rows in self.labels.values():
            found.append(self._false(parts, users[:MEASURED], negatives, rows))
        self.sums += torch.cat(found)

    def _false(self, parts: Tensor, users: Tensor, negatives: Negatives, rows: TrainingRows) -> Tensor:
        """The sums (3,) over the negatives that are in the rows of their users."""
        if not negatives.is_shared:
            false = contains(rows, users, negatives.items[:MEASURED])
            return (parts * false).sum(dim=(1, 2), dtype=torch.float64)
        n_pool = len(negatives.items)
        slots = slots_of(negatives.items, rows.n_items)
        cells = pooled(rows.indptr, rows.items, users, slots, n_pool, rows.longest).cells
        flat = torch.nn.functional.pad(parts.flatten(1), (0, 1))  # pairs outside the pool fall on the last, 0
        return flat.index_select(1, cells).sum(dim=1, dtype=torch.float64)

    def _fetched(self) -> Measured:
        sums, (examples, skipped) = self.sums.tolist(), self.counts.tolist()
        self.sums.zero_()
        self.counts.zero_()
        all_, *false = (Sums(*sums[first : first + 3]) for first in range(0, len(sums), 3))
        return Measured(examples, skipped, all_, dict(zip(self.labels, false, strict=True)))


def rows_on(data: Interactions, device: torch.device) -> TrainingRows:
    """Interactions on a device."""
    indptr, items = torch.from_numpy(data.indptr.copy()), torch.from_numpy(data.indices.copy())
    return TrainingRows(indptr.to(device), items.to(device), data.n_items, int(data.counts.max(initial=0)))


def thresholds_of(scores: Any, n_users: int, rank: int, *, at_once: int) -> Tensor:
    """The ``rank``-th highest score (n_users,) of each user; ``scores(users)`` gives score lists (b, n_items)."""
    found = []
    for users in torch.arange(n_users).split(at_once):  # type: ignore[no-untyped-call]
        lists = scores(users)
        found.append(lists.topk(min(rank, lists.shape[1]), dim=1).values[:, -1])
    return torch.cat(found)


def check_batch(sampler: NegativeSampler, batch_size: int) -> None:
    """In-batch negatives need other examples in the batch."""
    if isinstance(sampler, RuleSampler) and sampler.is_shared and batch_size < 2:
        raise InputError(
            f"{type(sampler).__name__} shares its negatives among the examples of a batch; set batch_size to 2 or more"
        )
