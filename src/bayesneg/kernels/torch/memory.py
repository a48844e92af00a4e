"""The memory of SRNS for a batch at once, in torch."""

from __future__ import annotations

import torch
from torch import Tensor

from bayesneg.kernels.torch.formulas import info
from bayesneg.kernels.torch.score_lists import INFINITY, first_least


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
