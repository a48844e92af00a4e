"""Whether a user has chosen an item, answered mostly by one bit.

Beside each sorted row stands a coarse picture of it: the catalogue is cut into cells of 1, 2, 4, … items, the smallest
for which 16 bits per chosen item are enough, and a cell's bit says whether the row has an item in it. A clear bit is a
no. A set bit is a yes where a cell is one item, and otherwise a case for binary search in the row. The picture takes
two bytes for each interaction, half of what the rows take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesneg.kernels.numba.compiling import DIGEST, entry_point, kernel

CELLS = 16  # bits for each chosen item
ONE = np.uint64(1)


class Observed(NamedTuple):
    """The pairs of a training part as compiled draws look them up."""

    indptr: np.ndarray  # (n_users + 1,) int64
    indices: np.ndarray  # (n,) int32, ascending within a user
    n_items: int
    bits: np.ndarray  # (2n + 2,) uint8, the user's from 2·indptr[user] on
    shifts: np.ndarray  # (n_users,) uint8, a cell holds 2^shift items


class Row(NamedTuple):
    """One user's part of it."""

    start: int
    stop: int  # the items are indices[start:stop]
    shift: int


def observed_pairs(indptr: np.ndarray, indices: np.ndarray, n_items: int) -> Observed:
    bits = np.zeros(2 * len(indices) + 2, dtype=np.uint8)  # a user without items looks two bytes beyond
    shifts = np.zeros(len(indptr) - 1, dtype=np.uint8)
    mark_cells(indptr, indices, n_items, bits, shifts)
    return Observed(indptr, indices, n_items, bits, shifts)


@kernel
def observes(row: Row, indices: np.ndarray, bits: np.ndarray, item: int) -> bool:
    """Whether ``item`` is in the row."""
    cell = np.uint64(item) >> np.uint64(row.shift)
    byte = bits[np.uint64(2 * row.start) + (cell >> np.uint64(3))]
    if (np.uint64(byte) >> (cell & np.uint64(7))) & ONE == np.uint64(0):
        return False
    return row.shift == 0 or in_row(row, indices, item)


@kernel
def in_row(row: Row, indices: np.ndarray, item: int) -> bool:
    """The same by binary search, without a branch that depends on the data."""
    if row.start == row.stop:
        return False
    place, length = np.uint64(row.start), np.uint64(row.stop - row.start)  # unsigned: no test for negative places
    while length > ONE:
        half = length >> ONE
        place += half * np.uint64(indices[place + half - ONE] < item)
        length -= half
    return indices[place] == item


def _entry_point(digest: int) -> Callable[..., None]:
    @entry_point
    def mark_cells(indptr, indices, n_items, bits, shifts):  # type: ignore[no-untyped-def]
        """The smallest cells for which each row has bits enough, and the bits of those that hold any of its items."""
        for user in range(len(indptr) - 1 + digest * 0):
            start, stop = indptr[user], indptr[user + 1]
            shift = 0 if start < stop else 1  # without items the bits are another's, so that a search has to confirm
            while ((n_items - 1) >> shift) >= CELLS * max(stop - start, 1):
                shift += 1
            shifts[user] = shift
            for place in range(start, stop):
                cell = indices[place] >> shift
                bits[2 * start + (cell >> 3)] |= np.uint8(1 << (cell & 7))

    return mark_cells


mark_cells = _entry_point(DIGEST)
