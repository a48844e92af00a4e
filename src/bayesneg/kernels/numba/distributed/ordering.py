"""A keyed order of the training pairs, compiled: same names and numbers as in ``reference``."""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.compiling import entry_point, in_parts, kernel
from bayesneg.kernels.numba.rng import GOLDEN, mixed
from bayesneg.kernels.reference import draws as reference_draws
from bayesneg.kernels.reference.ordering import ROUNDS

WORK = 64  # of a number, in those that a thread is worth starting for


def pairs_at(places: np.ndarray, n: int, key: int, *, threads: int = 1) -> np.ndarray:
    """The pairs (k,) int64, of n, at places (k,) of the order.

    Args:
        places: Places from 0 to n − 1.
        n: The number of pairs.
        key: 64 random bits.
        threads: The number of threads at most.
    """
    return _walked(np.array(places, dtype=np.int64), n, key, inverse=False, threads=threads)


def places_of(first: int, last: int, n: int, key: int, *, threads: int = 1) -> np.ndarray:
    """The places (last − first,) int64 of the pairs from ``first`` to ``last``, the inverse of :func:`pairs_at`.

    Args:
        first: The first pair.
        last: The pair after the last.
        n: The number of pairs.
        key: 64 random bits.
        threads: The number of threads at most.
    """
    return _walked(np.arange(first, last, dtype=np.int64), n, key, inverse=True, threads=threads)


def _walked(numbers: np.ndarray, n: int, key: int, *, inverse: bool, threads: int) -> np.ndarray:
    """In place."""
    keys = np.array([reference_draws.mixed(key + turn * reference_draws.GOLDEN) for turn in range(ROUNDS)], np.uint64)
    bits = max(2, (n - 1).bit_length())

    def fill(begin: int, end: int) -> None:
        walk(numbers[begin:end], n, bits // 2, bits - bits // 2, keys, inverse)

    in_parts(fill, len(numbers), WORK, threads)
    return numbers


@entry_point
def walk(numbers: np.ndarray, n: int, low_bits: int, high_bits: int, keys: np.ndarray, inverse: bool) -> None:
    size = np.uint64(n)
    for place in range(len(numbers)):
        number = changed(np.uint64(numbers[place]), np.uint64(low_bits), np.uint64(high_bits), keys, inverse)
        while number >= size:
            number = changed(number, np.uint64(low_bits), np.uint64(high_bits), keys, inverse)
        numbers[place] = np.int64(number)


@kernel
def changed(number: np.uint64, low_bits: np.uint64, high_bits: np.uint64, keys: np.ndarray, inverse: bool) -> np.uint64:
    low, high = number & ((np.uint64(1) << low_bits) - np.uint64(1)), number >> low_bits
    for step in range(ROUNDS):
        turn = ROUNDS - 1 - step if inverse else step
        if turn % 2:
            high ^= mixed(keys[turn] + low * GOLDEN) >> (np.uint64(64) - high_bits)
        else:
            low ^= mixed(keys[turn] + high * GOLDEN) >> (np.uint64(64) - low_bits)
    return high << low_bits | low
