"""Models of which each of several processes has a part: what samplers and priors keep of them, where they start."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bayesneg.interfaces.sampling import Embeddings, Scorer


class OwnPart(NamedTuple):
    """What one process has of a model: ranges of users, items and factors, each the first and the one after the last.

    Embeddings are divided by users and by items. Lists over all items, one for each factor, are divided by factors.
    """

    users: tuple[int, int]
    items: tuple[int, int]
    factors: tuple[int, int]
    dim: int  # the width of all embeddings

    def range_of(self, kind: str) -> tuple[int, int]:
        """The range of ``"users"``, ``"items"`` or ``"factors"``."""
        return {"users": self.users, "items": self.items, "factors": self.factors}[kind]


class EmbeddingsInParts(Protocol):
    """A copy of a model's embeddings, of which this process may have a part; all processes call its methods together.

    ``pool_scores`` alone is called by those processes that have an example of a mini-batch.
    """

    @property
    def first_user(self) -> int:
        """The number of the first user of this process."""
        ...

    @property
    def users(self) -> np.ndarray:
        """The embeddings (n, d) of this process's users, who have consecutive numbers."""
        ...

    @property
    def items(self) -> np.ndarray:
        """The embeddings (n, d) of this process's items."""
        ...

    def scores(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The scores of pairs.

        Args:
            users: Users of this process, any shape.
            items: Any items, of a shape that broadcasts against that of the users.

        Returns:
            The scores, of the broadcast shape.
        """
        ...

    def read_ahead(self, items: np.ndarray) -> None:
        """Fetch a pool of items, for :meth:`pool_scores`.

        Args:
            items: The items (N,), the same in all processes.
        """
        ...

    def pool_scores(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The scores of the pool that was fetched last.

        Args:
            users: Users (B, 1) of this process.
            items: The items (1, N).

        Returns:
            The scores (B, N).
        """
        ...

    def total(self, part: Any) -> np.ndarray:
        """The sum of a number or an array over all processes.

        Args:
            part: The part of this process.

        Returns:
            The sum, the same in all processes.
        """
        ...


@runtime_checkable
class ScorerInParts(Protocol):
    """A scorer whose embeddings are divided among processes; all of them call its methods together."""

    def own_part(self) -> OwnPart:
        """What this process has.

        Returns:
            Its ranges of users, items and factors.
        """
        ...

    def embeddings_in_parts(self) -> EmbeddingsInParts:
        """Copy the embeddings of this process.

        Returns:
            The copy, which further training does not change.
        """
        ...


class StartsInParts(ScorerInParts, Protocol):
    """A learner, divided among processes, that may start from the embeddings of an earlier run."""

    def start_part_from(
        self,
        embeddings: Embeddings,
        matched: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
        known: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Replace the embeddings that training moves, of those users and items of this process that are known.

        Args:
            embeddings: The embeddings of the earlier run.
            matched: For users and for items: their numbers (n,) now, and those in the earlier run.
            known: True (n_users,) and (n_items,) for those whom the earlier run has learned about.
        """
        ...


def own_part(scorer: Scorer) -> OwnPart:
    """What this process has of a model.

    Args:
        scorer: The model in its current state.

    Returns:
        The ranges of this process; everything, unless the model is divided among processes.
    """
    if isinstance(scorer, ScorerInParts):
        return scorer.own_part()
    dim = int(scorer.embeddings().items.shape[1])
    return OwnPart((0, scorer.n_users), (0, scorer.n_items), (0, dim), dim)


def own_embeddings(scorer: Scorer) -> Embeddings:
    """The embeddings that this process has of a model.

    Args:
        scorer: The model in its current state.

    Returns:
        The embeddings of its users and items; all of them, unless the model is divided among processes.
    """
    if isinstance(scorer, ScorerInParts):
        part = scorer.embeddings_in_parts()
        return Embeddings(part.users, part.items)
    return scorer.embeddings()
