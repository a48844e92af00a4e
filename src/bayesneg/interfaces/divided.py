"""Models whose embeddings are divided among processes, and what a sampler keeps of them in each."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

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


@runtime_checkable
class DividedScorer(Protocol):
    """A scorer of which each process has a part; all processes call its methods together."""

    def divided_part(self) -> OwnPart:
        """What this process has.

        Returns:
            Its ranges of users, items and factors.
        """
        ...

    def divided_embeddings(self) -> Embeddings:
        """The embeddings whose inner product is the score, in parts.

        Returns:
            Those of this process's users and items, read-only.
        """
        ...


def own_part(scorer: Scorer) -> OwnPart:
    """What this process has of a model.

    Args:
        scorer: The model in its current state.

    Returns:
        The ranges of this process; everything, unless the model is divided among processes.
    """
    if isinstance(scorer, DividedScorer):
        return scorer.divided_part()
    dim = scorer.embeddings().items.shape[1]
    return OwnPart((0, scorer.n_users), (0, scorer.n_items), (0, dim), dim)


def own_embeddings(scorer: Scorer) -> Embeddings:
    """The embeddings that this process has of a model.

    Args:
        scorer: The model in its current state.

    Returns:
        The embeddings of its users and items; all of them, unless the model is divided among processes.
    """
    return scorer.divided_embeddings() if isinstance(scorer, DividedScorer) else scorer.embeddings()
