"""Draws on a device: unobserved items uniformly without replacement, by rank, so that nothing is rejected.

Rows of users are searched through one ascending list of keys, in one step for all examples.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from bayesneg.kernels.reference.plans import CandidatePlan, DrawPlan, PoolPlan
from bayesneg.kernels.reference.pools import SharedPool
from bayesneg.kernels.torch.choices.base import DrawTensors
from bayesneg.kernels.torch.pools import TorchPrior
from bayesneg.kernels.torch.score_lists import TrainingRows, numbers


class RowKeys:
    """Training rows as ascending lists of keys, for drawing and for looking up.

    Args:
        rows: The training rows on a device.
    """

    def __init__(self, rows: TrainingRows) -> None:
        self.rows, self.n_items = rows, rows.n_items
        counts = rows.indptr[1:] - rows.indptr[:-1]
        users = torch.repeat_interleave(torch.arange(len(counts), device=rows.items.device), counts)
        items = rows.items.long()
        before = torch.arange(len(items), device=items.device) - rows.indptr[users]  # observed items before it
        self.pairs = users * self.n_items + items
        self.gaps = users * self.n_items + (items - before)  # unobserved items before it

    def contains(self, users: Tensor, items: Tensor) -> Tensor:
        """True (B, m) where the item is in the user's row."""
        return self.positions(users[:, None], items)[1]

    def positions(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor]:
        """The position of each pair among the training pairs, and whether it is one."""
        wanted = users * self.n_items + items
        found = torch.searchsorted(self.pairs, wanted.contiguous()).clamp(max=max(0, len(self.pairs) - 1))
        return found, self.pairs[found] == wanted

    def unobserved(self, users: Tensor, ranks: Tensor) -> Tensor:
        """The item (B, m) at each rank among the user's unobserved items."""
        passed = torch.searchsorted(self.gaps, users[:, None] * self.n_items + ranks, right=True)
        return ranks + passed - self.rows.indptr[users][:, None]


def uniform_candidates(users: Tensor, keys: RowKeys, m: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Unobserved items (B, m) without replacement, −1 where there are fewer, and the number (B,) of each row."""
    n = keys.n_items - keys.rows.counts(users)
    draws = torch.rand(len(users), m, dtype=torch.float64, device=users.device, generator=generator)
    left = (n[:, None] - numbers(m, users.device)).clamp(min=1)
    ranks = (draws * left).long()  # the k-th is a rank among those that are not drawn before it
    for k in range(m - 2, -1, -1):  # what comes after the k-th is counted with it
        after = ranks[:, k + 1 :]
        after += after >= ranks[:, k : k + 1]
    sizes = n.clamp(max=max(m, 1))  # a rule that draws no candidates asks whether there is one
    there = numbers(m, users.device) < sizes[:, None]
    items = keys.unobserved(users, torch.where(there, ranks, 0))
    return torch.where(there, items, -1), sizes


class WeightedKeys:
    """Weights of items and of training rows, cumulated, for draws with unequal probabilities.

    Args:
        keys: The training rows as keys.
        weights: The weights (n_items,) of the draw.
    """

    def __init__(self, keys: RowKeys, weights: Tensor) -> None:
        self.keys, rows = keys, keys.rows
        items = rows.items.long()
        self.mass = torch.nn.functional.pad(weights.double().cumsum(0), (1, 0))  # (n_items + 1,)
        self.passed = torch.nn.functional.pad(weights.double()[items].cumsum(0), (1, 0))  # over all rows
        starts = self.passed[rows.indptr]
        self.free = self.mass[-1] - starts.diff()  # (n_users,) the weight of a user's unobserved items
        users = torch.div(keys.pairs, keys.n_items, rounding_mode="floor")
        before = self.mass[items] - (self.passed[:-1] - starts[users])  # unobserved weight before an observed item
        self.gaps = (users + (before / self.mass[-1]).clamp(0, 1 - 1e-9)).contiguous()

    def drawn(self, users: Tensor, m: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Unobserved items (B, m) with probability ∝ their weights, independently; and their number (B,), m or 0."""
        uniform = torch.rand(len(users), m, dtype=torch.float64, device=users.device, generator=generator)
        at = uniform * self.free[users][:, None]
        wanted = users[:, None] + (at / self.mass[-1]).clamp(0, 1 - 1e-9)
        start = self.keys.rows.indptr[users][:, None]
        place = torch.searchsorted(self.gaps, wanted, right=True).maximum(start)
        at += self.passed[place] - self.passed[start]
        items = (torch.searchsorted(self.mass, at, right=True) - 1).clamp(max=self.keys.n_items - 1)
        there = ~self.keys.contains(users, items)  # rounding may lead to the item next to a gap
        order = (~there).int().argsort(dim=1, stable=True)  # what is missing comes last
        return torch.where(there, items, -1).gather(1, order), there.sum(dim=1)

    def pool(self, size: int, generator: torch.Generator) -> Tensor:
        """Items (N,) of the catalogue with probability ∝ their weights, independently."""
        uniform = torch.rand(size, dtype=torch.float64, device=self.mass.device, generator=generator)
        return (torch.searchsorted(self.mass, uniform * self.mass[-1], right=True) - 1).clamp(max=self.keys.n_items - 1)


class TorchDraws:
    """A plan on a device: what a sampler draws is drawn there.

    Args:
        plan: What to draw.
        keys: The training rows as keys.
    """

    def __init__(self, plan: DrawPlan, keys: RowKeys) -> None:
        self.plan, self.keys, self.device = plan, keys, keys.pairs.device
        self.prior: TorchPrior | None = None
        self.weights: Tensor | None = None
        if plan.probabilities is not None:
            self.weights = torch.as_tensor(plan.probabilities, dtype=torch.float64, device=self.device)
            self.n_drawable = int(np.count_nonzero(plan.probabilities))
            self.weighted = WeightedKeys(keys, self.weights)
        if isinstance(plan, CandidatePlan) and plan.prior is not None:
            self.prior = TorchPrior(plan.prior, self.device)

    def draws(self, users: Tensor, generator: torch.Generator) -> DrawTensors:
        """The candidates of each example, their priors and uniform numbers."""
        plan, empty = self.plan, torch.empty(len(users), 0, dtype=torch.float64, device=self.device)
        assert isinstance(plan, CandidatePlan)
        if self.weights is not None:
            items, sizes = self.weighted.drawn(users, plan.candidates, generator)
        else:
            items, sizes = uniform_candidates(users, self.keys, plan.candidates, generator)
        p, uniforms = empty, empty
        if self.prior is not None:
            p = self.prior.of_pairs(users, items.clamp(min=0))
        if plan.uniforms:
            shape = len(users), plan.uniforms
            uniforms = torch.rand(shape, dtype=torch.float64, device=self.device, generator=generator)
        return DrawTensors(items, sizes, p, uniforms)

    def pool(self, positives: Tensor, generator: torch.Generator) -> SharedPool:
        """The pool of a batch."""
        plan, n_items = self.plan, self.keys.n_items
        assert isinstance(plan, PoolPlan)
        if self.weights is None:
            size = n_items if plan.size is None else min(plan.size, n_items)
            return SharedPool(torch.randperm(n_items, device=self.device, generator=generator)[:size])
        items = positives if plan.size is None else self.weighted.pool(plan.size, generator)
        return SharedPool(items, pool_log_q(self.weights[items], len(items), self.n_drawable).float(), plan.corrects)


def pool_log_q(p: Tensor, draws: int, n_drawable: int) -> Tensor:
    """log q of items in a pool of independent draws, as the reference has it."""
    inclusion = torch.log(-torch.expm1(draws * torch.log1p(-p.clamp(max=1.0))))
    return inclusion - math.log(min(draws, n_drawable) / n_drawable)


def first_of_its_user(users: Tensor, n_users: int) -> Tensor:
    """1 (B,) where no earlier example of the batch has the same user, otherwise 0."""
    position = numbers(len(users), users.device).long()
    firsts = torch.full((n_users,), len(users), dtype=torch.int64, device=users.device)
    firsts.scatter_reduce_(0, users, position, reduce="amin")
    return (firsts[users] == position).long()
