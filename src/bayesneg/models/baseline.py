"""Baselines: models that are solved from the training data in one step, without negatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import BPR_LOSS, NO_LABELS, Embeddings, Loss, NegativeSampler, Sampled, Scorer


class Baseline(ABC):
    """The settings of a model without a sampler; :func:`bayesneg.fit` trains it in one epoch.

    A custom baseline implements :meth:`solve`.
    """

    @abstractmethod
    def solve(self, train: Interactions, *, rng: np.random.Generator) -> Scorer:
        """Solve for the model.

        Args:
            train: The training interactions.
            rng: Source of randomness.

        Returns:
            The trained scorer.
        """

    def start(self, train: Interactions, *, rng: np.random.Generator) -> SolvedLearner:
        """Start a learner, which solves the baseline in its only epoch.

        Args:
            train: The training interactions.
            rng: The source of randomness.

        Returns:
            The learner of a run.
        """
        return SolvedLearner(self, train, rng)

    @property
    def shuffle(self) -> str:
        return "once"  # no example is ever drawn


class SolvedLearner:
    """A baseline as a learner with a single epoch; a resumed run solves it again, so a checkpoint stores nothing."""

    def __init__(self, model: Baseline, train: Interactions, rng: np.random.Generator) -> None:
        self.model, self.train, self.rng = model, train, rng
        self.solved = False

    @cached_property
    def scorer(self) -> Scorer:
        self.solved = True
        return self.model.solve(self.train, rng=self.rng)

    @property
    def n_users(self) -> int:
        return self.train.n_users

    @property
    def n_items(self) -> int:
        return self.train.n_items

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return self.scorer.score(users, items)

    def score_all(self, users: np.ndarray) -> np.ndarray:
        return self.scorer.score_all(users)

    def embeddings(self) -> Embeddings:
        return self.scorer.embeddings()

    def train_epoch(
        self,
        sampler: NegativeSampler,
        *,
        epoch: int,
        order: np.ndarray,
        rng: np.random.Generator,
        loss: Loss = BPR_LOSS,
        labels: Mapping[str, Interactions] = NO_LABELS,
    ) -> Iterator[Sampled]:
        _ = self.scorer
        return iter(())

    def state_dict(self) -> dict[str, np.ndarray]:
        return {}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        return

    def is_finite(self) -> bool:
        return not self.solved or bool(np.isfinite(self.scorer.score_all(np.zeros(1, dtype=np.int64))).all())

    def frozen(self) -> Scorer:
        return self.scorer


class NoSampler(NegativeSampler):
    """Takes the place of the sampler; a baseline never uses it."""

    def sample(self, batch: object) -> np.ndarray:
        raise AssertionError("a baseline samples no negatives")
