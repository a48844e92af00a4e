"""What samplers are given and give: scores, a batch of training pairs, the negatives of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.integrity.arrays import Specs
from bayesneg.interfaces.negatives import Negatives

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
        """Score some items of each user.

        Args:
            users: The users (B,).
            items: The items (B, m), a row for each user.

        Returns:
            The scores (B, m) float32.
        """
        ...

    def score_all(self, users: np.ndarray) -> np.ndarray:
        """Score the whole catalogue.

        Args:
            users: The users (B,); the caller keeps B small.

        Returns:
            The scores (B, n_items) float32.
        """
        ...

    def embeddings(self) -> Embeddings:
        """The embeddings whose inner product is the score.

        Returns:
            The embeddings of users and items, read-only.

        Raises:
            InputError: The model has no such embeddings.
        """
        ...


class Share(NamedTuple):
    """The part of a batch that one of several processes samples for; each draws what it would in the whole batch."""

    places: np.ndarray  # (B,) int64, ascending, where the pairs stand in the whole batch
    total: int  # pairs of the whole batch
    start: int  # the number of training pairs of users before those of this process


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
        share: Where the pairs stand in the batch of all processes; None where this is the whole batch.
    """

    users: np.ndarray
    positives: np.ndarray
    positions: np.ndarray
    epoch: int
    train: Interactions
    scorer: Scorer
    rng: np.random.Generator
    threads: int = 1
    share: Share | None = None

    def uniforms(self, width: int) -> np.ndarray:
        """Draw uniform numbers for each pair.

        Args:
            width: How many for each.

        Returns:
            The numbers (B, width) float64, the same for a pair whether its process has all pairs or a part.
        """
        if self.share is None:
            return self.rng.random((len(self.users), width))
        return self.rng.random((self.share.total, width))[self.share.places]

    def score(self, items: np.ndarray) -> np.ndarray:
        """Score some items of each user of the batch.

        Args:
            items: The items (B, m), a row for each user.

        Returns:
            The scores (B, m) float32.
        """
        return self.scorer.score(self.users, items)

    def score_all(self) -> np.ndarray:
        """Score the whole catalogue for each user of the batch.

        Returns:
            The scores (B, n_items) float32.
        """
        return self.scorer.score_all(self.users)

    def score_positives(self) -> np.ndarray:
        """Score the positives.

        Returns:
            The scores (B,) float32.
        """
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
    """Chooses one or several negatives for each training pair. A custom sampler implements :meth:`sample`.

    ``NAMES`` holds the command-line names of the class. A built-in sampler is registered by having one, a plug-in by
    an entry point of the group ``bayesneg.samplers``.
    """

    NAMES: ClassVar[Mapping[str, Preset]] = MappingProxyType({})

    @abstractmethod
    def sample(self, batch: Batch) -> np.ndarray | Negatives:
        """Choose the negatives of a batch.

        Args:
            batch: The training pairs and the model in its current state.

        Returns:
            One unobserved item (B,) for each pair, where NO_NEGATIVE skips the pair; or :class:`Negatives`: several
            weighted items for each pair, or a pool shared by all.
        """

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> NegativeSampler:
        """Bind the sampler to training interactions; called once per fit.

        Args:
            train: The training interactions.
            rng: The source of randomness of the initial state.

        Returns:
            The bound sampler. Mutable state belongs to it and not to ``self``.
        """
        return self

    def resolved(self, train: Interactions) -> NegativeSampler:
        """Resolve automatic settings.

        Args:
            train: The training interactions.

        Returns:
            The sampler with its settings as the record shows them.
        """
        return self

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        """Update the state of the sampler after an epoch.

        Args:
            epoch: The epoch that ended, counted from 1.
            scorer: The model after it.
        """
        return

    def state_dict(self) -> dict[str, np.ndarray]:
        """The state that a checkpoint must keep.

        Returns:
            Name → array; empty for a stateless sampler.
        """
        return {}

    @property
    def divided_state(self) -> Mapping[str, str]:
        """The arrays of :meth:`state_dict` of which each of several processes has a part: its rows.

        Returns:
            What their rows are, ``"users"``, ``"items"`` or ``"factors"``, by the first word of their names; all other
            arrays are the same in every process.
        """
        return {}

    def state_specs(self, train: Interactions) -> Specs:
        """What the arrays of :meth:`state_dict` must look like, checked before they are restored from a file.

        Args:
            train: The training interactions.

        Returns:
            Name → what it must look like, with the lengths ``"users"``, ``"items"``, ``"factors"`` and ``"dim"`` of the
            model; arrays that are not declared, by default all, are restored as they are.
        """
        return {}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore a state.

        Args:
            state: What :meth:`state_dict` returned.
        """
        return

    def wanted(self, n_items: int) -> int:
        """The number of unobserved items that a user should have; the record counts users with fewer.

        Args:
            n_items: The size of the catalogue.

        Returns:
            The number of items, 1 by default.
        """
        return 1

    def unbias(self, batch: Batch, items: np.ndarray) -> np.ndarray | None:
        """Estimate which items are true negatives, for an audit.

        Args:
            batch: The training pairs and the model in its current state.
            items: The items (B, m), a row for each pair.

        Returns:
            The probabilities (B, m) of a true negative; None, the default, for a sampler without such an estimate.
        """
        return None

    def prior_probability(self, batch: Batch, items: np.ndarray) -> np.ndarray | None:
        """Estimate which items are false negatives before their scores are seen, for an audit.

        Args:
            batch: The training pairs and the model in its current state.
            items: The items (B, m), a row for each pair.

        Returns:
            The probabilities (B, m) of a false negative; None, the default, for a sampler without a prior.
        """
        return None

    @property
    def gives_weights(self) -> bool:
        """Whether :meth:`sample` returns :class:`Negatives`; False, the default, for one item per pair."""
        return False

    @property
    def gives_several(self) -> bool:
        """Whether an example has several negatives, its own or of a pool; by default as :attr:`gives_weights`."""
        return self.gives_weights

    @property
    def unused_settings(self) -> frozenset[str]:
        """Names of settings that have no effect beside the others as they are, which no search should vary."""
        return frozenset()

    @property
    def uses_test_labels(self) -> bool:
        """True for a sampler that reads the test labels on purpose; every record and table is marked."""
        return False
