"""Ranges of rows or users that fit into memory, for arrays that need not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

BLOCK = 1 << 22  # interactions at a time: 32 MiB of 64-bit numbers


def row_blocks(n: int, size: int = BLOCK) -> Iterator[slice]:
    """Consecutive slices of 0 … n, each of at most ``size`` rows.

    >>> list(row_blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def user_blocks(indptr: np.ndarray, size: int = BLOCK) -> Iterator[tuple[int, int]]:
    """Consecutive ranges of users, each with at most ``size`` interactions; a user with more has one of their own.

    >>> list(user_blocks(np.array([0, 2, 3, 9, 9, 10]), 3))
    [(0, 2), (2, 3), (3, 5)]
    """
    start, n_users = 0, len(indptr) - 1
    while start < n_users:
        fitting = int(np.searchsorted(indptr, indptr[start] + size, side="right")) - 1
        stop = min(max(fitting, start + 1), n_users)
        yield start, stop
        start = stop
