"""Ranges of rows or users that fit into memory, for arrays that need not."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

T = TypeVar("T")
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


def released(blocks: Iterable[T], *arrays: np.ndarray | None) -> Iterator[T]:
    """The same blocks; after each, what was read of mapped arrays is no longer counted as this process's memory.

    The system keeps it as long as it has room. Without this, a pass over a file would seem to need all of it.
    """
    maps = [found for array in arrays if (found := _map_of(array)) is not None]
    for block in blocks:
        yield block
        for each in maps:
            each.madvise(mmap.MADV_DONTNEED)


def _map_of(array: np.ndarray | None) -> mmap.mmap | None:
    """What an array is mapped by; None for one in memory, for a private copy, and where the system cannot let go."""
    base: object = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if sys.platform != "linux" or not isinstance(base, np.memmap) or base.mode == "c":
        return None
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None
