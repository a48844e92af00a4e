"""The rules of AOBPR for a batch at once, in torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bayesneg.kernels.reference.choices.aobpr import FACTOR_TRIES, AtFactorRank, AtScoreRank
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.torch.choices.base import (
    BatchScores,
    FactorRanksInParts,
    ScoreRanksInParts,
    TensorBatch,
    TorchChoice,
    executes,
)
from bayesneg.kernels.torch.formulas import truncated_rank
from bayesneg.kernels.torch.score_lists import INFINITY, TrainingRows, contains, hide_all, observed_pairs

LARGEST = 1.0 - 2.0**-53  # of a uniform number


@executes(AtScoreRank)
class TorchAtScoreRank(TorchChoice):
    @staticmethod
    def highest_rank(rule: AtScoreRank, draws: Draws | None, n_items: int) -> int:
        """Rounded up to a power of two, so that it seldom changes."""
        most = LARGEST if draws is None else draws.uniforms[:, 0].max()
        highest = -rule.scale * np.log1p(most * np.expm1(-n_items / rule.scale))
        return min(n_items - 1, 1 << int(highest + 1).bit_length())

    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        """Whole score lists, of as many examples at a time as ``chunk`` items per example of the batch allow."""
        ranks = truncated_rank(batch.draws.uniforms[:, 0], self.rule.scale, rows.n_items - batch.counts)
        if isinstance(scores, ScoreRanksInParts):
            return scores.at_score_ranks(ranks)
        at_once = max(1, batch.chunk * len(batch.users) // rows.n_items)
        chosen = []
        for first in range(0, len(batch.users), at_once):
            part = slice(first, first + at_once)
            pairs = observed_pairs(rows, batch.starts[part], batch.counts[part], batch.capacity)
            chosen.append(choose_at_rank(hide_all(scores.rows(part), pairs), ranks[part], batch.most_rank))
        return torch.cat(chosen)


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


@executes(AtFactorRank)
class TorchAtFactorRank(TorchChoice):
    recordable = False  # when to sort is decided on the host

    def __init__(self, rule: AtFactorRank, device: torch.device) -> None:
        super().__init__(rule, device)
        self.load(rule)

    def load(self, rule: AtFactorRank) -> None:
        self.rule = rule
        self.orders, self.spreads = (torch.from_numpy(part).to(self.device) for part in (rule.orders, rule.spreads))

    def store(self) -> None:
        self.rule.orders[:], self.rule.spreads[:] = self.orders.cpu().numpy(), self.spreads.cpu().numpy()

    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        if isinstance(scores, FactorRanksInParts):
            return scores.at_factor_ranks(self, batch.draws, batch.users, rows)
        clock, period = int(self.rule.clock[0]), self.rule.period
        if clock == 0 or clock // period != (clock - len(batch.users)) // period:
            items = scores.item_vectors()
            self.orders.copy_((-items.T).argsort(dim=1, stable=True))
            self.spreads.copy_(items.double().std(dim=0, correction=0))
        self.rule.clock[0] += len(batch.users)
        w, uniforms = scores.user_vectors(), batch.draws.uniforms
        return choose_at_factor_rank(w, self.rule.scale, self.orders, self.spreads, rows, batch.users, uniforms)


def choose_at_factor_rank(
    w: Tensor, scale: float, orders: Tensor, spreads: Tensor, rows: TrainingRows, users: Tensor, uniforms: Tensor
) -> Tensor:
    """The item (B,) at a drawn rank of a drawn factor's list; the first of eight draws that is unobserved."""
    n_items = orders.shape[1]
    ranks, factors, rising = drawn_ranks(w, scale, spreads, n_items, uniforms)
    items = orders[factors, torch.where(rising, ranks, n_items - 1 - ranks)].long()  # (B, tries)
    free = ~contains(rows, users, items)
    first = free.long().argmax(dim=1, keepdim=True)
    chosen = items.gather(1, first)[:, 0]
    stuck = ~free.any(dim=1)
    if not bool(stuck.any()):
        return chosen
    return torch.where(stuck, _next_free(rows, users, orders, ranks[:, -1], factors[:, -1], rising[:, -1]), chosen)


def drawn_ranks(
    w: Tensor, scale: float, spreads: Tensor, n_items: int, uniforms: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Ranks (B, tries), factors ∝ |w_f|·std_f, and whether the factor's list is read from its highest value on."""
    mass = (w.double().abs() * spreads).cumsum(dim=1)  # (B, d)
    pairs = uniforms.view(len(w), FACTOR_TRIES, 2)
    sizes = torch.full((len(w), 1), n_items, dtype=torch.int64, device=w.device)
    ranks = truncated_rank(pairs[:, :, 0], scale, sizes)
    factors = torch.searchsorted(mass, (pairs[:, :, 1] * mass[:, -1:]).contiguous(), right=True).clamp(
        max=w.shape[1] - 1
    )
    return ranks, factors, w.gather(1, factors) > 0


def _next_free(
    rows: TrainingRows, users: Tensor, orders: Tensor, rank: Tensor, factor: Tensor, rising: Tensor
) -> Tensor:
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
