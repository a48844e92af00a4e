"""What training uses: models, learners, and observers of the negatives chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces.sampling import Batch, NegativeSampler, Scorer


class Sampled(NamedTuple):
    """The negatives chosen for one block of training pairs, from which TNR and INF are computed."""

    users: np.ndarray  # (B,)
    negatives: np.ndarray  # (B,) NO_NEGATIVE where skipped
    info: np.ndarray  # (B,) float32, 1 − σ(x_positive − x_negative) when the negative was chosen


@runtime_checkable
class Observer(Protocol):
    """Observes training without changing it; what it returns after an epoch is recorded with the epoch.

    It keeps no state between epochs, so that a resumed run is observed like an uninterrupted one.
    """

    def see(self, sampled: Sampled) -> None:
        """Observe one block of chosen negatives, in the order of training.

        Args:
            sampled: The users, their negatives and the gradient sizes of the block.
        """
        ...

    def end_epoch(self, epoch: int, sampler: NegativeSampler, scorer: Scorer) -> Mapping[str, Any]:
        """Measure the state after an epoch.

        Args:
            epoch: The epoch that ended, counted from 1.
            sampler: The sampler after it.
            scorer: The model after it.

        Returns:
            Plain values to record with the epoch.
        """
        return {}


@runtime_checkable
class Learner(Scorer, Protocol):
    """A model in training."""

    def train_epoch(
        self, sampler: NegativeSampler, *, epoch: int, order: np.ndarray, rng: np.random.Generator
    ) -> Iterator[Sampled]:
        """Train on every pair once.

        Args:
            sampler: The prepared sampler.
            epoch: The epoch, counted from 1.
            order: The order of the pairs, as positions in ``train.indices``.
            rng: The source of randomness of the epoch.

        Yields:
            The negatives chosen, block by block.
        """
        ...

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything that a checkpoint must keep of the model and its optimizer.

        Returns:
            Name → array.
        """
        ...

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore a state.

        Args:
            state: What :meth:`state_dict` returned.
        """
        ...

    def is_finite(self) -> bool:
        """Whether all parameters are finite.

        Returns:
            False once a parameter is NaN or infinite.
        """
        ...

    def frozen(self) -> Scorer:
        """Copy the model's current state.

        Returns:
            A scorer that further training does not change.
        """
        ...


@runtime_checkable
class RefreshesOnDevice(Protocol):
    """A scorer that can keep the summaries of score lists on a GPU, beside its embeddings."""

    def refreshed_knots(
        self, batch: Batch, ranks: np.ndarray, *, moved: float, pool: int, over_all: bool
    ) -> Any | None:
        """Refresh the summaries of score lists on the device.

        Args:
            batch: The training pairs.
            ranks: The ranks (K,) of the knots.
            moved: Relative distance by which a user's embedding may move before the summary is recomputed.
            pool: Number of items with the highest possible scores that are all scored for a summary.
            over_all: Whether observed items are counted too.

        Returns:
            The knots (n_users, K); None for embeddings in host memory.
        """
        ...


class Model(Protocol):
    """The settings of a model: a frozen value that starts a fresh learner."""

    @property
    def shuffle(self) -> str:
        """``"epoch"`` draws a new order of the training pairs for each epoch; ``"once"`` keeps one order."""
        ...

    def start(self, train: Interactions, *, rng: np.random.Generator) -> Learner:
        """Start a learner.

        Args:
            train: The training interactions.
            rng: The source of randomness of the initial parameters.

        Returns:
            The learner with initial parameters.
        """
        ...
