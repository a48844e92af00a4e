"""Synthetic negatives: vectors mixed from embeddings, with their executable specification in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bayesneg.kernels.reference.choices.base import Draws

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch


class Layers(NamedTuple):
    """The embeddings of every layer of a model, whose final embeddings are their mean; arrays of NumPy or torch."""

    users: Sequence[Any]  # L times (n_users, d)
    items: Sequence[Any]  # L times (n_items, d)


class Synthetic(NamedTuple):
    """Synthetic negatives of B examples."""

    items: Any  # (B, K) the item that has most part in each; −1 where there is none
    vectors: Any  # (B, K, d)


@runtime_checkable
class Mixing(Protocol):
    """How synthetic negatives are made from draws and embeddings; every implementation is a ``NamedTuple``."""

    def mix(self, draws: Draws, batch: Batch, layers: Layers) -> Synthetic:
        """The specification: the synthetic negatives of a batch."""
        ...


class HopMixing(NamedTuple):
    """In each layer the candidate that scores highest once mixed with the positive; the mean over layers: MixGCF."""

    negatives: int  # K; each has an equal part of the candidates

    def mix(self, draws: Draws, batch: Batch, layers: Layers) -> Synthetic:
        n, m, n_layers = len(batch.users), draws.candidates.shape[1] // self.negatives, len(layers.items)
        a = draws.uniforms.reshape(n, n_layers, self.negatives, m)
        items = np.full((n, self.negatives), -1, dtype=np.int32)
        vectors = np.zeros((n, self.negatives, layers.items[0].shape[1]))
        for b, (user, positive) in enumerate(zip(batch.users, batch.positives, strict=True)):
            w = np.mean([users[user] for users in layers.users], axis=0)  # e_u
            for k in range(self.negatives):
                candidates = draws.candidates[b, k * m : min((k + 1) * m, draws.sizes[b])]
                if not len(candidates):
                    continue
                chosen = []
                for layer, e in enumerate(layers.items):
                    share = a[b, layer, k, : len(candidates), None]
                    mixed = share * e[positive] + (1.0 - share) * e[candidates]  # e′ (m, d)
                    chosen.append(int(np.argmax(mixed @ w)))
                    vectors[b, k] += mixed[chosen[-1]] / n_layers
                items[b, k] = candidates[most_frequent(chosen)]
        return Synthetic(items, vectors)


def most_frequent(chosen: Sequence[int]) -> int:
    """The value that occurs most often, the earlier on ties.

    >>> most_frequent([4, 2, 7, 2])
    2
    """
    return max(chosen, key=chosen.count)
