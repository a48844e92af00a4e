"""What training uses: models, learners, and observers of the negatives chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces.loss import BPR_LOSS, Loss
from bayesneg.interfaces.sampling import Batch, Embeddings, NegativeSampler, Scorer

NO_LABELS: Mapping[str, Interactions] = MappingProxyType({})


class Sampled(NamedTuple):
    """The negatives chosen for one block of training pairs, from which TNR and INF are computed."""

    users: np.ndarray  # (B,)
    negatives: np.ndarray  # (B,) or (B, K), NO_NEGATIVE where there is none
    info: np.ndarray  # of the same shape, float32, 1 − σ(x_positive − x_negative) when the negative was chosen
    weights: np.ndarray | None = None  # (B, K) ω; None is 1
    gradient: np.ndarray | None = None  # (B, K) |∂L/∂s| of the loss; None is info, the gradient of BPR


class Sums(NamedTuple):
    """Sums over weighted negatives."""

    weight: float  # Σ ω
    info: float  # Σ ω · info
    gradient: float  # Σ |∂L/∂s|


class Measured(NamedTuple):
    """What was sampled for a block of training pairs, as sums, where there are too many negatives to list."""

    examples: int  # measured, with a negative that counts
    skipped: int  # of all examples, those without a negative that counts
    all: Sums  # over the negatives of the measured examples
    false: Mapping[str, Sums]  # over those that are known to be false, by the set of labels


@runtime_checkable
class Observer(Protocol):
    """Observes training without changing it; what it returns after an epoch is recorded with the epoch.

    It keeps no state between epochs, so that a resumed run is observed like an uninterrupted one.
    """

    def see(self, sampled: Sampled | Measured) -> None:
        """Observe one block of chosen negatives, in the order of training.

        Args:
            sampled: The users, their negatives and the gradient sizes of the block; sums where negatives are shared.
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
        self,
        sampler: NegativeSampler,
        *,
        epoch: int,
        order: np.ndarray,
        rng: np.random.Generator,
        loss: Loss = BPR_LOSS,
        labels: Mapping[str, Interactions] = NO_LABELS,
    ) -> Iterator[Sampled | Measured]:
        """Train on every pair once.

        Args:
            sampler: The prepared sampler.
            epoch: The epoch, counted from 1.
            order: The order of the pairs, as positions in ``train.indices``.
            rng: The source of randomness of the epoch.
            loss: The loss of a positive and its negatives.
            labels: Known false negatives by the name of the measure, to measure what is sampled and nothing else.

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


@runtime_checkable
class RanksOnDevice(Protocol):
    """A scorer that can rank the catalogue on a GPU."""

    def top_items(self, users: np.ndarray, seen: Interactions, k: int) -> np.ndarray:
        """The best items of each user, by score and then by item number; NaN ranks last.

        Args:
            users: The numbers (B,) of the users, int64.
            seen: Interactions whose items are left out.
            k: The length of a ranking.

        Returns:
            Item numbers (B, k) int32, best first; −1 where fewer than k are left.
        """
        ...


@runtime_checkable
class RanksInParts(Protocol):
    """A scorer of which each of several processes has a part; all processes call its methods together."""

    def own_part(self, users: np.ndarray) -> slice:
        """Find the users of this process.

        Args:
            users: Numbers of users, ascending.

        Returns:
            Where those of this process stand among them.
        """
        ...

    def rounds(self, n: int) -> int:
        """Agree on a number of rounds, in each of which all processes take part.

        Args:
            n: The rounds that this process needs.

        Returns:
            The most that any process needs.
        """
        ...

    def ranked(
        self, users: np.ndarray, labels: Interactions, seen: Interactions, k: int, *, with_auc: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rank the catalogue for some users of each process.

        Args:
            users: Users of this process.
            labels: The pairs to be found.
            seen: Pairs that are not ranked.
            k: The length of a list; 0 for none.
            with_auc: Whether to count for the AUC.

        Returns:
            Items (B, k) int32, −1 where fewer are left; pairs of a test item and a negative in the right order (B,), a
            tie as half; negatives (B,). Zeros for what was not asked for.
        """
        ...

    def top(self, users: np.ndarray, seen: Interactions | None, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The best items of some users of each process.

        Args:
            users: Users of this process.
            seen: Pairs that are not ranked; None to rank all.
            k: The length of a list.

        Returns:
            Items (B, k) int32 and their scores, best first; −1 where fewer are left.
        """
        ...

    def joined(self, values: Mapping[str, np.ndarray], reached: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Join what the processes have measured.

        Args:
            values: Metric → values of this process's users.
            reached: Flags of what they were recommended.

        Returns:
            The values of all users, in their order, and the flags that any process has set.
        """
        ...


@runtime_checkable
class StartsFromEmbeddings(Protocol):
    """A learner that may start from the embeddings of an earlier run."""

    def trained_embeddings(self) -> Embeddings | None:
        """The embeddings that training moves, before any normalisation or graph convolution.

        Returns:
            A row for each user and each item; None for a module that keeps others.
        """
        ...

    def start_from(self, embeddings: Embeddings, known: tuple[np.ndarray, np.ndarray]) -> None:
        """Replace the embeddings that training moves.

        Args:
            embeddings: Of the shapes that :meth:`trained_embeddings` returns.
            known: True (n_users,) and (n_items,) for those whom the earlier run has learned about.
        """
        ...


@runtime_checkable
class KeepsUsers(Protocol):
    """A learner that would move or rank otherwise the users of an earlier run who have no training interaction now."""

    def keep_users(self, users: np.ndarray, ranked_by: np.ndarray) -> None:
        """Keep users as they start, and rank them by given vectors.

        Args:
            users: The numbers (n,) of the users.
            ranked_by: The vectors (n, d) that the earlier run ranks them by.
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
