"""Fused kernels for a training step on an NVIDIA GPU, in Triton: one launch each.

A small step takes microseconds, and launching dozens of kernels for it takes longer than their work. These functions
compute what those of ``kernels/torch`` compute, which run where Triton does not.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from bayesneg.kernels.reference.formulas import LikelihoodForm, OfMixture, Population, Tabled

SCORES = 1024  # scores of one example compared at a time
OBSERVED = 128  # observed items of one example, likewise
EXAMPLES = 4  # examples per program where each has three vectors
PARAMETERS = 1024  # parameters per program


def choose_by_posterior(
    scores: Tensor, positives: Tensor, starts: Tensor, counts: Tensor, rows: Tensor,
    candidates: Tensor, sizes: Tensor, priors: Tensor, weight: Tensor | None, *,
    over: Population, likelihood: LikelihoodForm,
) -> Tensor:  # fmt: skip
    """The candidate (B,) of least risk, or the most unbiased where there is no weight; −1 without candidates.

    ``scores`` (B, n_items) are contiguous; an example's observed items are rows[start : start + count]. The numbers of
    the likelihood are tensors of float64.
    """
    chosen = torch.empty(len(scores), dtype=torch.int64, device=scores.device)
    _choose_by_posterior[(len(scores),)](
        scores, scores.shape[1], positives, positives.stride(0), starts, starts.stride(0), counts, counts.stride(0),
        rows, candidates, candidates.stride(0), sizes, sizes.stride(0), priors, priors.stride(0),
        chosen if weight is None else weight, *_numbers(likelihood, chosen), chosen,
        M=triton.next_power_of_2(candidates.shape[1]), MOST_UNBIASED=weight is None,
        WITH_OBSERVED=over.with_observed, OF_CATALOGUE=over.of_catalogue, OF_MIXTURE=isinstance(likelihood, OfMixture),
        POINTS=len(likelihood.at) if isinstance(likelihood, Tabled) else 0,
        SCORES=SCORES, OBSERVED=OBSERVED, enable_fp_fusion=False,
    )  # fmt: skip
    return chosen


def _numbers(likelihood: Any, nothing: Tensor) -> tuple[Any, ...]:
    """θ and the table, with ``nothing`` for what the likelihood does not have."""
    if isinstance(likelihood, OfMixture):
        return likelihood.share, nothing, nothing, nothing
    if isinstance(likelihood, Tabled):
        return nothing, likelihood.at, likelihood.values, likelihood.slopes
    return nothing, nothing, nothing, nothing


@triton.jit
def _choose_by_posterior(  # type: ignore[no-untyped-def]
    scores, n_items, positives, positive_stride, starts, start_stride, counts, count_stride,
    rows, candidates, candidate_stride, sizes, size_stride, priors, prior_stride, weight,
    share, at, values, slopes, chosen,
    M: tl.constexpr, WITH_OBSERVED: tl.constexpr, OF_CATALOGUE: tl.constexpr, MOST_UNBIASED: tl.constexpr,
    OF_MIXTURE: tl.constexpr, POINTS: tl.constexpr, SCORES: tl.constexpr, OBSERVED: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    size = tl.load(sizes + b * size_stride)
    k = tl.arange(0, M)
    valid = k < size
    items = tl.load(candidates + b * candidate_stride + k, mask=valid, other=0)
    list_ = scores + b * n_items
    x = tl.load(list_ + items, mask=valid, other=0.0)
    at_most = tl.zeros([M], tl.int32)
    for first in range(0, n_items, SCORES):
        place = first + tl.arange(0, SCORES)
        s = tl.load(list_ + place, mask=place < n_items, other=float("nan"))
        at_most += tl.sum((s[None, :] <= x[:, None]).to(tl.int32), axis=1)
    count = tl.load(counts + b * count_stride).to(tl.int32)
    n = n_items if OF_CATALOGUE else n_items - count
    if not WITH_OBSERVED:
        start = tl.load(starts + b * start_stride)
        for first in range(0, count, OBSERVED):
            place = first + tl.arange(0, OBSERVED)
            item = tl.load(rows + start + place, mask=place < count, other=0)
            s = tl.load(list_ + item, mask=place < count, other=float("nan"))
            at_most -= tl.sum((s[None, :] <= x[:, None]).to(tl.int32), axis=1)
    F = _cdf(at_most.to(tl.float64) / (n + 1), share, at, values, slopes, OF_MIXTURE, POINTS)
    p = tl.load(priors + b * prior_stride + k, mask=valid, other=0.0)
    negative = (1.0 - F) * (1.0 - p)
    unbias = negative / (negative + F * p)
    if MOST_UNBIASED:
        value = -unbias
    else:
        x_positive = tl.load(list_ + tl.load(positives + b * positive_stride)).to(tl.float64)
        info = 1.0 / (1.0 + tl.exp(x_positive - x.to(tl.float64)))
        value = info * (1.0 - (1.0 + tl.load(weight)) * unbias)
    position = tl.argmin(tl.where(valid, value, float("inf")), axis=0)
    item = tl.sum(tl.where(k == position, items, 0), axis=0)
    tl.store(chosen + b, tl.where(size > 0, item, -1))


def put_rows(
    found: Tensor, users: Tensor, indptr: Tensor, items: Tensor, values: Tensor | None, slot_of: Tensor
) -> None:
    """Write the values of the users' rows, or 0, into (B, N), where their items lie in the pool.

    ``found`` is contiguous; an item lies at ``slot_of`` (n_items,), −1 outside the pool; no row has an item twice.
    """
    whole = found.view(torch.uint8) if found.dtype == torch.bool else found
    _put_rows[(len(users),)](
        whole, found.shape[1], users, users.stride(0), indptr, items, items if values is None else values, slot_of,
        ZERO=values is None, OBSERVED=OBSERVED,
    )  # fmt: skip


@triton.jit
def _put_rows(  # type: ignore[no-untyped-def]
    found, n_pool, users, user_stride, indptr, items, values, slot_of, ZERO: tl.constexpr, OBSERVED: tl.constexpr
):
    b = tl.program_id(0).to(tl.int64)
    user = tl.load(users + b * user_stride)
    start, stop = tl.load(indptr + user), tl.load(indptr + user + 1)
    for first in range(start, stop, OBSERVED):
        place = first + tl.arange(0, OBSERVED)
        item = tl.load(items + place, mask=place < stop, other=0)
        slot = tl.load(slot_of + item, mask=place < stop, other=-1)
        value = tl.zeros([OBSERVED], tl.float32)
        if not ZERO:
            value += tl.load(values + place, mask=place < stop, other=0)
        tl.store(found + b * n_pool + slot, value.to(found.dtype.element_ty), mask=slot >= 0)


def weigh_pool(
    at_most: Tensor, totals: Tensor, counts: Tensor, priors: Tensor, *,
    likelihood: LikelihoodForm, weight: float, ramp: bool,
) -> Tensor:  # fmt: skip
    """The weights (B, N) of a pool from at_most / totals, the share of the pool that scores at most as high.

    ``at_most`` and ``counts`` (B, N) are contiguous, ``totals`` are (B,), and ``priors`` broadcast to (B, N). The
    numbers of the likelihood are tensors of float64.
    """
    n_examples, n_pool = at_most.shape
    weights = torch.empty(at_most.shape, dtype=torch.float32, device=at_most.device)
    priors = priors.expand(at_most.shape)
    _weigh_pool[(n_examples, triton.cdiv(n_pool, SCORES))](
        at_most, totals, counts, priors, priors.stride(0), priors.stride(1), *_numbers(likelihood, weights),
        weights, n_pool, weight,
        RAMP=ramp, OF_MIXTURE=isinstance(likelihood, OfMixture),
        POINTS=len(likelihood.at) if isinstance(likelihood, Tabled) else 0, SCORES=SCORES, enable_fp_fusion=False,
    )  # fmt: skip
    return weights


@triton.jit
def _weigh_pool(  # type: ignore[no-untyped-def]
    at_most, totals, counts, priors, prior_row, prior_column, share, at, values, slopes, weights, n_pool, weight,
    RAMP: tl.constexpr, OF_MIXTURE: tl.constexpr, POINTS: tl.constexpr, SCORES: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * SCORES + tl.arange(0, SCORES)
    there = k < n_pool
    M = tl.load(at_most + b * n_pool + k, mask=there, other=0).to(tl.float64) / tl.load(totals + b)
    F = _cdf(M, share, at, values, slopes, OF_MIXTURE, POINTS)
    p = tl.load(priors + b * prior_row + k * prior_column, mask=there, other=0.0).to(tl.float64)
    negative = (1.0 - F) * (1.0 - p)
    found = negative / (negative + F * p)
    if RAMP:
        found = tl.minimum(tl.maximum((1.0 + weight) * found - 1.0, 0.0), weight) / weight
    count = tl.load(counts + b * n_pool + k, mask=there, other=0)
    tl.store(weights + b * n_pool + k, tl.where(count != 0, found, 0.0).to(tl.float32), mask=there)


@triton.jit
def _cdf(M, share, at, values, slopes, OF_MIXTURE: tl.constexpr, POINTS: tl.constexpr):  # type: ignore[no-untyped-def]
    """F from the counted share M, in float64."""
    F = M
    if OF_MIXTURE:
        theta = tl.load(share)
        rest = 1.0 - theta
        F = M / (rest + tl.sqrt(rest * rest + (2.0 * theta - 1.0) * M))
    if POINTS > 0:
        for point in range(POINTS):
            begins = tl.load(at + point)
            line = tl.load(values + point) + (M - begins) * tl.load(slopes + point)
            F = tl.where(begins <= M, line, F)
    return F


def bpr_gradients(
    users: Tensor, items: Tensor, which: Tensor, positives: Tensor, negatives: Tensor, strength: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the loss by users (n_users, d) and items (n_items, d), contiguous, and infos (B,)."""
    n, d = len(which), users.shape[1]
    user_gradients, item_gradients = torch.zeros_like(users), torch.zeros_like(items)
    infos = torch.empty(n, dtype=torch.float32, device=users.device)
    _bpr_gradients[(triton.cdiv(n, EXAMPLES),)](
        users, items, which, which.stride(0), positives, positives.stride(0), negatives.contiguous(), n, d,
        user_gradients, item_gradients, infos,
        STRENGTH=strength, EXAMPLES=EXAMPLES, D=triton.next_power_of_2(d), SCORES=SCORES,
    )  # fmt: skip
    return user_gradients, item_gradients, infos


@triton.jit
def _bpr_gradients(  # type: ignore[no-untyped-def]
    users, items, which, which_stride, positives, positive_stride, negatives, n, d,
    user_gradients, item_gradients, infos,
    STRENGTH: tl.constexpr, EXAMPLES: tl.constexpr, D: tl.constexpr, SCORES: tl.constexpr,
):  # fmt: skip
    kept = tl.zeros([SCORES], tl.int32)
    for first in range(0, n, SCORES):
        place = first + tl.arange(0, SCORES)
        kept += (tl.load(negatives + place, mask=place < n, other=-1) >= 0).to(tl.int32)
    n_kept = tl.maximum(tl.sum(kept, axis=0), 1).to(tl.float32)
    b = tl.program_id(0) * EXAMPLES + tl.arange(0, EXAMPLES)
    u = tl.load(which + b * which_stride, mask=b < n, other=0)
    i = tl.load(positives + b * positive_stride, mask=b < n, other=0)
    j = tl.load(negatives + b, mask=b < n, other=-1)
    keep = j >= 0
    f = tl.arange(0, D)[None, :]
    there = keep[:, None] & (f < d)
    of_user, of_positive, of_negative = u[:, None] * d + f, i[:, None] * d + f, j[:, None] * d + f
    w = tl.load(users + of_user, mask=there, other=0.0)
    h_i = tl.load(items + of_positive, mask=there, other=0.0)
    h_j = tl.load(items + of_negative, mask=there, other=0.0)
    info = 1.0 / (1.0 + tl.exp(tl.sum(w * (h_i - h_j), axis=1)))
    pull = (info / n_kept)[:, None]
    shrink = STRENGTH / n_kept
    tl.atomic_add(user_gradients + of_user, shrink * w - pull * (h_i - h_j), mask=there, sem="relaxed")
    tl.atomic_add(item_gradients + of_positive, shrink * h_i - pull * w, mask=there, sem="relaxed")
    tl.atomic_add(item_gradients + of_negative, shrink * h_j + pull * w, mask=there, sem="relaxed")
    tl.store(infos + b, tl.where(keep, info, 0.0), mask=b < n)


def adam_step(
    parameter: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, step: Tensor, rate: Tensor,
    *, betas: tuple[float, float], epsilon: float, decay: float,
) -> None:  # fmt: skip
    """One step of Adam in place, as torch defines it; ``step`` counts it already. All contiguous float32."""
    n = parameter.numel()
    _adam_step[(triton.cdiv(n, PARAMETERS),)](
        parameter, gradient, mean, square, step, rate, n,
        KEPT_1=betas[0], KEPT_2=betas[1], NEW_1=1.0 - betas[0], NEW_2=1.0 - betas[1],
        LOG_1=math.log(betas[0]), LOG_2=math.log(betas[1]), EPSILON=epsilon, DECAY=decay, PARAMETERS=PARAMETERS,
    )  # fmt: skip


@triton.jit
def _adam_step(  # type: ignore[no-untyped-def]
    parameter, gradient, mean, square, step, rate, n,
    KEPT_1: tl.constexpr, KEPT_2: tl.constexpr, NEW_1: tl.constexpr, NEW_2: tl.constexpr,
    LOG_1: tl.constexpr, LOG_2: tl.constexpr, EPSILON: tl.constexpr, DECAY: tl.constexpr, PARAMETERS: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0).to(tl.int64) * PARAMETERS + tl.arange(0, PARAMETERS)
    there = place < n
    t = tl.load(step).to(tl.float64)
    rate_now = (tl.load(rate).to(tl.float64) / (1.0 - tl.exp(t * LOG_1))).to(tl.float32)
    scale = tl.sqrt(1.0 - tl.exp(t * LOG_2)).to(tl.float32)
    p = tl.load(parameter + place, mask=there, other=0.0)
    g = tl.load(gradient + place, mask=there, other=0.0) + DECAY * p
    m = KEPT_1 * tl.load(mean + place, mask=there, other=0.0) + NEW_1 * g
    v = KEPT_2 * tl.load(square + place, mask=there, other=0.0) + NEW_2 * g * g
    tl.store(mean + place, m, mask=there)
    tl.store(square + place, v, mask=there)
    tl.store(parameter + place, p - rate_now * m / (tl.sqrt(v) / scale + EPSILON), mask=there)
