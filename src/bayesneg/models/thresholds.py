"""Users' thresholds: the K-th highest score of each user, for losses that aim at the top of the list."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

Lists = TypeVar("Lists")  # arrays of NumPy or torch


def thresholds_of(
    lists: Callable[[np.ndarray], Lists],
    kth_highest: Callable[[Lists, int], Lists],
    rank: int,
    *,
    n_users: int,
    n_items: int,
    scores_at_once: int,
) -> list[Lists]:
    """The ``rank``-th highest score of each user over the whole catalogue, in parts of a few users.

    Args:
        lists: The score lists (b, n_items) of users (b,).
        kth_highest: The execution of the choice, ``kernels.reference.ranks`` or ``kernels.torch.formulas``.
        rank: The rank K, from 1; the lowest score where the catalogue has fewer items.
        n_users: The number of users.
        n_items: The size of the catalogue.
        scores_at_once: Number of scores held at once.

    Returns:
        The thresholds (b,) of the users, part after part.
    """
    users = np.arange(n_users)
    step = max(1, scores_at_once // n_items)
    return [kth_highest(lists(users[first : first + step]), min(rank, n_items)) for first in range(0, n_users, step)]
