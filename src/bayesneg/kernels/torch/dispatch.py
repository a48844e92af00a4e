"""What each rule picks for a batch, in torch: the draws, the state of the model, and the choices of ``batched``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from bayesneg.kernels.reference.choices import list_sizes
from bayesneg.kernels.rules import (
    AtFactorRank,
    AtScoreRank,
    FromMemory,
    LeastRisk,
    LeastRiskBySummary,
    MostUnbiased,
    Population,
    TakeFirst,
    TakeHighest,
)
from bayesneg.kernels.torch import choices as batched
from bayesneg.kernels.torch.choices import Rows


class Scores(Protocol):
    """The model's scores for the users of one batch."""

    def of(self, items: Tensor) -> Tensor:
        """Scores (B, m) of ``items`` (B, m)."""
        ...

    def chunk(self, first: int, last: int) -> Tensor:
        """Scores (B, last − first) of consecutive items."""
        ...

    def rows(self, part: slice) -> Tensor:
        """Scores (b, n_items) of every item for some examples of the batch."""
        ...

    def user_vectors(self) -> Tensor:
        """The users' vectors (B, d), for rules that look at factors."""
        ...

    def item_vectors(self) -> Tensor:
        """All items' vectors (n_items, d)."""
        ...


class DrawTensors(NamedTuple):
    """:class:`~bayesneg.kernels.rules.Draws` on the model's device."""

    candidates: Tensor  # (B, m) int64, −1 beyond sizes
    sizes: Tensor  # (B,) int64
    priors: Tensor  # (B, m) float64, or (B, 0)
    uniforms: Tensor  # (B, r) float64, or (B, 0)


class Examples(NamedTuple):
    """One batch: tensors on the model's device."""

    users: Tensor  # (B,) int64
    positives: Tensor  # (B,)
    starts: Tensor  # (B,) where the user's row begins
    counts: Tensor  # (B,) how long it is
    firsts: Tensor  # (B,) 1 for the first example of its user in the batch, otherwise 0
    draws: DrawTensors
    capacity: int  # at least the number of pairs the users have observed together
    most_rank: int  # at least every rank that is drawn
    chunk: int  # items scored at once


def choose_batch(rule: Any, batch: Examples, rows: Rows, scores: Scores) -> Tensor:
    """The item (B,) that the rule picks for each example, −1 where the user has no negative.

    A rule's arrays, and numbers that change with the epoch, are tensors here.
    """
    chosen = _CHOICES[type(rule)](rule, batch, rows, scores)
    return torch.where(batch.draws.sizes > 0, chosen, -1)


def _take_first(rule: TakeFirst, batch: Examples, rows: Rows, scores: Scores) -> Tensor:
    return batch.draws.candidates[:, rule.position]


def _take_highest(rule: TakeHighest, batch: Examples, rows: Rows, scores: Scores) -> Tensor:
    drawn = batch.draws
    x = scores.of(drawn.candidates.clamp(min=0))
    position = batched.choose_highest(x, drawn.sizes, rule.top, drawn.uniforms[:, 0])
    return drawn.candidates.gather(1, position[:, None])[:, 0]


def _by_posterior(rule: Any, batch: Examples, rows: Rows, scores: Scores) -> Tensor:
    drawn = batch.draws
    fused = batched.fused_for(batch.users.device)
    if fused is not None and batch.chunk >= rows.n_items and drawn.candidates.shape[1] <= batched.FEW:
        return fused.choose_by_posterior(
            scores.chunk(0, rows.n_items), batch.positives, batch.starts, batch.counts, rows.items,
            drawn.candidates, drawn.sizes, drawn.priors, getattr(rule, "weight", None), over=rule.over,
            likelihood=rule.likelihood,
        )  # fmt: skip
    candidates = drawn.candidates.clamp(min=0)
    x, counts = _counts(rule.over, batch, rows, scores, torch.cat([batch.positives[:, None], candidates], dim=1))
    _, n = list_sizes(rule.over, rows.n_items, batch.counts)
    true_negative = batched.counted_unbias(rule.likelihood, counts, n, drawn.priors)
    if isinstance(rule, MostUnbiased):
        position = batched.choose_most_unbiased(true_negative, drawn.sizes)
    else:
        position = batched.choose_least_risk(x[:, 1:], x[:, 0], true_negative, rule.weight, drawn.sizes)
    return candidates.gather(1, position[:, None])[:, 0]


def _by_summary(rule: Any, batch: Examples, rows: Rows, scores: Scores) -> Tensor:
    drawn = batch.draws
    candidates = drawn.candidates.clamp(min=0)
    x = scores.of(torch.cat([batch.positives[:, None], candidates], dim=1))
    z = x[:, 1:] / batched.lengths_of(scores.user_vectors())
    above = batched.items_above(rule.knots.index_select(0, batch.users), rule.ranks, z)
    n_counted, n = list_sizes(rule.over, rows.n_items, batch.counts)
    counts = n_counted[:, None] - torch.minimum(above, n_counted[:, None] - 1.0)
    true_negative = batched.counted_unbias(rule.likelihood, counts, n, drawn.priors)
    position = batched.choose_least_risk(x[:, 1:], x[:, 0], true_negative, rule.weight, drawn.sizes)
    return candidates.gather(1, position[:, None])[:, 0]


def _counts(over: Population, batch: Examples, rows: Rows, scores: Scores, items: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (B, 1 + m) of the positive and the candidates, and #{x ≤ x_l} (B, m) over the catalogue.

    The scores are read off the chunks, so that each candidate counts itself whatever the rounding.
    """
    pairs = None if over.with_observed else batched.observed_pairs(rows, batch.starts, batch.counts, batch.capacity)
    m = items.shape[1] - 1
    chunk = max(1, batch.chunk // m) if m <= batched.FEW else batch.chunk  # few are compared with each score at once
    if chunk >= rows.n_items:
        block = scores.chunk(0, rows.n_items)
        x = block.gather(1, items)
        return x, batched.count_at_most(block if pairs is None else batched.hide_all(block, pairs), x[:, 1:])
    x = torch.zeros(items.shape, dtype=torch.float32, device=items.device)
    for first, block in batched.score_chunks(scores.chunk, rows.n_items, chunk):
        inside = (items >= first) & (items < first + block.shape[1])
        x = torch.where(inside, block.gather(1, (items - first).clamp(0, block.shape[1] - 1)), x)
    counts = torch.zeros_like(items[:, 1:])
    for first, block in batched.score_chunks(scores.chunk, rows.n_items, chunk):
        shown = block if pairs is None else batched.hide(block, pairs, first)
        counts = counts + batched.count_at_most(shown, x[:, 1:])
    return x, counts


def _at_score_rank(rule: AtScoreRank, batch: Examples, rows: Rows, scores: Scores) -> Tensor:
    """Whole score lists, of as many examples at a time as ``chunk`` items per example of the batch allow."""
    n = rows.n_items - batch.counts
    ranks = batched.truncated_rank(batch.draws.uniforms[:, 0], rule.scale, n)
    at_once = max(1, batch.chunk * len(batch.users) // rows.n_items)
    chosen = []
    for first in range(0, len(batch.users), at_once):
        part = slice(first, first + at_once)
        pairs = batched.observed_pairs(rows, batch.starts[part], batch.counts[part], batch.capacity)
        shown = batched.hide_all(scores.rows(part), pairs)
        chosen.append(batched.choose_at_rank(shown, ranks[part], batch.most_rank))
    return torch.cat(chosen)


def _at_factor_rank(rule: Any, batch: Examples, rows: Rows, scores: Scores) -> Tensor:
    clock = int(rule.clock[0])
    if clock == 0 or clock // rule.period != (clock - len(batch.users)) // rule.period:
        items = scores.item_vectors()
        rule.orders.copy_((-items.T).argsort(dim=1, stable=True))
        rule.spreads.copy_(items.double().std(dim=0, correction=0))
    rule.clock[0] += len(batch.users)
    w, uniforms = scores.user_vectors(), batch.draws.uniforms
    return batched.choose_at_factor_rank(w, rule.scale, rule.orders, rule.spreads, rows, batch.users, uniforms)


def _from_memory(rule: Any, batch: Examples, rows: Rows, scores: Scores) -> Tensor:
    """Every choice sees the memory as the batch found it; each user's is refreshed once, by its first example."""
    memory = rule.memory[batch.users].long()  # (B, S)
    shown = memory.clamp(min=0)
    w, h = rule.past_users[: rule.n_past, batch.users], rule.past_items[: rule.n_past]  # (t, B, d), (t, n_items, d)
    past = (w[:, :, None, :] * h[:, shown]).sum(dim=3)  # (t, B, S)
    past_positive = (w * h[:, batch.positives]).sum(dim=2)  # (t, B)
    n_fresh = batch.draws.candidates.shape[1] - memory.shape[1]
    fresh = batched.fresh_for_memory(batch.draws.candidates, batch.draws.sizes, memory, n_fresh)
    x = scores.of(torch.cat([memory, fresh], dim=1).clamp(min=0))
    x_positive = scores.of(batch.positives[:, None])[:, 0]
    sizes = (memory >= 0).sum(dim=1)
    slot = batched.choose_from_memory(
        x[:, : memory.shape[1]], x_positive, past, past_positive, rule.variance_weight, sizes
    )
    after = batched.refreshed_memory(memory, fresh, x, rule.temperature, batch.draws.uniforms)
    # examples that are not their user's first write to the last row, which is nobody's
    written = torch.where(batch.firsts > 0, batch.users, len(rule.memory) - 1)
    rule.memory.index_copy_(0, written, after.to(rule.memory.dtype))
    return memory.gather(1, slot[:, None])[:, 0]


_CHOICES: dict[type, Callable[[Any, Examples, Rows, Scores], Tensor]] = {
    TakeFirst: _take_first,
    TakeHighest: _take_highest,
    LeastRisk: _by_posterior,
    LeastRiskBySummary: _by_summary,
    MostUnbiased: _by_posterior,
    AtScoreRank: _at_score_rank,
    AtFactorRank: _at_factor_rank,
    FromMemory: _from_memory,
}
