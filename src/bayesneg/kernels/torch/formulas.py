"""The formulas of ``kernels/reference/formulas.py`` for tensors: same names, same numbers.

Formulas that are plain arithmetic are taken from the reference as they are.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from bayesneg.kernels.reference.formulas import SHORTEST, SHORTEST_UNIT, SURE, OfMixture, Tabled, counted_cdf, unbias


def info(x_positive: Tensor, x: Tensor) -> Tensor:
    """1 − σ(x_i − x_l) in float64."""
    return 1.0 / (1.0 + torch.exp(x_positive.double() - x.double()))


def base_cdf(likelihood: Any, M: Tensor) -> Tensor:
    """F (B, m) from the counted shares M (B, m); the numbers of the likelihood are tensors."""
    if isinstance(likelihood, OfMixture):
        rest = 1.0 - likelihood.share
        return M / (rest + torch.sqrt(rest * rest + (2.0 * likelihood.share - 1.0) * M))
    if isinstance(likelihood, Tabled):
        at, values, slopes = cast(tuple[Tensor, Tensor, Tensor], likelihood)
        point = torch.searchsorted(at, M.contiguous(), right=True) - 1
        return values[point] + (M - at[point]) * slopes[point]
    return M


def mean_probability(parts: list[Tensor], weights: tuple[float, ...], logit: bool) -> Tensor:
    """The weighted mean of probabilities, or of their log odds."""
    if logit:
        parts = [torch.logit(part, eps=SURE) for part in parts]
    mean = sum((weight * part for weight, part in zip(weights, parts, strict=True)), torch.zeros_like(parts[0]))
    return torch.sigmoid(mean) if logit else mean


def counted_unbias(likelihood: Any, counts: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """The probability (B, m) of a true negative from counts (B, m) of lists of n (B,)."""
    return unbias(base_cdf(likelihood, counted_cdf(counts.double(), n.double()[:, None])), p)


def truncated_rank(uniforms: Tensor, scale: float, n: Tensor) -> Tensor:
    """A rank in 0 … n−1 with probability ∝ exp(−r/scale) for each uniform number."""
    span = torch.expm1(-n.double() / scale)
    return torch.minimum((-scale * torch.log1p(uniforms * span)).long(), n - 1).clamp(min=0)


def kth_highest(x: Tensor, k: int) -> Tensor:
    """The k-th highest score (B,) of each list (B, n)."""
    return x.topk(k, dim=1).values[:, -1]


def unit(vectors: Tensor) -> Tensor:
    """Embeddings (…, d) divided by their norms, so that inner products are cosines."""
    return torch.nn.functional.normalize(vectors, dim=-1, eps=SHORTEST_UNIT)


def lengths_of(vectors: Tensor) -> Tensor:
    """The norm |w| (B, 1), kept above 0."""
    return vectors.norm(dim=1, keepdim=True).clamp(min=SHORTEST)


def summarise(x: Tensor, weights: Tensor, ranks: Tensor) -> Tensor:
    """The scores (B, K) at ``ranks`` (K,) of lists x (B, P) in which each score occurs ``weights`` (B, P) times."""
    descending, order = x.sort(dim=1, descending=True, stable=True)
    found = torch.searchsorted(weights.gather(1, order).cumsum(dim=1), ranks.expand(len(x), -1).contiguous())
    return descending.gather(1, found.clamp(max=x.shape[1] - 1))


def items_above(knots: Tensor, ranks: Tensor, z: Tensor) -> Tensor:
    """The number of items (B, m) that score above z (B, m), linear between the knots (B, K)."""
    last = knots.shape[1] - 1
    passed = (knots[:, None, :] > z[:, :, None]).sum(dim=2)
    before, after = (passed - 1).clamp(min=0), passed.clamp(max=last)
    upper, lower = knots.gather(1, before), knots.gather(1, after)
    share = (upper - z).double() / (upper - lower).double()
    between = ranks[before] - 1.0 + share * (ranks[after] - ranks[before])
    return torch.where(passed == 0, 0.0, torch.where(passed > last, ranks[-1] - 1.0, between))
