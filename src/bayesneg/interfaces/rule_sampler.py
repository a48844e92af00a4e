"""Samplers whose choice is a rule: a plain tuple that compiled code and torch execute."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from bayesneg.errors import InputError
from bayesneg.interfaces.negatives import Negatives
from bayesneg.interfaces.sampling import Batch, NegativeSampler
from bayesneg.kernels.reference.choices.base import Draws, choose_batch
from bayesneg.kernels.reference.mixing import Layers, Mixing
from bayesneg.kernels.reference.plans import DrawPlan
from bayesneg.kernels.reference.pools import SharedPool
from bayesneg.kernels.reference.selections import Selection


class RuleSampler(NegativeSampler):
    """A sampler whose choice is a :class:`~bayesneg.kernels.reference.choices.base.Rule`.

    Compiled code and torch execute the rule; :meth:`sample` is the same choice in plain NumPy, for any model.
    """

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The sampler with the settings of the BNS paper, which are the defaults unless a class says otherwise.

        Args:
            **changes: Settings that differ from the paper's.

        Returns:
            The sampler with the paper's settings and these changes.
        """
        return cls(**changes)

    @abstractmethod
    def rule(self, batch: Batch) -> Any:
        """The rule at the batch's epoch.

        Args:
            batch: The training pairs.

        Returns:
            The rule with its numbers and state: a ``Rule`` chooses one negative, a ``Selection`` several, a
            ``PoolRule`` weighs the pool that the batch shares, a ``Mixing`` makes vectors.
        """

    @abstractmethod
    def draws(self, batch: Batch) -> Draws:
        """Draw everything random about the batch before a score is computed.

        Args:
            batch: The training pairs.

        Returns:
            The candidates, their priors and uniform numbers.
        """

    def plan(self, batch: Batch) -> DrawPlan | None:
        """What :meth:`draws` or :meth:`pool` draw, for a device that draws it itself.

        Args:
            batch: The epoch and the training interactions; its pairs may be missing.

        Returns:
            The plan; None, the default, for draws that only the host can make.
        """
        return None

    @property
    def is_shared(self) -> bool:
        """Whether all pairs of a batch share one pool of negatives, which :meth:`pool` draws."""
        return False

    @property
    def pairs_at_once(self) -> int | None:
        """The number of pairs that compiled MF samples for before it takes their steps.

        None, the default, is for a rule with a compiled execution, which sees the embeddings as they are at each pair.
        A sampler with a number is executed in NumPy there.
        """
        return None

    @property
    def makes_vectors(self) -> bool:
        """Whether negatives are synthetic vectors, which only torch models with embeddings can learn from."""
        return False

    def pool(self, batch: Batch) -> SharedPool:
        """Draw the pool that a batch shares.

        Args:
            batch: The training pairs.

        Returns:
            The items, with the probabilities of their draw where these differ.
        """
        raise InputError(f"{type(self).__name__} draws negatives for each example; it has no shared pool")

    @property
    def holds_out(self) -> bool:
        """Whether some training pairs are held out of training, which :meth:`draws` leaves without candidates."""
        return False

    def log_q(self, batch: Batch) -> np.ndarray | None:
        """How often each item is drawn at the batch's epoch, for losses that correct for it.

        Args:
            batch: The epoch; its pairs may be missing.

        Returns:
            One number per item, log(n · p) as in :class:`~bayesneg.interfaces.Negatives`; None where all items are
            drawn alike.
        """
        return None

    def without_held_out(self, draws: Draws, batch: Batch) -> Draws:
        """Remove the candidates of pairs that the sampler holds out from training.

        Args:
            draws: What :meth:`draws` returned.
            batch: The training pairs.

        Returns:
            The draws, without candidates for held-out pairs.
        """
        return draws

    @abstractmethod
    def width(self, n_items: int) -> int:
        """The number of values that :meth:`draws` holds per example, which bounds the size of a block.

        Args:
            n_items: The size of the catalogue.

        Returns:
            The number of values.
        """

    def sample(self, batch: Batch) -> np.ndarray | Negatives:
        rule = self.rule(batch)
        if self.is_shared:
            pool = self.pool(batch)
            return Negatives(pool.items, rule.weigh(pool, batch), pool.log_q if pool.corrects else None)
        draws = self.draws(batch)
        if isinstance(rule, Mixing):
            users, vectors = batch.scorer.embeddings()
            made = rule.mix(draws, batch, Layers([users], [vectors]))
            return Negatives(made.items, (made.items >= 0).astype(np.float64), None, made.vectors)
        if isinstance(rule, Selection):
            items, weights = rule.select(draws, batch)
        else:
            chosen = choose_batch(rule, draws, batch)
            if not self.gives_weights:
                return chosen
            # a warm start may choose one negative first and select several later
            items = chosen[:, None]
            weights = (items >= 0).astype(np.float64)
        log_q = self.log_q(batch)
        return Negatives(items, weights, None if log_q is None else log_q[np.maximum(items, 0)])
