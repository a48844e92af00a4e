"""Draws on a device: unobserved items uniformly without replacement, by rank, so that nothing is rejected.

Rows of users are searched through one ascending list of keys, in one step for all examples.
"""

from __future__ import annotations

import torch
from torch import Tensor

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
        wanted = users[:, None] * self.n_items + items
        found = torch.searchsorted(self.pairs, wanted).clamp(max=max(0, len(self.pairs) - 1))
        return self.pairs[found] == wanted

    def unobserved(self, users: Tensor, ranks: Tensor) -> Tensor:
        """The item (B, m) at each rank among the user's unobserved items."""
        passed = torch.searchsorted(self.gaps, users[:, None] * self.n_items + ranks, right=True)
        return ranks + passed - self.rows.indptr[users][:, None]


def uniform_candidates(users: Tensor, keys: RowKeys, m: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Unobserved items (B, m) without replacement, −1 where there are fewer, and the number (B,) of each row."""
    n = keys.n_items - keys.rows.counts(users)
    draws = torch.rand(len(users), m, dtype=torch.float64, device=users.device, generator=generator)
    left = (n[:, None] - numbers(m, users.device)).clamp(min=1)
    ranks = (draws * left).long()  # the k-th among those not drawn before
    taken = ranks[:, :1]
    for k in range(1, m):
        free = ranks[:, k : k + 1]
        rank = free + (taken - numbers(k, users.device) <= free).sum(dim=1, keepdim=True)
        ranks[:, k : k + 1] = rank
        if k + 1 < m:
            taken = torch.cat([taken, rank], dim=1).sort(dim=1).values
    sizes = n.clamp(max=m)
    there = numbers(m, users.device) < sizes[:, None]
    items = keys.unobserved(users, torch.where(there, ranks, 0))
    return torch.where(there, items, -1), sizes


def weighted_candidates(
    users: Tensor, keys: RowKeys, weights: Tensor, m: int, generator: torch.Generator, *, tries: int = 16
) -> tuple[Tensor, Tensor]:
    """Items (B, m) with probability ∝ their weights (n_items,), drawn independently, observed ones drawn again.

    Where ``tries`` draws are all observed, there is no item: −1.
    """
    mass = weights.double().cumsum(0)
    uniform = torch.rand(len(users), m * tries, dtype=torch.float64, device=users.device, generator=generator)
    drawn = torch.searchsorted(mass, uniform * mass[-1], right=True).clamp(max=len(weights) - 1)
    free = ~keys.contains(users, drawn).view(-1, m, tries)
    first = free.int().argmax(dim=2, keepdim=True)
    items = drawn.view(-1, m, tries).gather(2, first)[:, :, 0]
    items = torch.where(free.any(dim=2), items, -1)
    order = (items < 0).int().argsort(dim=1, stable=True)  # what is missing comes last
    return items.gather(1, order), (items >= 0).sum(dim=1)


def first_of_its_user(users: Tensor, n_users: int) -> Tensor:
    """1 (B,) where no earlier example of the batch has the same user, otherwise 0."""
    position = numbers(len(users), users.device).long()
    firsts = torch.full((n_users,), len(users), dtype=torch.int64, device=users.device)
    firsts.scatter_reduce_(0, users, position, reduce="amin")
    return (firsts[users] == position).long()
