"""The parts of a sampler: candidate draws, priors, and what follows training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.integrity.arrays import Specs
from bayesneg.interfaces.sampling import Scorer
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.pools import Computed, PriorForm


class CandidateDraw(Protocol):
    """Proposes candidates: unobserved items without replacement."""

    def draw(
        self, users: np.ndarray, size: int, *, train: Interactions, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw candidates.

        Args:
            users: The users (B,).
            size: The number of candidates of each user.
            train: The training interactions; a candidate is not among those of its user.
            rng: The source of randomness.

        Returns:
            Candidates (B, size) int32, and the number (B,) int32 of valid ones in each row, which is below ``size``
            where the user has fewer unobserved items.
        """
        ...


class FollowsTraining:
    """A part of a sampler that may learn from the model during training; by default it does not.

    A class that overrides one of these methods declares it by ``follows_training``.
    """

    @property
    def follows_training(self) -> bool:
        """True for a part that changes during training."""
        return False

    def without_held_out(self, draws: Draws, positions: np.ndarray) -> Draws:
        """Remove the candidates of held-out training pairs.

        Args:
            draws: The draws of a batch.
            positions: The positions (B,) of its pairs in ``train.indices``.

        Returns:
            The draws, without candidates for held-out pairs.
        """
        return draws

    def end_epoch(self, scorer: Scorer) -> None:
        """Update the part after an epoch.

        Args:
            scorer: The model after it.
        """
        return

    def state_dict(self) -> dict[str, np.ndarray]:
        """The state that a checkpoint must keep.

        Returns:
            Name → array; empty for a stateless part.
        """
        return {}

    def state_specs(self, train: Interactions) -> Specs:
        """What the arrays of :meth:`state_dict` must look like, checked before they are restored from a file.

        Args:
            train: The training interactions.

        Returns:
            Name → what it must look like; arrays that are not declared are restored as they are.
        """
        return {}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore a state.

        Args:
            state: What :meth:`state_dict` returned.
        """
        return


class Prior(FollowsTraining, ABC):
    """The probability that an unobserved pair is a false negative, before its score is seen.

    ``NAME`` is the name of the prior on the command line; a built-in prior is registered by having one.
    """

    NAME: ClassVar[str] = ""

    @abstractmethod
    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The probability of a false negative.

        Args:
            users: The users, any shape.
            items: The items, of a shape that broadcasts against that of the users.

        Returns:
            Probabilities in [0, 1], of the broadcast shape.
        """

    def fit(self, train: Interactions) -> Prior:
        """Fit the prior to the training interactions alone; the default has nothing to learn.

        Args:
            train: The training interactions.

        Returns:
            The fitted prior.
        """
        return self

    def form(self) -> PriorForm:
        """The prior as kernels read it for a batch of users and a pool of items.

        Returns:
            A probability per item, a sparse row per user, or the function :meth:`probability` itself.
        """
        return Computed(self.probability)

    def read_ahead(self, items: np.ndarray) -> None:
        """Prepare for a pool of items; the default has nothing to prepare.

        Where several processes train, all of them call it, and those with an example of the mini-batch then ask for
        probabilities by :meth:`form`.

        Args:
            items: The items (N,) of the pool.
        """
        return

    @property
    def uses_test_labels(self) -> bool:
        """True for a prior that reads the test labels on purpose."""
        return False

    @property
    def uses_scores(self) -> bool:
        """True for a prior that depends on the model's scores; a likelihood would count them twice."""
        return False
