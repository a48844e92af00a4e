"""Every rule of ``kernels/reference/pools.py`` in torch, on any device: weights (B, N) of a shared pool.

Nothing of size users × items exists: what is known of a few items of each user (training items, likely false
negatives) is scattered into the pool.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayesneg.kernels.numba.pools.weights import PooledRows, PoolPrior, equal_weights, weights_by_rank
from bayesneg.kernels.reference.formulas import list_sizes, unbias
from bayesneg.kernels.reference.pools import (
    Computed,
    EqualWeights,
    MeanOfForms,
    PerGroup,
    PerItem,
    PoolRule,
    PriorForm,
    SharedPool,
    SparseRows,
    WeightsByList,
    WeightsByPoolRank,
)
from bayesneg.kernels.reference.selections import weight_of
from bayesneg.kernels.torch.choices.base import BatchScores, TensorBatch, torch_choice
from bayesneg.kernels.torch.choices.posterior import TorchMostUnbiased
from bayesneg.kernels.torch.formulas import base_cdf, counted_unbias, mean_probability
from bayesneg.kernels.torch.gradients import fused_for
from bayesneg.kernels.torch.score_lists import INFINITY, TrainingRows, contains, numbers

NO_ROWS, NO_ITEMS, NO_VALUES = np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32)
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


def put_rows(
    matrix: Tensor, indptr: Tensor, items: Tensor, values: Tensor | None, users: Tensor, slot_of: Tensor, longest: int
) -> Tensor:
    """The matrix (B, N), or one that can be expanded to it, with ``values`` of the users' rows, or 0, in the pool.

    The rows begin at ``indptr``; ``values`` are None or as long as ``items``; no row is longer than ``longest``.
    """
    shape = len(users), matrix.shape[1]
    fused = fused_for(users.device)
    if fused is not None:
        found: Tensor = matrix.expand(shape).clone(memory_format=torch.contiguous_format)
        fused.put_rows(found, users, indptr, items, values, slot_of)
        return found
    pairs = pooled(indptr, items, users, slot_of, shape[1], longest)
    return with_cells(matrix.expand(shape), pairs.cells, 0 if values is None else values[pairs.entries])


def slots_of(pool: Tensor, n_items: int) -> Tensor:
    """The first position (n_items,) of each item in the pool, −1 outside it."""
    slots = torch.full((n_items,), len(pool), dtype=torch.int64, device=pool.device)
    slots.scatter_reduce_(0, pool, numbers(len(pool), pool.device).long(), reduce="amin")
    return torch.where(slots == len(pool), -1, slots)


def counting(pool: Tensor, slot_of: Tensor, users: Tensor, rows: TrainingRows) -> Tensor:
    """True (B, N) where an item of the pool counts: unobserved by the user, and the first of its kind."""
    first = slot_of[pool] == numbers(len(pool), pool.device)
    return put_rows(first[None, :], rows.indptr, rows.items, None, users, slot_of, rows.longest)


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
        self.inner: list[TorchPrior] = []
        self.arrays: list[Tensor] = []
        self.longest = 0
        self.likelier: list[Any] = [NO_ROWS, NO_ITEMS, NO_VALUES]  # as compiled code reads a sparse row
        if isinstance(form, MeanOfForms):
            self.inner = [TorchPrior(part, device) for part in form.parts]
        elif isinstance(form, SparseRows):
            base, *rows = form
            if isinstance(base, np.ndarray):
                rows = [base, *rows]
            else:
                self.inner = [TorchPrior(base, device)]
            self.arrays = [torch.tensor(part, device=device) for part in rows]
            self.longest = int((form.indptr[1:] - form.indptr[:-1]).max(initial=0))
            if device.type == "cpu":
                kinds = torch.int64, torch.int32, torch.float32
                self.likelier = [part.to(kind).numpy() for part, kind in zip(self.arrays[-3:], kinds, strict=True)]
        elif not isinstance(form, Computed):
            self.arrays = [torch.tensor(part, device=device) for part in form]

    @property
    def on_device(self) -> bool:
        """Whether no part of it is a function of arrays in host memory."""
        return not isinstance(self.form, Computed) and all(part.on_device for part in self.inner)

    def of(self, users: Tensor, pool: Tensor, slot_of: Tensor) -> Tensor:
        """Probabilities (B, N), or (1, N) or (B, 1) where all users or all items have the same, float32."""
        if not isinstance(self.form, SparseRows) or len(self.arrays[-1]) == 0:
            return self._base(users, pool, slot_of)
        indptr, items, values = self.arrays[-3:]
        base = self._base(users, pool, slot_of).expand(-1, len(pool))
        return put_rows(base, indptr, items, values, users, slot_of, self.longest)

    def _base(self, users: Tensor, pool: Tensor, slot_of: Tensor) -> Tensor:
        """The same without the pairs of a sparse row."""
        form = self.form
        if isinstance(form, PerItem):
            return self.arrays[0][pool].float()[None, :]
        if isinstance(form, PerGroup):
            groups, table = self.arrays
            return table.index_select(1, pool).float()[groups[users]]
        if isinstance(form, MeanOfForms):
            parts = [part.of(users, pool, slot_of).double() for part in self.inner]
            return mean_probability(parts, form.weights, form.logit).float()
        if isinstance(form, SparseRows):
            return self.inner[0].of(users, pool, slot_of) if self.inner else self.arrays[0][users].float()[:, None]
        return self._computed(users[:, None], pool[None, :]).float()

    def of_pairs(self, users: Tensor, items: Tensor) -> Tensor:
        """Probabilities (B, m) float64 of items (B, m) of each user."""
        form = self.form
        if isinstance(form, PerItem):
            return self.arrays[0][items].double()
        if isinstance(form, PerGroup):
            groups, table = self.arrays
            return table[groups[users][:, None], items].double()
        if isinstance(form, MeanOfForms):
            return mean_probability([part.of_pairs(users, items) for part in self.inner], form.weights, form.logit)
        if not isinstance(form, SparseRows):
            return self._computed(users[:, None].expand_as(items), items)
        base = self.inner[0].of_pairs(users, items) if self.inner else self.arrays[0][users][:, None].double()
        indptr, found, values = self.arrays[-3:]
        if len(found) == 0:
            return base.expand(items.shape)
        low, end = indptr[users][:, None].expand_as(items), indptr[users + 1][:, None].expand_as(items)
        high = end
        for _ in range(max(1, self.longest).bit_length()):
            middle = (low + high) // 2
            below = found[middle.clamp(max=len(found) - 1)] < items
            low, high = torch.where(below & (low < high), middle + 1, low), torch.where(below, high, middle)
        there = (low < end) & (found[low.clamp(max=len(found) - 1)] == items)
        return torch.where(there, values[low.clamp(max=len(found) - 1)].double(), base)

    def for_compiled_code(self, users: Tensor, pool: Tensor, slot_of: Tensor) -> PoolPrior:
        """The same as compiled code reads it, on the CPU: nothing of the size B × N unless it has to be computed."""
        form, n = self.form, len(users)
        if isinstance(form, PerGroup):
            groups, table = self.arrays
            which, rows = groups[users], table.index_select(1, pool)
        else:
            rows = self._base(users, pool, slot_of)
            which = torch.arange(n) if len(rows) > 1 else torch.zeros(n, dtype=torch.int64)
        indptr, items, values = self.likelier
        likelier = PooledRows(users.numpy(), indptr, items, slot_of.numpy())
        return PoolPrior(which.numpy().astype(np.int64), rows.double().contiguous().numpy(), likelier, values)

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

    def recordable(self, n_examples: int, rows: TrainingRows) -> bool:
        """Whether a CUDA graph can hold :meth:`weigh` for a batch: nothing is computed or asked for on the host."""
        if isinstance(self.rule, WeightsByList):
            return False
        longest = max(rows.longest, 0 if self.prior is None else self.prior.longest)
        on_device = self.prior is None or self.prior.on_device
        return on_device and n_examples * longest <= MOST_SLOTS

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
        if x.device.type == "cpu" and not isinstance(self.rule, WeightsByList):
            return self.weigh_by_compiled_code(pool, batch.users, rows, x)
        return self.weigh_by_torch(pool, batch, rows, scores, x)

    def weigh_by_compiled_code(self, pool: SharedPool, users: Tensor, rows: TrainingRows, x: Tensor) -> Tensor:
        """On the CPU, where torch takes long to sort rows."""
        rule, slot_of = self.rule, slots_of(pool.items, rows.n_items)
        own = PooledRows(users.numpy(), rows.indptr.numpy(), rows.items.numpy(), slot_of.numpy())
        found, threads = torch.empty(x.shape), torch.get_num_threads()
        if isinstance(rule, EqualWeights):
            equal_weights(pool.items.numpy(), own, threads=threads, found=found.numpy())
            return found
        assert isinstance(rule, WeightsByPoolRank)
        assert self.prior is not None
        weights_by_rank(
            x.float().contiguous().numpy(),
            pool.items.numpy(),
            None if pool.log_q is None else pool.log_q.numpy(),
            own,
            self.prior.for_compiled_code(users, pool.items, slot_of),
            rule.likelihood,
            weight=rule.weight,
            ramp=rule.ramp,
            threads=threads,
            found=found.numpy(),
        )
        return found

    def weigh_by_torch(
        self, pool: SharedPool, batch: TensorBatch, rows: TrainingRows, scores: BatchScores, x: Tensor
    ) -> Tensor:
        """On any device."""
        slot_of = slots_of(pool.items, rows.n_items)
        counts = counting(pool.items, slot_of, batch.users, rows)
        rule = self.rule
        if isinstance(rule, EqualWeights):
            return counts.float()
        assert self.prior is not None
        p = self.prior.of(batch.users, pool.items, slot_of)
        if isinstance(rule, WeightsByPoolRank):
            share, fused = pool_share(x, counts, pool.log_q), fused_for(self.device)
            if fused is not None:
                weights: Tensor = fused.weigh_pool(
                    *share, counts, p, likelihood=self.likelihood, weight=float(rule.weight), ramp=rule.ramp
                )
                return weights
            found = unbias(base_cdf(self.likelihood, share.at_most.double() / share.total[:, None]), p.double())
            weight = rule.weight
        else:
            assert self.judge is not None
            items = torch.cat([batch.positives[:, None], pool.items.expand(len(x), -1)], dim=1)
            _, at_most = self.judge._counts(batch, rows, scores, items)
            _, n = list_sizes(rule.rule.over, rows.n_items, batch.counts)
            found, weight = counted_unbias(self.judge.likelihood, at_most, n, p.double()), rule.rule.weight
        return torch.where(counts, weight_of(found, float(weight), rule.ramp), 0.0).float()


class PoolShare(NamedTuple):
    """The share of a pool that scores at most as high as each of its items."""

    at_most: Tensor  # (B, N)
    total: Tensor  # (B,) float64, by which it is divided


def pool_share(x: Tensor, counts: Tensor, log_q: Tensor | None) -> PoolShare:
    """The share of the pool that scores at most as high, each item standing for 1/q items."""
    shown = torch.where(counts, x, INFINITY)
    ascending, order = shown.sort(dim=1)
    place = torch.searchsorted(ascending, x.contiguous(), right=True, out_int32=True)
    n = counts.sum(dim=1, dtype=torch.int32)
    if log_q is None:
        return PoolShare(place.minimum(n[:, None]), (n + 1).double())
    stands_for = torch.exp(-(log_q - log_q.min())).double()
    mass = torch.where(counts, stands_for, 0.0)
    sums = torch.nn.functional.pad(mass.gather(1, order).cumsum(dim=1), (1, 0))
    total = sums[:, -1] * (1.0 + 1.0 / n.clamp(min=1))
    return PoolShare(sums.gather(1, place.long()), total.clamp(min=1e-300))
