"""The rule of AHNS for a batch at once, in torch."""

from __future__ import annotations

import torch
from torch import Tensor

from bayesneg.kernels.reference.choices.ahns import NearestToTarget
from bayesneg.kernels.torch.choices.base import BatchScores, TensorBatch, TorchChoice, executes
from bayesneg.kernels.torch.score_lists import INFINITY, TrainingRows, first_least, numbers


@executes(NearestToTarget)
class TorchNearestToTarget(TorchChoice):
    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        drawn, rule = batch.draws, self.rule
        items = torch.cat([batch.positives[:, None], drawn.candidates.clamp(min=0)], dim=1)
        found = scores.of(items).double()  # (B, 1 + m)
        x_positive, x = found[:, :1], found[:, 1:]
        beyond = numbers(x.shape[1], x.device) >= drawn.sizes[:, None]
        target = rule.level * (x_positive + rule.shift).clamp(min=0).pow(rule.exponent + 1.0)
        target = torch.minimum(target, x.masked_fill(beyond, -INFINITY).amax(dim=1, keepdim=True))
        nearest = first_least((x - target).abs(), drawn.sizes)
        return drawn.candidates.gather(1, nearest[:, None])[:, 0]
