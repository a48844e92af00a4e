"""Draws that a device makes itself, from the plans that samplers declare."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Batch, RuleSampler
from bayesneg.kernels.reference.pools import SharedPool
from bayesneg.kernels.torch.choices.base import DrawTensors
from bayesneg.kernels.torch.draws import RowKeys, TorchDraws
from bayesneg.kernels.torch.score_lists import TrainingRows
from bayesneg.models.torch.negatives import held_out_pairs, on_device


class DeviceDraws:
    """The draws of a mini-batch, made where the embeddings are.

    Args:
        train: The training interactions.
        rows: The same on the device.
    """

    def __init__(self, train: Interactions, rows: TrainingRows) -> None:
        self.train, self.keys = train, RowKeys(rows)
        self.device = rows.items.device
        self.generator = torch.Generator(device=self.device)
        self._plan: TorchDraws | None = None
        self._epoch = 0
        self._trained_on: Tensor | None = None  # (n_pairs,)

    def draws(self, sampler: RuleSampler, batch: Batch, users: Tensor, positives: Tensor) -> DrawTensors:
        """As declared by :class:`~bayesneg.models.torch.negatives.DrawSource`."""
        found = self._planned(sampler, batch).draws(users, self.generator)
        if not sampler.holds_out:
            return found
        return found._replace(sizes=found.sizes * self.trained_on(sampler, batch, users, positives))

    def pool(self, sampler: RuleSampler, batch: Batch, positives: Tensor) -> SharedPool:
        """As declared by :class:`~bayesneg.models.torch.negatives.DrawSource`."""
        return self._planned(sampler, batch).pool(positives, self.generator)

    def trained_on(self, sampler: RuleSampler, batch: Batch, users: Tensor, positives: Tensor) -> Tensor:
        """As declared by :class:`~bayesneg.models.torch.negatives.DrawSource`; a pair outside training is kept."""
        if self._trained_on is None:
            held_out = held_out_pairs(sampler, whole_batch(self.train, batch))
            self._trained_on = on_device(~held_out, torch.bool, self.device)
        places, known = self.keys.positions(users, positives)
        return self._trained_on[places] | ~known

    def _planned(self, sampler: RuleSampler, batch: Batch) -> TorchDraws:
        """The plan of the epoch: a prior that follows training has another form in each."""
        if self._plan is None or batch.epoch != self._epoch:
            plan = sampler.plan(batch)
            assert plan is not None  # otherwise the host draws
            self._plan, self._epoch = TorchDraws(plan, self.keys), batch.epoch
        return self._plan


def whole_batch(train: Interactions, like: Batch) -> Batch:
    """All training pairs as one batch."""
    positions = np.arange(len(train))
    return Batch(train.users, train.indices, positions, like.epoch, train, like.scorer, like.rng)
