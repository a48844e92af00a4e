"""Head, middle and tail: the catalogue cut by how much of all that is chosen falls on its most popular items."""

from __future__ import annotations

from typing import Final

import numpy as np

COHORTS: Final = ("head", "middle", "tail")


def cohort_of(popularity: np.ndarray) -> np.ndarray:
    """The cohort of each item, (n_items,): 0 head, 1 middle, 2 tail, each with about a third of all interactions.

    Items by falling popularity (the lower number first on ties): the head are those before which less than a third of
    the interactions lie, the middle those before which less than two thirds do. An item nobody chose is tail.

    >>> cohort_of(np.array([1, 4, 2, 1, 0, 1]))
    array([2, 0, 1, 2, 2, 2])
    """
    order = np.argsort(-popularity, kind="stable")
    before = np.cumsum(popularity[order]) - popularity[order]
    cohorts = np.empty(len(popularity), dtype=np.int64)
    cohorts[order] = np.minimum(3 * before // max(1, int(popularity.sum())), 2)
    cohorts[popularity == 0] = 2
    return cohorts
