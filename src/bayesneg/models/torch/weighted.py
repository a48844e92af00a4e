"""Mini-batches with several weighted negatives, or a shared pool, and any loss.

Each batch is drawn, weighed and learned from on the model's device. What was sampled is measured on some examples of
each batch, on the device too: sums are fetched once per block of batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Batch, Loss, Measured, Negatives, NegativeSampler, Sums
from bayesneg.kernels.reference.losses import LossValues, Scores
from bayesneg.kernels.torch.pools import sums_in_rows
from bayesneg.kernels.torch.score_lists import TrainingRows
from bayesneg.models.torch.negatives import BatchNegatives, HostDraws, check_batch_size, on_device, rows_on
from bayesneg.models.torch.trainable import Trainable

MEASURED = 128  # examples of a mini-batch whose negatives are measured
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
        self.sums = SampledSums(labels, self.device)
        self.negatives = BatchNegatives(train, rows, HostDraws(self.device), scores_at_once=trainable.settings.chunk)
        self.thresholds: Tensor | None = None  # (n_users,)

    def run(self, sampler: NegativeSampler, batches: Iterator[Batch]) -> Iterator[Measured]:
        """Train on the batches; yields what was sampled, every few batches."""
        n = 0
        for n, batch in enumerate(batches, start=1):
            check_batch_size(sampler, batch, self.trainable.settings.batch_size)
            self._step(sampler, batch)
            if n % BATCHES == 0:
                yield self.sums.fetched()
        if n % BATCHES:
            yield self.sums.fetched()
        self.negatives.store()

    def _step(self, sampler: NegativeSampler, batch: Batch) -> None:
        users, positives = (on_device(part, torch.int64, self.device) for part in (batch.users, batch.positives))
        scores = self.trainable.forward(users)
        with torch.no_grad():
            negatives = self.negatives.of(sampler, batch, users, positives, scores)
        more: dict[str, Any] = {} if self.thresholds is None else {"threshold": self.thresholds[users]}
        given, values = self.trainable.learn(scores, positives, negatives, self.loss, **more)
        self.sums.add(users, negatives, given, values)


class SampledSums:
    """What was sampled, as sums on the device: weights, information, gradients, and the part on false negatives.

    Args:
        labels: Known false negatives, by the name of the measure.
        device: The device of the tensors that are added.
    """

    def __init__(self, labels: Mapping[str, Interactions], device: torch.device) -> None:
        self.labels = {name: rows_on(data, device) for name, data in labels.items()}
        self.sums = torch.zeros(3 + 3 * len(self.labels), dtype=torch.float64, device=device)
        self.counts = torch.zeros(2, dtype=torch.int64, device=device)  # measured, skipped

    @torch.no_grad()
    def add(self, users: Tensor, negatives: Negatives, given: Scores, values: LossValues) -> None:
        """Add some examples of a batch."""
        weights = given.weights[:MEASURED]
        there = (given.weights > 0).any(dim=1)
        self.counts += torch.stack([there[:MEASURED].sum(), (~there).sum()])
        info = weights * torch.sigmoid(given.negatives[:MEASURED] - given.positive[:MEASURED, None])
        parts = torch.stack([weights, info, values.by_negatives[:MEASURED].abs()])  # (3, b, K)
        found = [parts.sum(dim=(1, 2), dtype=torch.float64)]
        for rows in self.labels.values():
            found.append(sums_in_rows(parts, users[:MEASURED], negatives.items, rows))
        self.sums += torch.cat(found)

    def fetched(self) -> Measured:
        """The sums, which begin again."""
        sums, (examples, skipped) = self.sums.tolist(), self.counts.tolist()
        self.sums.zero_()
        self.counts.zero_()
        all_, *false = (Sums(*sums[first : first + 3]) for first in range(0, len(sums), 3))
        return Measured(examples, skipped, all_, dict(zip(self.labels, false, strict=True)))


def thresholds_of(scores: Any, n_users: int, rank: int, *, at_once: int) -> Tensor:
    """The ``rank``-th highest score (n_users,) of each user; ``scores(users)`` gives score lists (b, n_items)."""
    found = []
    for users in torch.arange(n_users).split(at_once):  # type: ignore[no-untyped-call]
        lists = scores(users)
        found.append(lists.topk(min(rank, lists.shape[1]), dim=1).values[:, -1])
    return torch.cat(found)
