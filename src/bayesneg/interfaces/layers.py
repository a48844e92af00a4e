"""What samplers ask of a model's embeddings: how wide they are, and of how many layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from bayesneg.interfaces.sampling import Scorer


@runtime_checkable
class LayeredModule(Protocol):
    """A torch module whose final embeddings are the mean of those of its layers; a custom module may declare it."""

    def layer_embeddings(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """The embeddings of every layer, as tensors with gradients.

        Returns:
            The embeddings (n_users, d) of users, one tensor for each layer, and those (n_items, d) of items.
        """
        ...


@runtime_checkable
class LayeredScorer(Protocol):
    """A scorer that knows how many layers its model has."""

    @property
    def n_layers(self) -> int:
        """The number of layers, the first one included."""
        ...


@runtime_checkable
class HasWidth(Protocol):
    """A scorer that knows the width of its embeddings, also where no process has all of them."""

    @property
    def width(self) -> int:
        """The numbers of an embedding, d."""
        ...


def width_of(scorer: Scorer) -> int:
    """The width of a model's embeddings.

    Args:
        scorer: The model in its current state.

    Returns:
        The numbers of an embedding, d.
    """
    return scorer.width if isinstance(scorer, HasWidth) else int(scorer.embeddings().items.shape[1])


def n_layers_of(scorer: Scorer) -> int:
    """The number of layers of a model.

    Args:
        scorer: The model in its current state.

    Returns:
        The number of layers; 1 for a model of embeddings alone.
    """
    return scorer.n_layers if isinstance(scorer, LayeredScorer) else 1
