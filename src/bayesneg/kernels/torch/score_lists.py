"""Score lists of a batch on a device: observed items hidden, scores counted, the catalogue in chunks.

Everything is a tensor of fixed shape and nothing loops over the batch, so that a CUDA graph can replay it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

FEW = 16  # up to this many candidates F is counted by comparing, above it by sorting
INFINITY = float("inf")


class TrainingRows(NamedTuple):
    """Training pairs on a device: the items of user u are items[indptr[u]:indptr[u + 1]], ascending."""

    indptr: Tensor  # (n_users + 1,) int64
    items: Tensor  # (n,) int32
    n_items: int
    longest: int = 0  # the length of the longest row

    def counts(self, users: Tensor) -> Tensor:
        """The number of training items (B,) of ``users`` (B,)."""
        return self.indptr[users + 1] - self.indptr[users]


class ObservedPairs(NamedTuple):
    """The observed pairs of a batch, flat, in a fixed number of slots."""

    examples: Tensor  # (P,) int32, the example of the batch; B in an empty slot
    items: Tensor  # (P,) int32, arbitrary in an empty slot
    total: Tensor  # () number of filled slots


def observed_pairs(rows: TrainingRows, starts: Tensor, counts: Tensor, capacity: int) -> ObservedPairs:
    """The rows of the batch's users begin at ``starts`` (B,) and have ``counts`` (B,) items, ``capacity`` at most."""
    ends = counts.cumsum(0, dtype=torch.int32)
    slot = numbers(capacity, rows.items.device)
    example = torch.searchsorted(ends, slot, right=True, out_int32=True)  # (P,), B beyond the last
    shift = torch.nn.functional.pad(starts.int() - ends + counts.int(), (0, 1))
    where = (slot + shift.index_select(0, example)).clamp(max=len(rows.items) - 1)
    return ObservedPairs(example, rows.items.index_select(0, where), ends[-1])


@cache
def numbers(n: int, device: torch.device) -> Tensor:
    """0 … n−1 as int32, cached: a recorded step reads it at the address where it was recorded."""
    return torch.arange(n, dtype=torch.int32, device=device)


def score_chunks(score: Callable[[int, int], Tensor], n_items: int, chunk: int) -> Iterator[tuple[int, Tensor]]:
    """Scores (B, c) of consecutive items, each with the number of its first."""
    for first in range(0, n_items, chunk):
        yield first, score(first, min(first + chunk, n_items))


def hide_all(scores: Tensor, pairs: ObservedPairs) -> Tensor:
    """Scores (B, n_items) of the whole catalogue, with NaN at the observed pairs, in place; NaN compares as false."""
    flat = torch.add(pairs.items.long(), pairs.examples, alpha=scores.shape[1])
    # an empty slot repeats the first, which is observed: every example has at least its positive
    flat = torch.where(numbers(len(flat), flat.device) < pairs.total, flat, flat[0])
    return scores.view(-1).index_fill_(0, flat, float("nan")).view_as(scores)


def hide(scores: Tensor, pairs: ObservedPairs, first: int) -> Tensor:
    """The chunk's scores (B, c) with NaN at the observed pairs that lie in it."""
    n_examples, width = scores.shape
    wide = torch.nn.functional.pad(scores, (0, 1))  # one column more for pairs of other chunks
    filled = numbers(len(pairs.items), scores.device) < pairs.total
    inside = filled & (pairs.items >= first) & (pairs.items < first + width)
    flat = pairs.examples.long().clamp(max=n_examples - 1) * (width + 1) + torch.where(
        inside, pairs.items - first, width
    )
    return wide.view(-1).index_fill_(0, flat, float("nan")).view(n_examples, width + 1)[:, :width]


def count_at_most(scores: Tensor, x: Tensor) -> Tensor:
    """#{scores ≤ x_l} (B, m) of scores (B, c) for each x (B, m), in integers; NaN never counts."""
    if x.shape[1] <= FEW:
        return (scores[:, None, :] <= x[:, :, None]).sum(dim=2)
    ascending = scores.nan_to_num(nan=INFINITY, posinf=INFINITY, neginf=-INFINITY).sort(dim=1).values
    counts = torch.searchsorted(ascending, x.contiguous(), right=True)
    hidden = scores.isnan().sum(dim=1, keepdim=True)
    return torch.where(x == INFINITY, counts - hidden, counts)


def contains(rows: TrainingRows, users: Tensor, items: Tensor) -> Tensor:
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


def first_least(value: Tensor, sizes: Tensor) -> Tensor:
    """The first position (B,) of the least valid value (B, m)."""
    beyond = numbers(value.shape[1], value.device) >= sizes[:, None]
    return value.masked_fill(beyond, INFINITY).argmin(dim=1)
