"""Every rule of ``kernels/reference/choices.py`` for a batch at once, in torch, on any device.

One small class per rule, registered with ``executes``: its numbers as tensors, the choice, and what it remembers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bayesneg.kernels.reference.choices import (
    FACTOR_TRIES,
    AtFactorRank,
    AtScoreRank,
    Draws,
    FromMemory,
    LeastRisk,
    LeastRiskBySummary,
    MostUnbiased,
    Rule,
    TakeFirst,
    TakeHighest,
)
from bayesneg.kernels.reference.formulas import list_sizes, risk
from bayesneg.kernels.torch.choice import EXECUTIONS, BatchScores, TensorBatch, TorchChoice, executes
from bayesneg.kernels.torch.formulas import counted_unbias, info, items_above, lengths_of, truncated_rank
from bayesneg.kernels.torch.gradients import fused_for
from bayesneg.kernels.torch.memory import choose_from_memory, fresh_for_memory, refreshed_memory
from bayesneg.kernels.torch.score_lists import (
    FEW,
    INFINITY,
    TrainingRows,
    contains,
    count_at_most,
    first_least,
    hide,
    hide_all,
    numbers,
    observed_pairs,
    score_chunks,
)


def torch_choice(rule: Rule) -> type[TorchChoice]:
    """The class that executes a rule in torch."""
    return EXECUTIONS[type(rule)]


# ------------------------------------------------------------------------------------------------- RNS, PNS and DNS


@executes(TakeFirst)
class TorchTakeFirst(TorchChoice):
    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        return batch.draws.candidates[:, self.rule.position]


@executes(TakeHighest)
class TorchTakeHighest(TorchChoice):
    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        drawn = batch.draws
        x = scores.of(drawn.candidates.clamp(min=0))
        position = choose_highest(x, drawn.sizes, self.rule.top, drawn.uniforms[:, 0])
        return drawn.candidates.gather(1, position[:, None])[:, 0]


def choose_highest(x: Tensor, sizes: Tensor, top: int, uniforms: Tensor) -> Tensor:
    """Position (B,) of one of the ``top`` highest of x (B, m), uniformly; the earlier position wins a tie."""
    beyond = numbers(x.shape[1], x.device) >= sizes[:, None]
    order = x.masked_fill(beyond, -INFINITY).sort(dim=1, descending=True, stable=True).indices
    return order.gather(1, (uniforms * torch.clamp(sizes, max=top)).long()[:, None])[:, 0]


# ---------------------------------------------------------------------------------------- BNS and the posterior


@executes(MostUnbiased)
class TorchMostUnbiased(TorchChoice):
    weight: Tensor | None = None  # λ, where there is one

    def __init__(self, rule: Any, device: torch.device) -> None:
        super().__init__(rule, device)
        self.likelihood = type(rule.likelihood)(*(self._number(value) for value in rule.likelihood))

    def update(self, rule: Any) -> None:
        for tensor, value in zip(self.likelihood, rule.likelihood, strict=True):
            tensor.copy_(torch.as_tensor(value, dtype=torch.float64))

    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        drawn, fused = batch.draws, fused_for(self.device)
        if fused is not None and batch.chunk >= rows.n_items and drawn.candidates.shape[1] <= FEW:
            return fused.choose_by_posterior(
                scores.chunk(0, rows.n_items), batch.positives, batch.starts, batch.counts, rows.items,
                drawn.candidates, drawn.sizes, drawn.priors, self.weight, over=self.rule.over,
                likelihood=self.likelihood,
            )  # fmt: skip
        return self._by_counts(batch, rows, scores)

    def _by_counts(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        drawn = batch.draws
        candidates = drawn.candidates.clamp(min=0)
        x, counts = self._counts(batch, rows, scores, torch.cat([batch.positives[:, None], candidates], dim=1))
        _, n = list_sizes(self.rule.over, rows.n_items, batch.counts)
        true_negative = counted_unbias(self.likelihood, counts, n, drawn.priors)
        if self.weight is None:
            position = choose_most_unbiased(true_negative, drawn.sizes)
        else:
            position = choose_least_risk(x[:, 1:], x[:, 0], true_negative, self.weight, drawn.sizes)
        return candidates.gather(1, position[:, None])[:, 0]

    def _counts(
        self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores, items: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores (B, 1 + m) of the positive and the candidates, and #{x ≤ x_l} (B, m) over the catalogue.

        The scores are read off the chunks, so that each candidate counts itself whatever the rounding.
        """
        every = self.rule.over.with_observed
        pairs = None if every else observed_pairs(rows, batch.starts, batch.counts, batch.capacity)
        m = items.shape[1] - 1
        chunk = max(1, batch.chunk // m) if m <= FEW else batch.chunk  # few are compared with each score at once
        if chunk >= rows.n_items:
            block = scores.chunk(0, rows.n_items)
            x = block.gather(1, items)
            return x, count_at_most(block if pairs is None else hide_all(block, pairs), x[:, 1:])
        x = torch.zeros(items.shape, dtype=torch.float32, device=items.device)
        for first, block in score_chunks(scores.chunk, rows.n_items, chunk):
            inside = (items >= first) & (items < first + block.shape[1])
            x = torch.where(inside, block.gather(1, (items - first).clamp(0, block.shape[1] - 1)), x)
        counts = torch.zeros_like(items[:, 1:])
        for first, block in score_chunks(scores.chunk, rows.n_items, chunk):
            counts = counts + count_at_most(block if pairs is None else hide(block, pairs, first), x[:, 1:])
        return x, counts


@executes(LeastRisk)
class TorchLeastRisk(TorchMostUnbiased):
    changing = ("weight",)
    weight: Tensor

    def __init__(self, rule: Any, device: torch.device) -> None:
        super().__init__(rule, device)
        self.weight = self._number(rule.weight)

    def update(self, rule: Any) -> None:
        super().update(rule)
        self.weight.fill_(rule.weight)


@executes(LeastRiskBySummary)
class TorchLeastRiskBySummary(TorchLeastRisk):
    def __init__(self, rule: Any, device: torch.device) -> None:
        super().__init__(rule, device)
        # a model on a GPU refreshes the knots there; as_tensor then takes the very tensor
        self.knots, self.ranks = (torch.as_tensor(part, device=device) for part in (rule.knots, rule.ranks))

    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        return self._by_counts(batch, rows, scores)

    def _counts(
        self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores, items: Tensor
    ) -> tuple[Tensor, Tensor]:
        x = scores.of(items)
        z = x[:, 1:] / lengths_of(scores.user_vectors())
        above = items_above(self.knots.index_select(0, batch.users), self.ranks, z)
        n_counted, _ = list_sizes(self.rule.over, rows.n_items, batch.counts)
        return x, n_counted[:, None] - torch.minimum(above, n_counted[:, None] - 1.0)


def choose_least_risk(
    x: Tensor, x_positive: Tensor, true_negative: Tensor, weight: float | Tensor, sizes: Tensor
) -> Tensor:
    """Position (B,) of the candidate with the least risk; the lowest position wins a tie."""
    return first_least(risk(info(x_positive[:, None], x), true_negative, weight), sizes)


def choose_most_unbiased(true_negative: Tensor, sizes: Tensor) -> Tensor:
    """Position (B,) of the candidate most probably a true negative; the lowest position wins a tie."""
    return first_least(-true_negative, sizes)


# ------------------------------------------------------------------------------------------------------------ AOBPR


@executes(AtScoreRank)
class TorchAtScoreRank(TorchChoice):
    @staticmethod
    def highest_rank(rule: AtScoreRank, draws: Draws, n_items: int) -> int:
        """Rounded up to a power of two, so that it seldom changes."""
        highest = -rule.scale * np.log1p(draws.uniforms[:, 0].max() * np.expm1(-n_items / rule.scale))
        return min(n_items - 1, 1 << int(highest + 1).bit_length())

    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        """Whole score lists, of as many examples at a time as ``chunk`` items per example of the batch allow."""
        ranks = truncated_rank(batch.draws.uniforms[:, 0], self.rule.scale, rows.n_items - batch.counts)
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


# ------------------------------------------------------------------------------------------------------------- SRNS


@executes(FromMemory)
class TorchFromMemory(TorchChoice):
    changing = ("variance_weight",)
    needs_firsts = True

    def __init__(self, rule: FromMemory, device: torch.device) -> None:
        super().__init__(rule, device)
        scratch = np.concatenate((rule.memory, rule.memory[:1]))  # the last row takes the writes of no user
        arrays = (scratch, rule.past_users, rule.past_items)
        self.memory, self.past_users, self.past_items = (torch.from_numpy(array).to(device) for array in arrays)
        self.variance_weight = self._number(rule.variance_weight)

    def load(self, rule: FromMemory) -> None:
        self.rule = rule
        self.memory[:-1].copy_(torch.from_numpy(rule.memory))
        self.past_users.copy_(torch.from_numpy(rule.past_users))
        self.past_items.copy_(torch.from_numpy(rule.past_items))

    def update(self, rule: FromMemory) -> None:
        self.variance_weight.fill_(rule.variance_weight)

    def store(self) -> None:
        self.rule.memory[:] = self.memory[:-1].cpu().numpy()

    @property
    def state(self) -> Sequence[Tensor]:
        return (self.memory,)

    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        """Every choice reads the memory as it was before the batch; a user's first example refreshes it."""
        memory, n_past = self.memory[batch.users].long(), self.rule.n_past  # (B, S)
        w, h = self.past_users[:n_past, batch.users], self.past_items[:n_past]  # (t, B, d), (t, n_items, d)
        past = (w[:, :, None, :] * h[:, memory.clamp(min=0)]).sum(dim=3)  # (t, B, S)
        past_positive = (w * h[:, batch.positives]).sum(dim=2)  # (t, B)
        n_fresh = batch.draws.candidates.shape[1] - memory.shape[1]
        fresh = fresh_for_memory(batch.draws.candidates, batch.draws.sizes, memory, n_fresh)
        x = scores.of(torch.cat([memory, fresh], dim=1).clamp(min=0))
        x_positive = scores.of(batch.positives[:, None])[:, 0]
        current, sizes = x[:, : memory.shape[1]], (memory >= 0).sum(dim=1)
        slot = choose_from_memory(current, x_positive, past, past_positive, self.variance_weight, sizes)
        after = refreshed_memory(memory, fresh, x, self.rule.temperature, batch.draws.uniforms)
        written = torch.where(batch.firsts > 0, batch.users, len(self.memory) - 1)
        self.memory.index_copy_(0, written, after.to(self.memory.dtype))
        return memory.gather(1, slot[:, None])[:, 0]
