"""Every rule that selects several negatives, for a batch at once, in torch, on any device.

Those of ``kernels/reference/selections.py``, and the rule of DENS in ``kernels/reference/disentangled.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.disentangled import FactorAware, check_width
from bayesneg.kernels.reference.formulas import list_sizes, risk
from bayesneg.kernels.reference.selections import (
    LeastRisks,
    PosteriorWeights,
    TakeAll,
    TakeSeveralHighest,
    TakeSeveralResampled,
    weight_of,
)
from bayesneg.kernels.torch.choices.base import BatchScores, LearnsInParts, TensorBatch, TorchChoice, torch_choice
from bayesneg.kernels.torch.choices.posterior import TorchMostUnbiased
from bayesneg.kernels.torch.choices.resampled import resampled
from bayesneg.kernels.torch.disentangled import adam_step, contrast_gradient, merit
from bayesneg.kernels.torch.formulas import counted_unbias, info
from bayesneg.kernels.torch.score_lists import INFINITY, TrainingRows, numbers


class SeveralTensors(NamedTuple):
    """Negatives of B examples on a device."""

    items: Tensor  # (B, K) int64, −1 where there is none
    weights: Tensor  # (B, K) float32, 0 where there is none


class TorchSelection(ABC):
    """A rule that selects several negatives, on a device."""

    needs_firsts = False  # whether the selection depends on which example is its user's first in the batch
    is_recordable = False  # whether a CUDA graph can replay it within an epoch: it changes nothing that it reads
    learns = False  # whether it learns from every batch, in several processes from the examples of all of them

    def __init__(self, rule: Any, device: torch.device) -> None:
        self.rule, self.device = rule, device

    @abstractmethod
    def select(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> SeveralTensors:
        """The negatives of a batch with their weights."""

    def load(self, rule: Any) -> None:
        """Take over the state of the rule, and the numbers that follow the epoch, at the start of an epoch."""
        self.rule = rule

    def store(self) -> None:
        """Write the state back to the arrays of the rule that was loaded last."""
        return

    def highest_rank(self, draws: Draws | None, n_items: int) -> int:
        """An upper bound on the ranks that are drawn, for rules that draw ranks; ``draws`` is None on a device."""
        return 0

    def join(self, scores: LearnsInParts) -> None:
        """Learn from a batch of which other processes have all examples."""
        return


class TorchOne(TorchSelection):
    """The one negative of a rule that chooses, as a selection of one."""

    def __init__(self, rule: Any, device: torch.device) -> None:
        super().__init__(rule, device)
        self.choice: TorchChoice = torch_choice(rule)(rule, device)
        self.needs_firsts = self.choice.needs_firsts
        self.is_recordable = self.choice.recordable and not self.choice.is_refreshed and not self.choice.state

    def load(self, rule: Any) -> None:
        super().load(rule)
        self.choice.load(rule)
        self.choice.update(rule)

    def store(self) -> None:
        self.choice.store()

    def highest_rank(self, draws: Draws | None, n_items: int) -> int:
        return self.choice.highest_rank(self.rule, draws, n_items)

    def select(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> SeveralTensors:
        items = self.choice.choose(batch, rows, scores)[:, None]
        return SeveralTensors(items, (items >= 0).float())


class TorchTakeAll(TorchSelection):
    is_recordable = True

    def select(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> SeveralTensors:
        return taken(batch, torch.ones_like(batch.draws.candidates, dtype=torch.float32))


class TorchTakeSeveralHighest(TorchSelection):
    is_recordable = True

    def select(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> SeveralTensors:
        drawn, top = batch.draws, self.rule.top
        beyond = drawn.candidates < 0
        x = scores.of(drawn.candidates.clamp(min=0)).masked_fill(beyond, -INFINITY)
        best = x.argsort(dim=1, descending=True, stable=True)[:, :top]
        n_best = drawn.sizes.clamp(max=top)
        for k in range(min(self.rule.negatives, best.shape[1])):  # a partial Fisher–Yates shuffle
            other = (k + (drawn.uniforms[:, k] * (n_best - k)).long()).clamp(k, best.shape[1] - 1)[:, None]
            mine, theirs = best[:, k : k + 1].clone(), best.gather(1, other)
            best.scatter_(1, other, mine)
            best[:, k : k + 1] = theirs
        items = drawn.candidates.gather(1, best[:, : self.rule.negatives])
        items = torch.where(numbers(items.shape[1], items.device) < n_best[:, None], items, -1)
        items = torch.nn.functional.pad(items, (0, self.rule.negatives - items.shape[1]), value=-1)
        return SeveralTensors(items, (items >= 0).float())


class TorchTakeSeveralResampled(TorchSelection):
    is_recordable = True

    def __init__(self, rule: TakeSeveralResampled, device: torch.device) -> None:
        super().__init__(rule, device)
        self.log_q = torch.tensor(rule.log_q, device=device)

    def select(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> SeveralTensors:
        items = resampled(self.rule, self.log_q, batch.draws, scores, self.rule.negatives)
        items = torch.where(batch.draws.sizes[:, None] > 0, items, -1)
        return SeveralTensors(items, (items >= 0).float())


class TorchJudged(TorchSelection):
    """What the selections by posterior share: scores and unbias of the candidates."""

    def __init__(self, rule: Any, device: torch.device) -> None:
        super().__init__(rule, device)
        choice = torch_choice(rule.rule)(rule.rule, device)
        assert isinstance(choice, TorchMostUnbiased)
        self.judge = choice
        self.is_recordable = not choice.is_refreshed

    def load(self, rule: Any) -> None:
        super().load(rule)
        self.judge.update(rule.rule)

    def judged(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> tuple[Tensor, Tensor, Tensor]:
        """The positives' scores (B,), the candidates' scores (B, m) and their unbias (B, m)."""
        drawn = batch.draws
        items = torch.cat([batch.positives[:, None], drawn.candidates.clamp(min=0)], dim=1)
        x, counts = self.judge._counts(batch, rows, scores, items)
        _, n = list_sizes(self.rule.rule.over, rows.n_items, batch.counts)
        return x[:, 0], x[:, 1:], counted_unbias(self.judge.likelihood, counts, n, drawn.priors)


class TorchLeastRisks(TorchJudged):
    def select(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> SeveralTensors:
        x_positive, x, true_negative = self.judged(batch, rows, scores)
        risks = risk(info(x_positive[:, None], x), true_negative, self.judge.weight)
        beyond = numbers(x.shape[1], x.device) >= batch.draws.sizes[:, None]
        order = risks.masked_fill(beyond, INFINITY).argsort(dim=1, stable=True)[:, : self.rule.negatives]
        there = numbers(order.shape[1], x.device) < batch.draws.sizes[:, None]
        return SeveralTensors(torch.where(there, batch.draws.candidates.gather(1, order), -1), there.float())


class TorchPosteriorWeights(TorchJudged):
    def select(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> SeveralTensors:
        _, _, true_negative = self.judged(batch, rows, scores)
        return taken(batch, weight_of(true_negative, float(self.rule.rule.weight), self.rule.ramp).float())


class TorchFactorAware(TorchSelection):
    """The rule of DENS.

    Several processes have equal gates: each takes the step of the whole batch. There everything is computed in float64,
    so that rounding, which depends on how many examples a process has, does not decide.
    """

    learns = True

    def __init__(self, rule: FactorAware, device: torch.device) -> None:
        super().__init__(rule, device)
        self.gates, self.moments, self.steps = (torch.tensor(part, device=device) for part in self._arrays(rule))

    def _arrays(self, rule: FactorAware) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return rule.gates, rule.moments, rule.steps

    def load(self, rule: FactorAware) -> None:
        super().load(rule)
        for mine, theirs in zip((self.gates, self.moments, self.steps), self._arrays(rule), strict=True):
            mine.copy_(torch.from_numpy(theirs))

    def store(self) -> None:
        for mine, theirs in zip((self.gates, self.moments, self.steps), self._arrays(self.rule), strict=True):
            theirs[:] = mine.cpu().numpy()

    def select(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> SeveralTensors:
        """The gates choose as they were before the batch; then one step is taken on the negatives that they chose."""
        drawn, gates = batch.draws, self.gates.double() if isinstance(scores, LearnsInParts) else self.gates
        items, kind = drawn.candidates.clamp(min=0), gates.dtype
        table, places = scores.table_of(torch.cat([batch.positives[:, None], items], dim=1))
        check_width(gates, table)
        users, positives = scores.user_vectors().to(kind), table.index_select(0, places[:, 0]).to(kind)
        candidates = places[:, 1:]
        merits = merit(gates, users, positives, table, candidates, self.rule.balance)
        beyond = numbers(candidates.shape[1], table.device) >= drawn.sizes[:, None]
        merits = merits.masked_fill(beyond, -INFINITY)
        order = merits.argsort(dim=1, descending=True, stable=True)[:, : self.rule.negatives]
        there = numbers(order.shape[1], table.device) < drawn.sizes[:, None]
        chosen = table.index_select(0, candidates.gather(1, order).flatten()).view(*order.shape, -1).to(kind)
        self._step(contrast_gradient(gates, users, positives, chosen, there), there.sum(), scores)
        return SeveralTensors(torch.where(there, items.gather(1, order), -1), there.float())

    def join(self, scores: LearnsInParts) -> None:
        self._step(torch.zeros_like(self.gates, dtype=torch.float64), torch.zeros_like(self.steps[0]), scores)

    def _step(self, gradient: Tensor, n: Tensor, scores: BatchScores | LearnsInParts) -> None:
        """A step of Adam, with the mean gradient over n negatives of this process."""
        if isinstance(scores, LearnsInParts):
            gradient = scores.mean_of_all(gradient, n).to(self.gates.dtype)
        adam_step(self.gates, self.moments, self.steps, gradient, self.rule.learning_rate)


def taken(batch: TensorBatch, weights: Tensor) -> SeveralTensors:
    """All candidates that were drawn, with these weights (B, m)."""
    drawn = batch.draws
    there = numbers(drawn.candidates.shape[1], weights.device) < drawn.sizes[:, None]
    return SeveralTensors(torch.where(there, drawn.candidates, -1), torch.where(there, weights, 0.0))


EXECUTIONS: dict[type, type[TorchSelection]] = {
    TakeAll: TorchTakeAll,
    TakeSeveralHighest: TorchTakeSeveralHighest,
    TakeSeveralResampled: TorchTakeSeveralResampled,
    LeastRisks: TorchLeastRisks,
    PosteriorWeights: TorchPosteriorWeights,
    FactorAware: TorchFactorAware,
}


def torch_selection(rule: Any, device: torch.device) -> TorchSelection:
    """The execution of a rule in torch; one that chooses a single negative becomes a selection of one."""
    return EXECUTIONS.get(type(rule), TorchOne)(rule, device)


def learns(rule: Any) -> bool:
    """Whether the execution of a rule learns from every batch."""
    return EXECUTIONS.get(type(rule), TorchOne).learns
