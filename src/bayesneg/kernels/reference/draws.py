"""The executable specification of the draws: the same candidates, number for number, in plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

GOLDEN = 0x9E3779B97F4A7C15
FACTORS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
SCARCE = 4  # nothing is rejected where less than one part in four of the catalogue, or of its weight, would be taken
TRIES = 16  # for each candidate, before what is left is numbered and drawn from; a bound, seldom reached


def numbers_of(seed: int, example: int) -> Iterator[int]:
    """The random 64-bit numbers of one example: splitmix64 from its start.

    G. L. Steele et al., "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.

    >>> next(numbers_of(0, 0)) == 0xE220A8397B1DCDAF  # the published generator, started at 0
    True
    """
    state = mixed(seed + example * GOLDEN)
    while True:
        state += GOLDEN
        yield mixed(state)


def mixed(z: int) -> int:
    """A one-to-one map of the 64-bit numbers in which every bit depends on all."""
    z %= 2**64
    z = (z ^ (z >> 30)) * FACTORS[0] % 2**64
    z = (z ^ (z >> 27)) * FACTORS[1] % 2**64
    return z ^ (z >> 31)


def below(number: int, n: int) -> int:
    """A 64-bit number as one of 0 … n−1; the probability of each is 1/n to within 2⁻⁶⁴."""
    return number * n >> 64


def unit(number: int) -> float:
    """A 64-bit number as a multiple of 2⁻⁵³ in [0, 1)."""
    return (number >> 11) * 2.0**-53


def number_outside(ascending: Any, rank: int) -> int:
    """The ``rank``-th whole number (from 0) that is not in the ascending list: a complement without storing it.

    >>> [number_outside([1, 2, 5], rank) for rank in range(4)]
    [0, 3, 4, 6]
    """
    for number in ascending:
        if number > rank:
            break
        rank += 1
    return rank


def uniform_candidates(row: np.ndarray, n_items: int, m: int, numbers: Iterator[int]) -> list[int]:
    """``m`` items outside ``row``, uniformly and without replacement; all of them where there are no more.

    Whether a try is rejected depends on how many items are taken, not on which; so giving up says nothing about the
    items, and starting over by rank leaves the law as it is.
    """
    n = n_items - len(row)
    if n <= m:
        return [number_outside(row, rank) for rank in range(n)]
    if SCARCE * (n - m) >= n_items:
        drawn: list[int] = []
        for number in islice(numbers, TRIES * m):
            item = below(number, n_items)
            if item not in row and item not in drawn:
                drawn.append(item)
            if len(drawn) == m:
                return drawn
    ranks: list[int] = []
    for k in range(m):
        ranks.append(number_outside(sorted(ranks), below(next(numbers), n - k)))
    return [number_outside(row, rank) for rank in ranks]


def weighted_item(row: np.ndarray, weights: np.ndarray, numbers: Iterator[int]) -> int:
    """One item outside ``row`` with probability ∝ its weight, or −1 where no weight is left."""
    left = weights.astype(np.float64).copy()
    left[row] = 0.0
    if not left.any():
        return -1
    if SCARCE * left.sum() >= weights.sum():
        for number in islice(numbers, TRIES):
            item = item_at(weights, unit(number))
            if item not in row:
                return item
    return item_at(left, unit(next(numbers)))


def first_of_its_user(users: np.ndarray) -> np.ndarray:
    """True (B,) where no earlier example of the batch has the same user.

    >>> first_of_its_user(np.array([4, 7, 4]))
    array([ True,  True, False])
    """
    first = np.zeros(len(users), dtype=bool)
    first[np.unique(users, return_index=True)[1]] = True
    return first


def item_at(weights: np.ndarray, share: float) -> int:
    """The item in whose part of the cumulated weights the ``share`` of the whole lies."""
    mass = np.cumsum(weights)
    item = int(np.searchsorted(mass, share * mass[-1], side="right"))
    return min(item, int(np.flatnonzero(weights)[-1]))
