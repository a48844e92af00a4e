"""The rules of RNS, PNS and DNS for a batch at once, in torch."""

from __future__ import annotations

import torch
from torch import Tensor

from bayesneg.kernels.reference.choices.take import TakeFirst, TakeHighest
from bayesneg.kernels.torch.choices.base import BatchScores, TensorBatch, TorchChoice, executes
from bayesneg.kernels.torch.score_lists import INFINITY, TrainingRows, numbers


@executes(TakeFirst)
class TorchTakeFirst(TorchChoice):
    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        return batch.draws.candidates[:, self.rule.position]


@executes(TakeHighest)
class TorchTakeHighest(TorchChoice):
    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        drawn = batch.draws
        x = scores.of(drawn.candidates.clamp(min=0))
        position = choose_highest(x, drawn.sizes, self.rule.top, drawn.uniforms[:, 0])
        return drawn.candidates.gather(1, position[:, None])[:, 0]


def choose_highest(x: Tensor, sizes: Tensor, top: int, uniforms: Tensor) -> Tensor:
    """Position (B,) of one of the ``top`` highest of x (B, m), uniformly; the earlier position wins a tie."""
    beyond = numbers(x.shape[1], x.device) >= sizes[:, None]
    order = x.masked_fill(beyond, -INFINITY).sort(dim=1, descending=True, stable=True).indices
    return order.gather(1, (uniforms * torch.clamp(sizes, max=top)).long()[:, None])[:, 0]
