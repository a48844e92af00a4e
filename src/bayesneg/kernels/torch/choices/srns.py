"""The rule of SRNS for a batch at once, in torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bayesneg.kernels.reference.choices.srns import FromMemory
from bayesneg.kernels.torch.choices.base import BatchScores, TensorBatch, TorchChoice, executes
from bayesneg.kernels.torch.formulas import info
from bayesneg.kernels.torch.score_lists import INFINITY, TrainingRows, first_least


@executes(FromMemory)
class TorchFromMemory(TorchChoice):
    changing = ("variance_weight",)
    needs_firsts = True

    def __init__(self, rule: FromMemory, device: torch.device) -> None:
        super().__init__(rule, device)
        scratch = np.concatenate((rule.memory, rule.memory[:1]))  # the last row takes the writes of no user
        arrays = (scratch, rule.past_users, rule.past_items)
        self.memory, self.past_users, self.past_items = (torch.from_numpy(array).to(device) for array in arrays)
        self.variance_weight = self._number(rule.variance_weight)

    def load(self, rule: FromMemory) -> None:
        self.rule = rule
        self.memory[:-1].copy_(torch.from_numpy(rule.memory))
        self.past_users.copy_(torch.from_numpy(rule.past_users))
        self.past_items.copy_(torch.from_numpy(rule.past_items))

    def update(self, rule: FromMemory) -> None:
        self.variance_weight.fill_(rule.variance_weight)

    def store(self) -> None:
        self.rule.memory[:] = self.memory[:-1].cpu().numpy()

    @property
    def state(self) -> Sequence[Tensor]:
        return (self.memory,)

    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        """Every choice reads the memory as it was before the batch; a user's first example refreshes it."""
        users = scores.kept_rows(batch.users)
        memory, n_past = self.memory[users].long(), self.rule.n_past  # (B, S)
        w, h = self.past_users[:n_past, users], self.past_items[:n_past]  # (t, B, d), (t, n_items, d)
        past = (w[:, :, None, :] * scores.kept_items(h, memory.clamp(min=0))).sum(dim=3)  # (t, B, S)
        past_positive = (w * scores.kept_items(h, batch.positives)).sum(dim=2)  # (t, B)
        n_fresh = batch.draws.candidates.shape[1] - memory.shape[1]
        fresh = fresh_for_memory(batch.draws.candidates, batch.draws.sizes, memory, n_fresh)
        x = scores.of(torch.cat([memory, fresh], dim=1).clamp(min=0))
        x_positive = scores.of(batch.positives[:, None])[:, 0]
        current, sizes = x[:, : memory.shape[1]], (memory >= 0).sum(dim=1)
        slot = choose_from_memory(current, x_positive, past, past_positive, self.variance_weight, sizes)
        after = refreshed_memory(memory, fresh, x, self.rule.temperature, batch.draws.uniforms)
        written = torch.where(batch.firsts > 0, users, len(self.memory) - 1)
        self.memory.index_copy_(0, written, after.to(self.memory.dtype))
        return memory.gather(1, slot[:, None])[:, 0]


def choose_from_memory(
    x: Tensor, x_positive: Tensor, past: Tensor, past_positive: Tensor, variance_weight: float | Tensor, sizes: Tensor
) -> Tensor:
    """Slot (B,) of greatest P_k + α_t · std(P_k); ``past`` (t, B, S), ``past_positive`` (t, B) are earlier scores."""
    spread = info(past_positive[:, :, None], past).std(dim=0, correction=0) if len(past) else torch.zeros_like(x)
    return first_least(-(info(x_positive[:, None], x) + variance_weight * spread), sizes)


def fresh_for_memory(candidates: Tensor, sizes: Tensor, memory: Tensor, size: int) -> Tensor:
    """The first ``size`` valid candidates (B, size) that are not in the memory (B, S), −1 where there are fewer."""
    places = torch.arange(candidates.shape[1], device=candidates.device)
    wanted = (places < sizes[:, None]) & ~(candidates[:, :, None] == memory[:, None, :]).any(dim=2)
    order = torch.where(wanted, places, places + candidates.shape[1]).sort(dim=1).indices[:, :size]
    return torch.where(wanted.gather(1, order), candidates.gather(1, order), -1)


def refreshed_memory(memory: Tensor, fresh: Tensor, x: Tensor, temperature: float, uniforms: Tensor) -> Tensor:
    """The refreshed memory (B, S): which of memory and fresh items (B, S + S2) stay; −1 in an empty slot.

    As many stay as the memory had, those of largest x/τ plus Gumbel noise; items of the memory keep their slots and new
    items fill the others, best first.
    """
    slots = memory.shape[1]
    both = torch.cat([memory, fresh], dim=1)
    valid = both >= 0
    # the uniform numbers belong to the valid entries in order, as the reference has no gaps
    rank = (valid.cumsum(dim=1) - 1).clamp(min=0)
    noise = -torch.log(-torch.log(uniforms.gather(1, rank).clamp(min=1e-300)))
    keys = torch.where(valid, x.double() / temperature + noise, -INFINITY)
    order = keys.sort(dim=1, descending=True, stable=True).indices
    places = torch.arange(both.shape[1], device=both.device)
    kept = torch.zeros_like(valid).scatter(1, order, places < (memory >= 0).sum(dim=1, keepdim=True))
    stays = kept[:, :slots]
    new = kept.gather(1, order) & (order >= slots)
    newcomers = torch.where(new, places, places + both.shape[1]).sort(dim=1).indices
    freed = ~stays & (memory >= 0)
    which = (freed.cumsum(dim=1) - 1).clamp(min=0)
    incoming = both.gather(1, order.gather(1, newcomers.gather(1, which)))
    return torch.where(freed, incoming, memory)
