"""The choices of ``reference`` for a batch at once, in torch, on any device: same names, same answers.

Everything is an array of a fixed shape, nothing loops over the batch, and the catalogue is scored in chunks of items,
so that memory stays bounded. Formulas that are plain arithmetic are taken from ``reference`` as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from shutil import which
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from bayesneg.kernels.reference.choices import counted_cdf, risk, unbias
from bayesneg.kernels.rules import FACTOR_TRIES, SHORTEST, OfMixture, Tabled

FEW = 16  # up to this many candidates F is counted by comparing, above it by sorting
INFINITY = float("inf")


@cache
def fused_for(device: torch.device) -> Any:
    """The module ``fused`` where it runs, otherwise None."""
    compiler = os.environ.get("CC") or which("gcc") or which("clang") or which("cc")  # Triton builds its launchers
    if device.type != "cuda" or find_spec("triton") is None or compiler is None:
        return None
    return import_module("bayesneg.kernels.triton")


class Rows(NamedTuple):
    """Training pairs on a device: the items of user u are items[indptr[u]:indptr[u + 1]], ascending."""

    indptr: Tensor  # (n_users + 1,) int64
    items: Tensor  # (n,) int32
    n_items: int

    def counts(self, users: Tensor) -> Tensor:
        return self.indptr[users + 1] - self.indptr[users]


# -------------------------------------------------------------------------------------------- scores of a catalogue


class Pairs(NamedTuple):
    """The observed pairs of a batch, flat, in a fixed number of places."""

    examples: Tensor  # (P,) int32, which example of the batch; B where the place is empty
    items: Tensor  # (P,) int32, of no meaning where the place is empty
    total: Tensor  # () how many places are filled


def observed_pairs(rows: Rows, starts: Tensor, counts: Tensor, capacity: int) -> Pairs:
    """The rows of the batch's users begin at ``starts`` (B,) and have ``counts`` (B,) items, ``capacity`` at most."""
    ends = counts.cumsum(0, dtype=torch.int32)
    place = numbers(capacity, rows.items.device)
    example = torch.searchsorted(ends, place, right=True, out_int32=True)  # (P,), B beyond the last
    shift = torch.nn.functional.pad(starts.int() - ends + counts.int(), (0, 1))
    where = (place + shift.index_select(0, example)).clamp(max=len(rows.items) - 1)
    return Pairs(example, rows.items.index_select(0, where), ends[-1])


@cache
def numbers(n: int, device: torch.device) -> Tensor:
    """0 … n−1 as int32, made once and kept: a recorded step reads it wherever it was when it was recorded."""
    return torch.arange(n, dtype=torch.int32, device=device)


def score_chunks(score: Callable[[int, int], Tensor], n_items: int, chunk: int) -> Iterator[tuple[int, Tensor]]:
    """Scores (B, c) of consecutive items, each with the number of its first."""
    for first in range(0, n_items, chunk):
        yield first, score(first, min(first + chunk, n_items))


def hide_all(scores: Tensor, pairs: Pairs) -> Tensor:
    """Scores (B, n_items) of the whole catalogue, in place NaN, which compares as false, at the observed pairs."""
    places = torch.add(pairs.items.long(), pairs.examples, alpha=scores.shape[1])
    # an empty place repeats the first, which is observed: every example has at least its own positive
    places = torch.where(numbers(len(places), places.device) < pairs.total, places, places[0])
    return scores.view(-1).index_fill_(0, places, float("nan")).view_as(scores)


def hide(scores: Tensor, pairs: Pairs, first: int) -> Tensor:
    """The chunk's scores (B, c) with NaN at the observed pairs that lie in it."""
    n_examples, width = scores.shape
    wide = torch.nn.functional.pad(scores, (0, 1))  # one column more for pairs of other chunks
    filled = numbers(len(pairs.items), scores.device) < pairs.total
    inside = filled & (pairs.items >= first) & (pairs.items < first + width)
    places = pairs.examples.long().clamp(max=n_examples - 1) * (width + 1) + torch.where(
        inside, pairs.items - first, width
    )
    return wide.view(-1).index_fill_(0, places, float("nan")).view(n_examples, width + 1)[:, :width]


def count_at_most(scores: Tensor, x: Tensor) -> Tensor:
    """#{scores ≤ x_l} (B, m) of scores (B, c) for each x (B, m), in integers; NaN never counts."""
    if x.shape[1] <= FEW:
        return (scores[:, None, :] <= x[:, :, None]).sum(dim=2)
    ascending = scores.nan_to_num(nan=INFINITY, posinf=INFINITY, neginf=-INFINITY).sort(dim=1).values
    counts = torch.searchsorted(ascending, x.contiguous(), right=True)
    hidden = scores.isnan().sum(dim=1, keepdim=True)
    return torch.where(x == INFINITY, counts - hidden, counts)


# ----------------------------------------------------------------------------------------- F from a summary of the list


def lengths_of(vectors: Tensor) -> Tensor:
    """|w| (B, 1), kept above 0."""
    return vectors.norm(dim=1, keepdim=True).clamp(min=SHORTEST)


def summarise(x: Tensor, weights: Tensor, ranks: Tensor) -> Tensor:
    """The scores (B, K) at ``ranks`` (K,) of lists x (B, P) in which each score stands ``weights`` (B, P) times."""
    descending, order = x.sort(dim=1, descending=True, stable=True)
    places = torch.searchsorted(weights.gather(1, order).cumsum(dim=1), ranks.expand(len(x), -1).contiguous())
    return descending.gather(1, places.clamp(max=x.shape[1] - 1))


def items_above(knots: Tensor, ranks: Tensor, z: Tensor) -> Tensor:
    """How many items (B, m) stand above the scores z (B, m), in proportion between the knots (B, K)."""
    last = knots.shape[1] - 1
    passed = (knots[:, None, :] > z[:, :, None]).sum(dim=2)
    before, after = (passed - 1).clamp(min=0), passed.clamp(max=last)
    upper, lower = knots.gather(1, before), knots.gather(1, after)
    share = (upper - z).double() / (upper - lower).double()
    between = ranks[before] - 1.0 + share * (ranks[after] - ranks[before])
    return torch.where(passed == 0, 0.0, torch.where(passed > last, ranks[-1] - 1.0, between))


# ----------------------------------------------------------------------------------------------------------- choices


def info(x_positive: Tensor, x: Tensor) -> Tensor:
    return 1.0 / (1.0 + torch.exp(x_positive.double() - x.double()))


def choose_highest(x: Tensor, sizes: Tensor, top: int, uniforms: Tensor) -> Tensor:
    """Position (B,) of one of the ``top`` highest of x (B, m), uniformly; the earlier position wins a tie."""
    order = (
        x.masked_fill(numbers(x.shape[1], x.device) >= sizes[:, None], -INFINITY)
        .sort(dim=1, descending=True, stable=True)
        .indices
    )
    among = torch.clamp(sizes, max=top)
    return order.gather(1, (uniforms * among).long()[:, None])[:, 0]


def base_cdf(likelihood: Any, M: Tensor) -> Tensor:
    """F where the shares M (B, m) were counted; a likelihood's numbers are tensors here."""
    if isinstance(likelihood, OfMixture):
        rest = 1.0 - likelihood.share
        return M / (rest + torch.sqrt(rest * rest + (2.0 * likelihood.share - 1.0) * M))
    if isinstance(likelihood, Tabled):
        at, values, slopes = cast(tuple[Tensor, Tensor, Tensor], likelihood)
        point = torch.searchsorted(at, M.contiguous(), right=True) - 1
        return values[point] + (M - at[point]) * slopes[point]
    return M


def counted_unbias(likelihood: Any, counts: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """The probability (B, m) of a true negative from counts (B, m) of lists of n (B,)."""
    return unbias(base_cdf(likelihood, counted_cdf(counts.double(), n.double()[:, None])), p)


def choose_least_risk(
    x: Tensor, x_positive: Tensor, true_negative: Tensor, weight: float | Tensor, sizes: Tensor
) -> Tensor:
    """Position (B,) of the candidate with the least risk; the lowest position wins a tie."""
    return _first_least(risk(info(x_positive[:, None], x), true_negative, weight), sizes)


def choose_most_unbiased(true_negative: Tensor, sizes: Tensor) -> Tensor:
    return _first_least(-true_negative, sizes)


def _first_least(value: Tensor, sizes: Tensor) -> Tensor:
    """The first position (B,) of the least valid value."""
    beyond = numbers(value.shape[1], value.device) >= sizes[:, None]
    return value.masked_fill(beyond, INFINITY).argmin(dim=1)


def truncated_rank(uniforms: Tensor, scale: float, n: Tensor) -> Tensor:
    span = torch.expm1(-n.double() / scale)
    return torch.minimum((-scale * torch.log1p(uniforms * span)).long(), n - 1).clamp(min=0)


def choose_at_rank(scores: Tensor, ranks: Tensor, most: int) -> Tensor:
    """The item (B,) at each rank of scores (B, n_items), NaN where observed; ``most`` is at least every rank.

    A selection of the highest gives the value at the rank; among equal values the lower item number comes first.
    """
    shown = scores.nan_to_num(nan=-INFINITY, posinf=INFINITY, neginf=-INFINITY)
    highest = shown.topk(min(most + 1, scores.shape[1]), dim=1).values
    value = highest.gather(1, ranks[:, None])
    above = (shown > value).sum(dim=1)
    equal = (scores == value).cumsum(dim=1)
    return (equal <= (ranks - above)[:, None]).sum(dim=1).clamp(max=scores.shape[1] - 1)


def choose_at_factor_rank(
    w: Tensor, scale: float, orders: Tensor, spreads: Tensor, rows: Rows, users: Tensor, uniforms: Tensor
) -> Tensor:
    """The item (B,) at a drawn rank of a drawn factor's list; the first of eight draws that is no positive."""
    n_items = orders.shape[1]
    mass = (w.double().abs() * spreads).cumsum(dim=1)  # (B, d)
    pairs = uniforms.view(len(w), FACTOR_TRIES, 2)
    ranks = truncated_rank(pairs[:, :, 0], scale, torch.full_like(users, n_items)[:, None])  # (B, tries)
    factors = torch.searchsorted(mass, (pairs[:, :, 1] * mass[:, -1:]).contiguous(), right=True).clamp(
        max=w.shape[1] - 1
    )
    rising = w.gather(1, factors) > 0
    items = orders[factors, torch.where(rising, ranks, n_items - 1 - ranks)].long()  # (B, tries)
    free = ~contains(rows, users, items)
    first = free.long().argmax(dim=1, keepdim=True)
    chosen = items.gather(1, first)[:, 0]
    stuck = ~free.any(dim=1)
    if not bool(stuck.any()):
        return chosen
    return torch.where(stuck, _next_free(rows, users, orders, ranks[:, -1], factors[:, -1], rising[:, -1]), chosen)


def _next_free(rows: Rows, users: Tensor, orders: Tensor, rank: Tensor, factor: Tensor, rising: Tensor) -> Tensor:
    n_items = orders.shape[1]
    item = torch.zeros_like(users)
    waiting = torch.ones_like(rising)
    for _ in range(n_items):
        place = torch.where(rising, rank, n_items - 1 - rank)
        item = torch.where(waiting, orders[factor, place].long(), item)
        waiting = waiting & contains(rows, users, item[:, None])[:, 0]
        if not bool(waiting.any()):
            break
        rank = (rank + 1) % n_items
    return item


def contains(rows: Rows, users: Tensor, items: Tensor) -> Tensor:
    """True (B, m) where the item is in the user's row, by binary search."""
    low, high = rows.indptr[users][:, None].expand_as(items), rows.indptr[users + 1][:, None].expand_as(items)
    end, last = high, len(rows.items) - 1
    for _ in range(max(1, len(rows.items)).bit_length()):
        middle = (low + high) // 2
        below = rows.items[middle.clamp(max=last)] < items
        open_ = low < high
        low = torch.where(open_ & below, middle + 1, low)
        high = torch.where(open_ & ~below, middle, high)
    return (low < end) & (rows.items[low.clamp(max=last)] == items)


def choose_from_memory(
    x: Tensor, x_positive: Tensor, past: Tensor, past_positive: Tensor, variance_weight: float | Tensor, sizes: Tensor
) -> Tensor:
    """Slot (B,) of greatest P_k + α_t · std(P_k); ``past`` (t, B, S), ``past_positive`` (t, B) are earlier scores."""
    spread = info(past_positive[:, :, None], past).std(dim=0, correction=0) if len(past) else torch.zeros_like(x)
    return _first_least(-(info(x_positive[:, None], x) + variance_weight * spread), sizes)


def fresh_for_memory(candidates: Tensor, sizes: Tensor, memory: Tensor, size: int) -> Tensor:
    """The first ``size`` valid candidates (B, size) that are not in the memory (B, S), −1 where there are fewer."""
    places = torch.arange(candidates.shape[1], device=candidates.device)
    wanted = (places < sizes[:, None]) & ~(candidates[:, :, None] == memory[:, None, :]).any(dim=2)
    order = torch.where(wanted, places, places + candidates.shape[1]).sort(dim=1).indices[:, :size]
    return torch.where(wanted.gather(1, order), candidates.gather(1, order), -1)


def refreshed_memory(memory: Tensor, fresh: Tensor, x: Tensor, temperature: float, uniforms: Tensor) -> Tensor:
    """Which of memory and fresh items (B, S + S2) stay: slot by slot the item (B, S), −1 where a slot is empty.

    As many stay as the memory had, the largest of x/τ perturbed by Gumbel noise; those of the memory keep their slots
    and newcomers fill the others, best first.
    """
    slots = memory.shape[1]
    both = torch.cat([memory, fresh], dim=1)
    valid = both >= 0
    # the uniform numbers belong to the valid places in order, as the definition has no gaps
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


# ---------------------------------------------------------------------------------------------------------- the step


def bpr_gradients(
    users: Tensor,
    items: Tensor,
    which: Tensor,
    positives: Tensor,
    negatives: Tensor,
    strength: float,
    ensemble_size: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the loss by users (n_users, d) and items (n_items, d), and 1 − σ(x_i − x_j) (B,).

    The loss is the mean of −ln σ(x_i − x_j) + ½·strength·(|w_u|² + |h_i|² + |h_j|²) over the examples ``which`` (B,),
    ``positives``, ``negatives`` that have a negative; −1 is none, and its info is 0. The vectors of several
    ensemble_size
    stand one after another, each divided by the root of their number; the loss is the sum of theirs.
    """
    keep = negatives >= 0
    negatives = negatives.clamp(min=0)
    w, h_i, h_j = (
        vectors.index_select(0, rows).view(len(rows), ensemble_size, -1)
        for vectors, rows in ((users, which), (items, positives), (items, negatives))
    )
    gaps = (w * (h_i - h_j)).sum(dim=2)  # (B, ensemble_size)
    share = (ensemble_size * keep / keep.sum().clamp(min=1))[:, None, None]
    pull, shrink = torch.sigmoid(-ensemble_size * gaps)[:, :, None] * share, strength * share
    user_gradients, item_gradients = torch.zeros_like(users), torch.zeros_like(items)
    user_gradients.index_add_(0, which, (shrink * w - pull * (h_i - h_j)).flatten(1))
    item_gradients.index_add_(0, positives, (shrink * h_i - pull * w).flatten(1))
    item_gradients.index_add_(0, negatives, (shrink * h_j + pull * w).flatten(1))
    return user_gradients, item_gradients, torch.sigmoid(-gaps.sum(dim=1)) * keep
