"""Every protocol of the library on one page.

A model gives a *learner*; a learner scores (it is a :class:`Scorer`) and trains one epoch at a time; a sampler gets a
:class:`Batch` of (user, positive) pairs with a lazy scorer and answers with one negative each. A prior is what BNS
believes before it looks at scores; a candidate draw is where it looks. Nothing here computes anything.

Write your own sampler by subclassing :class:`NegativeSampler`::

    class Hardest(bn.NegativeSampler):
        def sample(self, batch):
            scores = batch.score_all()                                  # (B, n_items)
            for row, user in enumerate(batch.users):
                scores[row, batch.train.row(user)] = -np.inf            # never a training positive
            free = scores.max(axis=1) > -np.inf                         # False for a user who chose everything
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

NO_NEGATIVE = -1  # in the place of an item: this example has no negative and is skipped


class Embeddings(NamedTuple):
    users: np.ndarray  # (n_users, d)
    items: np.ndarray  # (n_items, d)


class Scorer(Protocol):
    """A model as it stands now. Nothing is computed until it is asked for, so RNS never pays for a score."""

    @property
    def n_users(self) -> int: ...

    @property
    def n_items(self) -> int: ...

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Scores (B, m) float32 of ``items`` (B, m) for ``users`` (B,)."""
        ...

    def score_all(self, users: np.ndarray) -> np.ndarray:
        """Scores (B, n_items) float32 of the whole catalogue for ``users`` (B,); the caller keeps B small."""
        ...

    def embeddings(self) -> Embeddings:
        """The vectors whose inner product is the score; a view, not to be written to."""
        ...


@dataclass(frozen=True)
class Batch:
    """What a sampler is asked: one negative for each of B pairs."""

    users: np.ndarray  # (B,) int32
    positives: np.ndarray  # (B,) int32
    positions: np.ndarray  # (B,) int64, where each pair stands in train.indices
    epoch: int  # from 1
    train: Interactions
    scorer: Scorer
    rng: np.random.Generator
    threads: int = 1  # that built-in draws may use; what they draw is the same for any number

    def score(self, items: np.ndarray) -> np.ndarray:
        """Scores (B, m) of ``items`` (B, m), each row for its own user."""
        return self.scorer.score(self.users, items)

    def score_all(self) -> np.ndarray:
        """Scores (B, n_items) of every item."""
        return self.scorer.score_all(self.users)

    def score_positives(self) -> np.ndarray:
        """Scores (B,) of the positives."""
        return self.scorer.score(self.users, self.positives[:, None])[:, 0]


class Preset(NamedTuple):
    """What a command-line name stands for: a class with some of its settings given.

    Args:
        about: The sentence that ``bayesneg samplers`` shows for the name.
        settings: Settings that the name fixes, as on the command line.
    """

    about: str
    settings: Mapping[str, Any] = MappingProxyType({})


class NegativeSampler(ABC):
    """Chooses the negatives. Only :meth:`sample` must be written.

    ``NAMES`` holds the command-line names of the class. A built-in sampler is registered by having one, a plug-in by
    an entry point of the group ``bayesneg.samplers``.
    """

    NAMES: ClassVar[Mapping[str, Preset]] = MappingProxyType({})

    @abstractmethod
    def sample(self, batch: Batch) -> np.ndarray:
        """One item (B,) for each pair of the batch, never a training positive; NO_NEGATIVE skips the pair."""

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> NegativeSampler:
        """The sampler bound to the training data, asked for once per fit; fresh state belongs in what is returned."""
        return self

    def resolved(self, train: Interactions) -> NegativeSampler:
        """The sampler with what its settings leave to the data decided, as the record shows it."""
        return self

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        """Called after each epoch; for samplers that keep a memory."""
        return

    def state_dict(self) -> dict[str, np.ndarray]:
        """What a checkpoint must keep beside the model; empty for a sampler without memory."""
        return {}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Take up the state that :meth:`state_dict` gave."""
        return

    def wanted(self, n_items: int) -> int:
        """How many unobserved items a user should have for a free choice; users with fewer are counted."""
        return 1

    def unbias(self, batch: Batch, items: np.ndarray) -> np.ndarray | None:
        """How probably each of ``items`` (B, m) is a true negative, (B, m), as the sampler believes now.

        None, the default, for a sampler that forms no such belief. An audit holds it against the truth.
        """
        return None

    @property
    def uses_test_labels(self) -> bool:
        """True for studies that look at the test labels on purpose; marked in every record and table."""
        return False


class RuleSampler(NegativeSampler):
    """A sampler whose choice is a :class:`~bayesneg.kernels.reference.choices.Rule`.

    Compiled code and torch execute the rule; :meth:`sample` is the same choice in plain NumPy, for any model.
    """

    @abstractmethod
    def rule(self, batch: Batch) -> Rule:
        """The rule in force at the batch's epoch, with its numbers and state."""

    @abstractmethod
    def draws(self, batch: Batch) -> Draws:
        """All randomness of the batch, drawn without looking at a score: candidates, priors, uniform numbers."""

    def without_held_out(self, draws: Draws, batch: Batch) -> Draws:
        """The draws without candidates for pairs that the sampler holds out from training, as in :meth:`draws`."""
        return draws

    @abstractmethod
    def width(self, n_items: int) -> int:
        """How many numbers :meth:`draws` needs per example, for choosing a batch that fits in memory."""

    def sample(self, batch: Batch) -> np.ndarray:
        return reference.choose_batch(self.rule(batch), self.draws(batch), batch)


class CandidateDraw(Protocol):
    """Where a sampler looks: ``size`` items without replacement for each user, never a training positive."""

    def draw(
        self, users: np.ndarray, size: int, *, train: Interactions, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Candidates (B, size) int32 and how many of each row are valid (B,) int32: fewer where a user has fewer."""
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
        """What a checkpoint must keep; empty for what does not learn."""
        return {}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Take up the state that :meth:`state_dict` gave."""
        return


class Prior(FollowsTraining, ABC):
    """The probability that an unobserved pair is a false negative, before its score is seen.

    ``NAME`` is the name of the prior on the command line; a built-in prior is registered by having one.
    """

    NAME: ClassVar[str] = ""

    @abstractmethod
    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Probabilities in [0, 1]; ``users`` and ``items`` broadcast against each other."""

    def fit(self, train: Interactions) -> Prior:
        """The prior learned from the training data alone; the default has nothing to learn."""
        return self

    @property
    def uses_test_labels(self) -> bool:
        """True for the oracle, which looks at the test labels on purpose."""
        return False

    @property
    def uses_scores(self) -> bool:
        """True for a prior that depends on the model's scores; a likelihood would count them twice."""
        return False


class Sampled(NamedTuple):
    """What was picked for one block of examples; the raw material of TNR and INF."""

    users: np.ndarray  # (B,)
    negatives: np.ndarray  # (B,) NO_NEGATIVE where skipped
    info: np.ndarray  # (B,) float32, 1 − σ(x_positive − x_negative) at the moment of choice


class Observer(Protocol):
    """Looks on while a model trains, and changes nothing; what it says of an epoch joins the epoch's line.

    It keeps nothing from one epoch to the next, so that a resumed run is observed like one that was never interrupted.
    """

    def see(self, sampled: Sampled) -> None:
        """One block of picks, in the order of training."""
        ...

    def end_epoch(self, epoch: int, sampler: NegativeSampler, scorer: Scorer) -> Mapping[str, Any]:
        """What is to be recorded of the epoch that has just ended, in plain values."""
        ...


@runtime_checkable
class Learner(Scorer, Protocol):
    """A model in training."""

    def train_epoch(
        self, sampler: NegativeSampler, *, epoch: int, order: np.ndarray, rng: np.random.Generator
    ) -> Iterator[Sampled]:
        """One pass over the training pairs in ``order`` (positions in train.indices); yields what was sampled."""
        ...

    def state_dict(self) -> dict[str, np.ndarray]: ...

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None: ...

    def is_finite(self) -> bool:
        """False once training has left the finite numbers."""
        ...

    def frozen(self) -> Scorer:
        """A scorer that stays as the model is now."""
        ...


class Model(Protocol):
    """The settings of a model: a frozen value that gives a fresh learner."""

    @property
    def shuffle(self) -> str:
        """``"once"`` keeps one random order of examples for every epoch; ``"epoch"`` draws a new one for each."""
        ...

    def start(self, train: Interactions, *, rng: np.random.Generator) -> Learner: ...
