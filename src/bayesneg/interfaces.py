"""Every protocol of the library on one page.

A model starts a *learner*; a learner scores (it is a :class:`Scorer`) and trains one epoch at a time; a sampler gets a
:class:`Batch` of (user, positive) pairs with a lazy scorer and returns one negative for each pair. A prior is the
probability of a false negative before scores are seen; a candidate draw proposes the items that BNS chooses from.

A custom sampler subclasses :class:`NegativeSampler`::

    class Hardest(bn.NegativeSampler):
        def sample(self, batch):
            scores = batch.score_all()                                  # (B, n_items)
            for row, user in enumerate(batch.users):
                scores[row, batch.train.row(user)] = -np.inf            # never a training positive
            free = scores.max(axis=1) > -np.inf                         # False without unobserved items
            return np.where(free, scores.argmax(axis=1), bn.NO_NEGATIVE)  # (B,)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.kernels.reference import choices as reference
from bayesneg.kernels.reference.choices import Draws, Rule

NO_NEGATIVE = -1  # instead of an item: the pair has no negative and is skipped


class Embeddings(NamedTuple):
    """The embeddings of a model whose score is the inner product x_ui = w_u · h_i."""

    users: np.ndarray  # (n_users, d)
    items: np.ndarray  # (n_items, d)


class Scorer(Protocol):
    """The scores of a model in its current state. A score is computed only when it is asked for."""

    @property
    def n_users(self) -> int: ...

    @property
    def n_items(self) -> int: ...

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Scores (B, m) float32 of ``items`` (B, m), a row for each of ``users`` (B,)."""
        ...

    def score_all(self, users: np.ndarray) -> np.ndarray:
        """Scores (B, n_items) float32 of the whole catalogue for ``users`` (B,); the caller keeps B small."""
        ...

    def embeddings(self) -> Embeddings:
        """The embeddings whose inner product is the score, read-only; an ``InputError`` for a model without them."""
        ...


@dataclass(frozen=True)
class Batch:
    """The pairs that a sampler chooses negatives for.

    Args:
        users: The users (B,) int32.
        positives: The positives (B,) int32, one training item of each user.
        positions: The positions (B,) int64 of the pairs in ``train.indices``.
        epoch: The current epoch, counted from 1.
        train: The training interactions.
        scorer: The model in its current state.
        rng: The source of all randomness.
        threads: Threads that built-in draws may use; the draws are the same for any number.
    """

    users: np.ndarray
    positives: np.ndarray
    positions: np.ndarray
    epoch: int
    train: Interactions
    scorer: Scorer
    rng: np.random.Generator
    threads: int = 1

    def score(self, items: np.ndarray) -> np.ndarray:
        """Scores (B, m) of ``items`` (B, m), a row for each user of the batch."""
        return self.scorer.score(self.users, items)

    def score_all(self) -> np.ndarray:
        """Scores (B, n_items) of the whole catalogue."""
        return self.scorer.score_all(self.users)

    def score_positives(self) -> np.ndarray:
        """Scores (B,) of the positives."""
        return self.scorer.score(self.users, self.positives[:, None])[:, 0]


class Preset(NamedTuple):
    """What a command-line name means: a class with some of its settings given.

    Args:
        about: The sentence that the help of the command line shows for the name.
        settings: Settings that the name fixes, as on the command line.
    """

    about: str
    settings: Mapping[str, Any] = MappingProxyType({})


class NegativeSampler(ABC):
    """Chooses one negative for each training pair. A custom sampler implements :meth:`sample`.

    ``NAMES`` holds the command-line names of the class. A built-in sampler is registered by having one, a plug-in by
    an entry point of the group ``bayesneg.samplers``.
    """

    NAMES: ClassVar[Mapping[str, Preset]] = MappingProxyType({})

    @abstractmethod
    def sample(self, batch: Batch) -> np.ndarray:
        """Choose the negatives of a batch.

        Args:
            batch: The training pairs and the model in its current state.

        Returns:
            One unobserved item (B,) for each pair; NO_NEGATIVE skips the pair.
        """

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> NegativeSampler:
        """The sampler bound to the training interactions ``train``; called once per fit.

        Mutable state, drawn from ``rng`` where it is random, belongs to the sampler returned and not to ``self``.
        """
        return self

    def resolved(self, train: Interactions) -> NegativeSampler:
        """The sampler with automatic settings resolved for ``train``, as the record shows it."""
        return self

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        """Update the state of the sampler after ``epoch``, given the model."""
        return

    def state_dict(self) -> dict[str, np.ndarray]:
        """The state that a checkpoint must keep; empty for a stateless sampler."""
        return {}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state that :meth:`state_dict` returned."""
        return

    def wanted(self, n_items: int) -> int:
        """The number of unobserved items that a user should have; the record counts users with fewer."""
        return 1

    def unbias(self, batch: Batch, items: np.ndarray) -> np.ndarray | None:
        """The current probabilities (B, m) that ``items`` (B, m) are true negatives, which an audit evaluates.

        None, the default, for a sampler without such an estimate.
        """
        return None

    @property
    def uses_test_labels(self) -> bool:
        """True for a sampler that reads the test labels on purpose; every record and table is marked."""
        return False


class RuleSampler(NegativeSampler):
    """A sampler whose choice is a :class:`~bayesneg.kernels.reference.choices.Rule`.

    Compiled code and torch execute the rule; :meth:`sample` is the same choice in plain NumPy, for any model.
    """

    @abstractmethod
    def rule(self, batch: Batch) -> Rule:
        """The rule at the batch's epoch, with its numbers and state."""

    @abstractmethod
    def draws(self, batch: Batch) -> Draws:
        """Everything random about the batch, drawn before a score is computed: candidates, priors, uniform numbers."""

    def without_held_out(self, draws: Draws, batch: Batch) -> Draws:
        """The draws without candidates for pairs that the sampler holds out from training, as in :meth:`draws`."""
        return draws

    @abstractmethod
    def width(self, n_items: int) -> int:
        """The number of values that :meth:`draws` holds per example, which bounds the size of a block."""

    def sample(self, batch: Batch) -> np.ndarray:
        return reference.choose_batch(self.rule(batch), self.draws(batch), batch)


class CandidateDraw(Protocol):
    """Proposes candidates: unobserved items without replacement."""

    def draw(
        self, users: np.ndarray, size: int, *, train: Interactions, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Candidates (B, size) int32 for ``users`` (B,), and the number (B,) int32 of valid ones in each row.

        A row has fewer than ``size`` where the user has fewer unobserved items in ``train``.
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
        """The draws without candidates for held-out training pairs, given the ``positions`` (B,) of the batch."""
        return draws

    def end_epoch(self, scorer: Scorer) -> None:
        """Called after each epoch."""
        return

    def state_dict(self) -> dict[str, np.ndarray]:
        """The state that a checkpoint must keep; empty for a stateless part."""
        return {}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state that :meth:`state_dict` returned."""
        return


class Prior(FollowsTraining, ABC):
    """The probability that an unobserved pair is a false negative, before its score is seen.

    ``NAME`` is the name of the prior on the command line; a built-in prior is registered by having one.
    """

    NAME: ClassVar[str] = ""

    @abstractmethod
    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Probabilities in [0, 1] of a false negative; ``users`` and ``items`` broadcast against each other."""

    def fit(self, train: Interactions) -> Prior:
        """The prior fitted to the training interactions ``train`` alone; the default has nothing to learn."""
        return self

    @property
    def uses_test_labels(self) -> bool:
        """True for a prior that reads the test labels on purpose."""
        return False

    @property
    def uses_scores(self) -> bool:
        """True for a prior that depends on the model's scores; a likelihood would count them twice."""
        return False


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
        """Take note of one block of chosen negatives, in the order of training."""
        ...

    def end_epoch(self, epoch: int, sampler: NegativeSampler, scorer: Scorer) -> Mapping[str, Any]:
        """Plain values to record with ``epoch``, given the sampler and the model after it."""
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
        """Everything that a checkpoint must keep of the model and its optimizer."""
        ...

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state that :meth:`state_dict` returned."""
        ...

    def is_finite(self) -> bool:
        """False once a parameter is NaN or infinite."""
        ...

    def frozen(self) -> Scorer:
        """A scorer that keeps the model's current state."""
        ...


@runtime_checkable
class RefreshesOnDevice(Protocol):
    """A scorer that can keep the summaries of score lists on a GPU, beside its embeddings."""

    def refreshed_knots(
        self, batch: Batch, ranks: np.ndarray, *, moved: float, pool: int, over_all: bool
    ) -> Any | None:
        """The knots (n_users, K) at ``ranks`` (K,), refreshed on the device; None for embeddings in host memory."""
        ...


class Model(Protocol):
    """The settings of a model: a frozen value that starts a fresh learner."""

    @property
    def shuffle(self) -> str:
        """``"epoch"`` draws a new order of the training pairs for each epoch; ``"once"`` keeps one order."""
        ...

    def start(self, train: Interactions, *, rng: np.random.Generator) -> Learner:
        """A learner for the training interactions ``train``, with initial parameters drawn from ``rng``."""
        ...
