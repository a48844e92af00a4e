"""Head, middle and tail items by popularity."""

from __future__ import annotations

from typing import Final

import numpy as np

COHORTS: Final = ("head", "middle", "tail")


def cohort_of(popularity: np.ndarray) -> np.ndarray:
    """The cohort of each item, (n_items,): 0 head, 1 middle, 2 tail, each with about a third of all interactions.

    Items are sorted by descending popularity, ties by item number. An item is head if less than a third of all
    interactions are on items before it, middle if less than two thirds are, and tail otherwise or without interactions.

    >>> cohort_of(np.array([1, 4, 2, 1, 0, 1]))
    array([2, 0, 1, 2, 2, 2])
    """
    order = np.argsort(-popularity, kind="stable")
    before = np.cumsum(popularity[order]) - popularity[order]
    cohorts = np.empty(len(popularity), dtype=np.int64)
    cohorts[order] = np.minimum(3 * before // max(1, int(popularity.sum())), 2)
    cohorts[popularity == 0] = 2
    return cohorts
