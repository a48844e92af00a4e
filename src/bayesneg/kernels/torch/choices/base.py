"""What a rule needs to be executed in torch: a batch on a device, its scores, and the class of a choice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from bayesneg.kernels.reference.choices.base import Draws, Rule, load_execution
from bayesneg.kernels.torch.score_lists import TrainingRows


class BatchScores(Protocol):
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

    def kept_rows(self, users: Tensor) -> Tensor:
        """Where users (B,) stand in tables that hold a row for each user of this process."""
        ...

    def kept_items(self, table: Tensor, items: Tensor) -> Tensor:
        """Rows (t, …, d) of items (…) from a table (t, n, d) that holds those of this process's items."""
        ...

    def user_vectors(self) -> Tensor:
        """The users' embeddings (B, d)."""
        ...

    def item_vectors(self) -> Tensor:
        """The embeddings of all items (n_items, d)."""
        ...

    def table_of(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """A table (n, d) that has the embeddings of ``items``, and their rows in it, of the shape of ``items``."""
        ...


class CountsInParts(ABC):
    """Scores of a batch where each process has a part of the catalogue: F is counted by all of them together."""

    @abstractmethod
    def counts_at_most(self, items: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (B, 1 + m) of items, and #{x ≤ x_l} (B, m) over the catalogue for all but the first of a row."""


class ScoreRanksInParts(ABC):
    """Users of a batch where each process has a part of the catalogue: all of them together look items up by rank."""

    @abstractmethod
    def at_score_ranks(self, ranks: Tensor) -> Tensor:
        """The unobserved item (B,) at each rank (B,) of its user's score list; 0 is the highest score."""


class FactorRanksInParts(ABC):
    """Users of a batch where each process has the lists of some factors."""

    @abstractmethod
    def at_factor_ranks(self, choice: TorchChoice, draws: DrawTensors, users: Tensor, rows: TrainingRows) -> Tensor:
        """The item (B,) at a drawn rank of a drawn factor's list; ``choice`` has those of this process's factors."""


class LearnsInParts(ABC):
    """Scores of a batch of which each process has a part: what a rule learns it learns from all of them together."""

    @abstractmethod
    def mean_of_all(self, mean: Tensor, n: Tensor) -> Tensor:
        """The mean over the examples of all processes, from the mean over ``n`` of this one; 0 without examples."""


class DrawTensors(NamedTuple):
    """:class:`~bayesneg.kernels.reference.choices.base.Draws` on the model's device."""

    candidates: Tensor  # (B, m) int64, −1 beyond sizes
    sizes: Tensor  # (B,) int64
    priors: Tensor  # (B, m) float64, or (B, 0)
    uniforms: Tensor  # (B, r) float64, or (B, 0)


class TensorBatch(NamedTuple):
    """One mini-batch on the model's device."""

    users: Tensor  # (B,) int64
    positives: Tensor  # (B,)
    starts: Tensor  # (B,) where the user's training row begins
    counts: Tensor  # (B,) the length of that row
    firsts: Tensor  # (B,) 1 for the first example of its user in the batch, otherwise 0
    draws: DrawTensors
    capacity: int  # upper bound on the number of observed pairs of the batch's users
    most_rank: int  # upper bound on the ranks drawn
    chunk: int  # items scored at once


class TorchChoice(ABC):
    """A rule on a device.

    One object serves many blocks of batches. :meth:`load` and :meth:`update` write into the same tensors each time,
    so that a recorded CUDA graph reads the new values.
    """

    changing: tuple[str, ...] = ()  # fields of the rule that follow the epoch
    recordable = True  # whether a CUDA graph can replay the choice
    needs_firsts = False  # whether the choice depends on which example is its user's first in the batch
    is_refreshed = False  # whether the rule has other numbers for each batch

    def __init__(self, rule: Any, device: torch.device) -> None:
        self.rule, self.device = rule, device

    @abstractmethod
    def _choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        """The item (B,) of each example; any number where the user has no unobserved item."""

    def choose(self, batch: TensorBatch, rows: TrainingRows, scores: BatchScores) -> Tensor:
        """The item (B,) that the rule chooses for each example, −1 where the user has no unobserved item."""
        return torch.where(batch.draws.sizes > 0, self._choose(batch, rows, scores), -1)

    def fits(self, rule: Rule) -> bool:
        """Whether the same tensors, and the same recorded step, serve this rule."""
        return type(rule) is type(self.rule) and self._constants(rule) == self._constants(self.rule)

    def load(self, rule: Any) -> None:
        """Take over the state of the rule at the start of an epoch."""
        self.rule = rule

    def update(self, rule: Any) -> None:
        """Take over the numbers that follow the epoch."""
        return

    def store(self) -> None:
        """Write the state back to the arrays of the rule that was loaded last."""
        return

    @property
    def state(self) -> Sequence[Tensor]:
        """The tensors that a choice changes."""
        return ()

    @staticmethod
    def highest_rank(rule: Any, draws: Draws | None, n_items: int) -> int:
        """An upper bound on the ranks that a block draws, for rules that draw ranks; without draws, on any."""
        return 0

    def _constants(self, rule: Any) -> list[Any]:
        return [_constant(value) for name, value in rule._asdict().items() if name not in self.changing]

    def _number(self, value: float) -> Tensor:
        return torch.tensor(value, dtype=torch.float64, device=self.device)


def _constant(value: Any) -> Any:
    """What a recorded step cannot change of a field: the shape of an array, any other value as it is."""
    if isinstance(value, tuple):
        return type(value), *(_constant(part) for part in value)
    return tuple(value.shape) if isinstance(value, np.ndarray | Tensor) else value


_EXECUTIONS: dict[type, type[TorchChoice]] = {}  # by the type of the rule


def executes(rule: type) -> Callable[[type[TorchChoice]], type[TorchChoice]]:
    """Register the decorated class as the torch execution of a rule."""

    def register(choice: type[TorchChoice]) -> type[TorchChoice]:
        _EXECUTIONS[rule] = choice
        return choice

    return register


def torch_choice(rule: Rule) -> type[TorchChoice]:
    """The class that executes a rule in torch."""
    if type(rule) not in _EXECUTIONS:
        load_execution(type(rule), __package__)
    return _EXECUTIONS[type(rule)]
