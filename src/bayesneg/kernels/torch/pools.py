"""Every rule of ``kernels/reference/pools.py`` in torch, on any device: weights (B, N) of a shared pool.

Nothing of size users × items exists: what is known of a few items of each user (training items, likely false
negatives) is scattered into the pool.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bayesneg.kernels.reference.formulas import list_sizes, unbias
from bayesneg.kernels.reference.pools import (
    Computed,
    EqualWeights,
    PerItem,
    PoolRule,
    PriorForm,
    SharedPool,
    SparseRows,
    WeightsByPoolRank,
)
from bayesneg.kernels.reference.selections import weight_of
from bayesneg.kernels.torch.choices.base import BatchScores, TensorBatch, torch_choice
from bayesneg.kernels.torch.choices.posterior import TorchMostUnbiased
from bayesneg.kernels.torch.formulas import base_cdf, counted_unbias
from bayesneg.kernels.torch.score_lists import INFINITY, TrainingRows, contains, numbers

MOST_SLOTS = 1 << 24  # pairs of a batch with its users' rows that a GPU handles without asking how many there are


class PooledPairs(NamedTuple):
    """The pairs of the users' rows, in a fixed number of slots."""

    cells: Tensor  # (P,) where the pair lies in a flat (B, N) matrix; B · N for an item outside the pool
    entries: Tensor  # (P,) the position of the pair in the rows


def pooled(indptr: Tensor, items: Tensor, users: Tensor, slot_of: Tensor, n_pool: int, longest: int) -> PooledPairs:
    """The pairs of the users' rows, none longer than ``longest``, and where they lie in the pool."""
    starts = indptr[users]
    counts = indptr[users + 1] - starts
    ends = counts.cumsum(0)
    room = len(users) * longest
    if users.device.type == "cpu" or room > MOST_SLOTS:
        room = int(ends[-1])  # on a GPU this waits for the device
    flat = torch.arange(room, device=users.device)
    example = torch.searchsorted(ends, flat, right=True).clamp(max=len(users) - 1)
    entries = (flat + (starts - ends + counts)[example]).clamp(max=max(0, len(items) - 1))
    slots = slot_of[items[entries].long()]
    cells = torch.where((slots >= 0) & (flat < ends[-1]), example * n_pool + slots, len(users) * n_pool)
    return PooledPairs(cells, entries)


def with_cells(matrix: Tensor, cells: Tensor, values: Tensor | float) -> Tensor:
    """The matrix (B, N) or (1, N) or (B, 1), as (B, N), with ``values`` (P,) at the cells."""
    flat = torch.nn.functional.pad(matrix.reshape(-1), (0, 1))
    if isinstance(values, Tensor):
        return flat.scatter_(0, cells, values.to(flat.dtype))[:-1].view_as(matrix)
    return flat.index_fill_(0, cells, values)[:-1].view_as(matrix)


def slots_of(pool: Tensor, n_items: int) -> Tensor:
    """The first position (n_items,) of each item in the pool, −1 outside it."""
    slots = torch.full((n_items,), len(pool), dtype=torch.int64, device=pool.device)
    slots.scatter_reduce_(0, pool, numbers(len(pool), pool.device).long(), reduce="amin")
    return torch.where(slots == len(pool), -1, slots)


def counting(pool: Tensor, slot_of: Tensor, users: Tensor, rows: TrainingRows) -> Tensor:
    """True (B, N) where an item of the pool counts: unobserved by the user, and the first of its kind."""
    first = slot_of[pool] == numbers(len(pool), pool.device)
    pairs = pooled(rows.indptr, rows.items, users, slot_of, len(pool), rows.longest)
    return with_cells(first.expand(len(users), -1), pairs.cells, False)


def sums_in_rows(parts: Tensor, users: Tensor, items: Tensor, rows: TrainingRows) -> Tensor:
    """The sums (n,) float64 of numbers (n, B, K) over the negatives that are in the rows of their users.

    Args:
        parts: The numbers of each negative.
        users: The users (B,).
        items: The negatives of each, a row (K,) for each user or more, or a pool (N,) that all share.
        rows: Rows of users, such as their false negatives.
    """
    if len(rows.items) == 0:
        return torch.zeros(len(parts), dtype=torch.float64, device=parts.device)
    if items.ndim == 2:
        return (parts * contains(rows, users, items[: len(users)])).sum(dim=(1, 2), dtype=torch.float64)
    slots = slots_of(items, rows.n_items)
    cells = pooled(rows.indptr, rows.items, users, slots, len(items), rows.longest).cells
    flat = torch.nn.functional.pad(parts.flatten(1), (0, 1))  # pairs outside the pool fall on the last, 0
    return flat.index_select(1, cells).sum(dim=1, dtype=torch.float64)


class TorchPrior:
    """The prior of a pool on a device."""

    def __init__(self, form: PriorForm, device: torch.device) -> None:
        self.form, self.device = form, device
        self.parts: tuple[Tensor, ...] = ()
        self.longest = 0
        if not isinstance(form, Computed):
            self.parts = tuple(torch.tensor(part, device=device) for part in form)
        if isinstance(form, SparseRows):
            self.longest = int((form.indptr[1:] - form.indptr[:-1]).max())

    def of(self, users: Tensor, pool: Tensor, slot_of: Tensor) -> Tensor:
        """Probabilities (B, N), or (N,) where all users have the same, float32."""
        if isinstance(self.form, PerItem):
            return self.parts[0][pool].float()
        if isinstance(self.form, SparseRows):
            base, indptr, items, values = self.parts
            pairs = pooled(indptr, items, users, slot_of, len(pool), self.longest)
            found = base[users].float()[:, None].expand(-1, len(pool))
            return with_cells(found, pairs.cells, values[pairs.entries])
        return self._computed(users[:, None], pool[None, :]).float()

    def of_pairs(self, users: Tensor, items: Tensor) -> Tensor:
        """Probabilities (B, m) float64 of items (B, m) of each user."""
        if isinstance(self.form, PerItem):
            return self.parts[0][items].double()
        if not isinstance(self.form, SparseRows):
            return self._computed(users[:, None].expand_as(items), items)
        base, indptr, found, values = self.parts
        low, end = indptr[users][:, None].expand_as(items), indptr[users + 1][:, None].expand_as(items)
        high = end
        for _ in range(max(1, self.longest).bit_length()):
            middle = (low + high) // 2
            below = found[middle.clamp(max=len(found) - 1)] < items
            low, high = torch.where(below & (low < high), middle + 1, low), torch.where(below, high, middle)
        there = (low < end) & (found[low.clamp(max=len(found) - 1)] == items)
        return torch.where(there, values[low.clamp(max=len(found) - 1)], base[users][:, None]).double()

    def _computed(self, users: Tensor, items: Tensor) -> Tensor:
        """What a function of arrays in host memory computes."""
        assert isinstance(self.form, Computed)
        return torch.tensor(self.form.function(users.cpu().numpy(), items.cpu().numpy()), device=self.device).double()


class TorchPoolWeights:
    """A rule that weighs a pool, on a device."""

    def __init__(self, rule: PoolRule, device: torch.device) -> None:
        self.rule, self.device = rule, device
        self.prior = None if isinstance(rule, EqualWeights) else TorchPrior(rule.prior, device)
        self.judge: TorchMostUnbiased | None = None
        if isinstance(rule, WeightsByPoolRank):
            kind: Any = type(rule.likelihood)
            self.likelihood = kind(*(torch.as_tensor(x, dtype=torch.float64, device=device) for x in rule.likelihood))
        elif not isinstance(rule, EqualWeights):
            judge = torch_choice(rule.rule)(rule.rule, device)
            assert isinstance(judge, TorchMostUnbiased)
            self.judge = judge

    def load(self, rule: PoolRule) -> None:
        """Take over the numbers that follow the epoch, at its start."""
        if isinstance(rule, WeightsByPoolRank):
            for tensor, value in zip(self.likelihood, rule.likelihood, strict=True):
                tensor.copy_(torch.as_tensor(value, dtype=torch.float64))
        elif self.judge is not None and not isinstance(rule, EqualWeights):
            self.judge.update(rule.rule)
        self.rule = rule

    def weigh(self, pool: SharedPool, batch: TensorBatch, rows: TrainingRows, scores: BatchScores, x: Tensor) -> Tensor:
        """The weights (B, N) float32 of the pool for the users of the batch, whose scores of it are ``x`` (B, N)."""
        slot_of = slots_of(pool.items, rows.n_items)
        counts = counting(pool.items, slot_of, batch.users, rows)
        rule = self.rule
        if isinstance(rule, EqualWeights):
            return counts.float()
        assert self.prior is not None
        p = self.prior.of(batch.users, pool.items, slot_of)
        if isinstance(rule, WeightsByPoolRank):
            found = unbias(base_cdf(self.likelihood, pool_share(x, counts, pool.log_q)), p.double())
            weight = rule.weight
        else:
            assert self.judge is not None
            items = torch.cat([batch.positives[:, None], pool.items.expand(len(x), -1)], dim=1)
            _, at_most = self.judge._counts(batch, rows, scores, items)
            _, n = list_sizes(rule.rule.over, rows.n_items, batch.counts)
            found, weight = counted_unbias(self.judge.likelihood, at_most, n, p.double()), rule.rule.weight
        return torch.where(counts, weight_of(found, float(weight), rule.ramp), 0.0).float()


def pool_share(x: Tensor, counts: Tensor, log_q: Tensor | None) -> Tensor:
    """The share M (B, N) of the pool that scores at most as high, each item standing for 1/q items."""
    shown = torch.where(counts, x, INFINITY)
    ascending, order = shown.sort(dim=1)
    if log_q is None:
        n = counts.sum(dim=1, keepdim=True)
        at_most = torch.searchsorted(ascending, x.contiguous(), right=True).minimum(n)
        return at_most.double() / (n + 1).double()
    stands_for = torch.exp(-(log_q - log_q.min())).double()
    mass = torch.where(counts, stands_for, 0.0)
    sums = torch.nn.functional.pad(mass.gather(1, order).cumsum(dim=1), (1, 0))
    at_most = sums.gather(1, torch.searchsorted(ascending, x.contiguous(), right=True))
    n = counts.sum(dim=1, keepdim=True).clamp(min=1)
    return at_most / (sums[:, -1:] * (1.0 + 1.0 / n)).clamp(min=1e-300)
