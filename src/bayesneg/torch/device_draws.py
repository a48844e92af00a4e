"""What a built-in sampler draws, on a device: candidates, uniform numbers, pools."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import RuleSampler
from bayesneg.kernels.reference.choices.aobpr import FACTOR_TRIES, AtFactorRank, AtScoreRank
from bayesneg.kernels.reference.choices.resampled import TakeResampled
from bayesneg.kernels.reference.choices.srns import FromMemory
from bayesneg.kernels.reference.choices.take import TakeHighest
from bayesneg.kernels.reference.pools import SharedPool
from bayesneg.kernels.reference.selections import TakeSeveralHighest, TakeSeveralResampled
from bayesneg.kernels.torch.draws import RowKeys, uniform_candidates, weighted_candidates
from bayesneg.samplers.ahns import AHNS
from bayesneg.samplers.aobpr import AOBPR
from bayesneg.samplers.bns import BNS, Posterior
from bayesneg.samplers.candidates import candidate_count
from bayesneg.samplers.dns import DNS
from bayesneg.samplers.in_batch import InBatch
from bayesneg.samplers.pools import log_inclusion
from bayesneg.samplers.sir import SIR
from bayesneg.samplers.srns import SRNS
from bayesneg.samplers.static import PNS, RNS


def candidates_of(
    sampler: RuleSampler, users: Tensor, keys: RowKeys, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """The candidates (B, m) and their number (B,), as ``sampler.draws`` would draw them on the host."""
    if isinstance(sampler, PNS) or (isinstance(sampler, SIR) and sampler.proposal == "popularity"):
        assert sampler.tables is not None
        weights = torch.as_tensor(sampler.tables.probabilities, device=users.device)
        size = sampler.negatives if isinstance(sampler, PNS) else n_candidates(sampler, keys.n_items)
        return weighted_candidates(users, keys, weights, size, generator)
    return uniform_candidates(users, keys, n_candidates(sampler, keys.n_items), generator)


def n_candidates(sampler: RuleSampler, n_items: int) -> int:
    """The number of uniform candidates for each example."""
    if isinstance(sampler, RNS):
        return sampler.negatives
    if isinstance(sampler, DNS | BNS | Posterior | AHNS | SIR):
        return candidate_count(sampler.candidates, n_items)
    if isinstance(sampler, SRNS):
        return sampler.memory + sampler.fresh
    if isinstance(sampler, AOBPR):
        return 1  # stands for the user's unobserved items: there are some, or none
    raise InputError(
        f"{type(sampler).__name__} draws in NumPy; make it a NegativeSampler with sample(batch) to use it here"
    )


def uniforms_of(sampler: RuleSampler, rule: Any, n: int, generator: torch.Generator) -> Tensor | None:
    """The uniform numbers (n, r) that a rule reads; None where it reads none."""
    widths = {TakeHighest: 1, TakeResampled: 1, AtScoreRank: 1, AtFactorRank: 2 * FACTOR_TRIES}
    width = widths.get(type(rule), 0)
    if isinstance(rule, TakeSeveralHighest | TakeSeveralResampled):
        width = rule.negatives
    if isinstance(rule, FromMemory):
        assert isinstance(sampler, SRNS)
        width = sampler.memory + sampler.fresh
    if not width:
        return None
    return torch.rand(n, width, dtype=torch.float64, device=generator.device, generator=generator)


def pool_of(sampler: RuleSampler, positives: Tensor, train: Interactions, generator: torch.Generator) -> SharedPool:
    """The pool that a batch shares, as ``sampler.pool`` would draw it on the host."""
    device, n_items = positives.device, train.n_items
    if isinstance(sampler, InBatch):
        log_q = _log_inclusion(np.asarray(sampler.probabilities), len(positives), device)[positives]
        return SharedPool(positives, log_q, sampler.corrected)
    if isinstance(sampler, PNS):
        assert sampler.tables is not None
        p = sampler.tables.probabilities
        mass = torch.as_tensor(np.cumsum(p), device=device)
        uniform = torch.rand(sampler.negatives, dtype=torch.float64, device=device, generator=generator)
        items = torch.searchsorted(mass, uniform * mass[-1], right=True).clamp(max=n_items - 1)
        return SharedPool(items, _log_inclusion(p, sampler.negatives, device)[items])
    size = min(n_candidates(sampler, n_items), n_items)
    return SharedPool(torch.randperm(n_items, device=device, generator=generator)[:size])


def _log_inclusion(p: np.ndarray, draws: int, device: torch.device) -> Tensor:
    return torch.as_tensor(log_inclusion(p, draws), dtype=torch.float32, device=device)
