"""What a sampler answers with when one negative of weight 1 is not enough."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Negatives(NamedTuple):
    """The negatives of a batch of B examples, as arrays of NumPy or torch.

    A user's training items never count: a sampler leaves them out or gives them weight 0.

    Args:
        items: Item numbers: (B, K), K for each example, or (N,), one pool shared by all examples. −1 in (B, K) is no
            item.
        weights: How much each negative counts, (B, K) or (B, N), at least 0; None stands for 1 everywhere.
        log_q: How often each item is drawn, of the shape of ``items``: the log of the expected number of times that it
            is among the negatives, divided by that of a uniform draw of as many. For K independent draws from n items
            with probabilities p it is log(n · p), for a pool log(inclusion probability · n / N). None, for a uniform
            draw, is 0 everywhere.
        vectors: Synthetic embeddings (B, K, d) in place of those of ``items``, as tensors with gradients; None for
            the items themselves.

    Example:
        >>> import numpy as np
        >>> Negatives(np.array([[3, 5], [0, 2]])).is_shared
        False
    """

    items: Any
    weights: Any = None
    log_q: Any = None
    vectors: Any = None

    @property
    def is_shared(self) -> bool:
        """Whether all examples share one pool."""
        return self.items.ndim == 1


def weighted_pairs(answer: np.ndarray | Negatives, n_examples: int) -> tuple[np.ndarray, np.ndarray]:
    """The negatives of each example with their weights, whatever form a sampler answered in.

    Args:
        answer: One item (B,) per example, or :class:`Negatives`.
        n_examples: The number B of examples.

    Returns:
        Items (B, K), −1 where there is none, and weights (B, K), 0 where a negative does not count.

    >>> weighted_pairs(np.array([4, -1]), 2)[1]
    array([[1.],
           [0.]])
    """
    given = answer if isinstance(answer, Negatives) else Negatives(np.asarray(answer)[:, None])
    items = np.broadcast_to(given.items, (n_examples, given.items.shape[-1]))
    weights = np.ones(items.shape) if given.weights is None else np.asarray(given.weights, dtype=np.float64)
    return items, np.where(items >= 0, weights, 0.0)
