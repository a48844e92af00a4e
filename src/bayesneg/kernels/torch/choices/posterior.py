"""The rules of BNS and the posterior for a batch at once, in torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bayesneg.kernels.reference.choices.posterior import LeastRisk, LeastRiskBySummary, MostUnbiased
from bayesneg.kernels.reference.formulas import list_sizes, risk
from bayesneg.kernels.torch.choices.base import BatchScores, CountsInParts, TensorBatch, TorchChoice, executes
from bayesneg.kernels.torch.formulas import counted_unbias, info, items_above, lengths_of
from bayesneg.kernels.torch.gradients import fused_for
from bayesneg.kernels.torch.score_lists import (
    FEW,
    TrainingRows,
    count_at_most,
    first_least,
    hide,
    hide_all,
    observed_pairs,
    score_chunks,
)


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
        whole = not isinstance(scores, CountsInParts)
        if fused is not None and whole and batch.chunk >= rows.n_items and drawn.candidates.shape[1] <= FEW:
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
        if isinstance(scores, CountsInParts):
            return scores.counts_at_most(items)
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
    is_refreshed = True

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
        above = items_above(self.knots.index_select(0, scores.kept_rows(batch.users)), self.ranks, z)
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
