"""Whether an item is observed by a user, mostly decided by one bit.

Each user has a bitmap: the catalogue is divided into cells of 1, 2, 4, … items, the smallest for which 16 bits per
training item are enough, and a cell's bit says whether the user has an item in it. A clear bit means unobserved. A set
bit means observed where a cell is one item; otherwise binary search in the user's row decides. The bitmaps take two
bytes per interaction, half the memory of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesneg.kernels.numba.compiling import entry_point, kernel

CELLS = 16  # bits per training item
ONE = np.uint64(1)


class Observed(NamedTuple):
    """The training pairs, for lookups by compiled draws."""

    indptr: np.ndarray  # (n_users + 1,) int64
    indices: np.ndarray  # (n,) int32, ascending within a user
    n_items: int
    bits: np.ndarray  # (2n + 2,) uint8, the user's from 2·indptr[user] on
    shifts: np.ndarray  # (n_users,) uint8, a cell holds 2^shift items


class ObservedRow(NamedTuple):
    """The row of one user."""

    start: int
    stop: int  # the items are indices[start:stop]
    shift: int


def observed_pairs(indptr: np.ndarray, indices: np.ndarray, n_items: int) -> Observed:
    bits = np.zeros(2 * len(indices) + 2, dtype=np.uint8)  # a user without items reads two bytes beyond
    shifts = np.zeros(len(indptr) - 1, dtype=np.uint8)
    mark_cells(indptr, indices, n_items, bits, shifts)
    return Observed(indptr, indices, n_items, bits, shifts)


@kernel
def observes(row: ObservedRow, indices: np.ndarray, bits: np.ndarray, item: int) -> bool:
    """Whether ``item`` is in the row."""
    cell = np.uint64(item) >> np.uint64(row.shift)
    byte = bits[np.uint64(2 * row.start) + (cell >> np.uint64(3))]
    if (np.uint64(byte) >> (cell & np.uint64(7))) & ONE == np.uint64(0):
        return False
    return row.shift == 0 or in_row(row, indices, item)


@kernel
def in_row(row: ObservedRow, indices: np.ndarray, item: int) -> bool:
    """The same by branch-free binary search."""
    if row.start == row.stop:
        return False
    place, length = np.uint64(row.start), np.uint64(row.stop - row.start)  # unsigned: no check for negative indices
    while length > ONE:
        half = length >> ONE
        place += half * np.uint64(indices[place + half - ONE] < item)
        length -= half
    return indices[place] == item


@entry_point
def mark_cells(indptr, indices, n_items, bits, shifts):  # type: ignore[no-untyped-def]
    """Find the smallest cell size that fits each row's bits, and set the bits of cells that hold its items."""
    for user in range(len(indptr) - 1):
        start, stop = indptr[user], indptr[user + 1]
        shift = 0 if start < stop else 1  # without items the bits are another user's, and a search must confirm
        while ((n_items - 1) >> shift) >= CELLS * max(stop - start, 1):
            shift += 1
        shifts[user] = shift
        for place in range(start, stop):
            cell = indices[place] >> shift
            bits[2 * start + (cell >> 3)] |= np.uint8(1 << (cell & 7))
