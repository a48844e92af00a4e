"""The rule of SIR for a batch at once, in torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bayesneg.kernels.reference.choices.resampled import TakeResampled
from bayesneg.kernels.torch.choices.base import BatchScores, DrawTensors, TensorBatch, TorchChoice, executes
from bayesneg.kernels.torch.score_lists import INFINITY, TrainingRows, numbers


@executes(TakeResampled)
class TorchTakeResampled(TorchChoice):
    def __init__(self, rule: TakeResampled, device: torch.device) -> None:
        super().__init__(rule, device)
        self.log_q = torch.tensor(rule.log_q, device=device)

    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        return resampled(self.rule, self.log_q, batch.draws, scores, 1)[:, 0]


def resampled(rule: Any, log_q: Tensor, draws: DrawTensors, scores: BatchScores, negatives: int) -> Tensor:
    """Items (B, K), drawn with replacement ∝ exp(x/τ − log q) from the candidates; any item where there are none."""
    candidates = draws.candidates.clamp(min=0)
    logits = scores.of(candidates).double() / rule.temperature
    if len(log_q):
        logits = logits - log_q[candidates]
    there = numbers(candidates.shape[1], candidates.device) < draws.sizes[:, None]
    logits = logits.masked_fill(~there, -INFINITY)
    highest = logits.amax(dim=1, keepdim=True).clamp(min=-1e300)  # finite for an example without candidates
    mass = (logits - highest).exp().cumsum(dim=1)  # (B, m)
    place = torch.searchsorted(mass, draws.uniforms[:, :negatives] * mass[:, -1:], right=True)
    last = (draws.sizes[:, None] - 1).clamp(min=0)
    return draws.candidates.gather(1, torch.minimum(place, last))
