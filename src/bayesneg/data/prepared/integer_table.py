"""A hash table from integers to dense numbers that grows with the data, compiled.

A join per chunk would hash all known identifiers again for every chunk; this table makes a chunk cost its own rows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bayesneg.data.blocks import row_blocks

BLOCK = 1 << 18  # identifiers between two looks at the space that is left
SMALLEST = 1 << 10


class IntegerTable:
    """Numbers integers in order of first appearance."""

    def __init__(self) -> None:
        self.n_known = 0
        self._ids, self._numbers = _empty(SMALLEST)

    def number(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of each identifier (n,) int64, and the positions of those that are new, ascending."""
        numbers, new = np.empty(len(ids), dtype=np.int64), []
        for part in row_blocks(len(ids), BLOCK):
            self._make_room(part.stop - part.start)
            found = _number(ids[part], self._ids, self._numbers, self.n_known, numbers[part])
            self.n_known += len(found)
            new.append(part.start + found)
        return numbers, np.concatenate(new) if new else np.empty(0, dtype=np.int64)

    def _make_room(self, n: int) -> None:
        """At most half of the slots are taken, even if all n identifiers are new."""
        capacity = len(self._ids)
        while capacity < 2 * (self.n_known + n):
            capacity *= 2
        if capacity > len(self._ids):
            before = self._ids, self._numbers
            self._ids, self._numbers = _empty(capacity)
            _move(*before, self._ids, self._numbers)


def _empty(capacity: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(capacity, dtype=np.int64), np.full(capacity, -1, dtype=np.int32)


@njit(cache=True, nogil=True)
def _slot(raw: int, mask: int) -> np.int64:
    """The finalizer of splitmix64: nearby integers are spread over the whole table."""
    z = np.uint64(raw)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) & np.uint64(mask))


@njit(cache=True, nogil=True)
def _number(ids: np.ndarray, known: np.ndarray, values: np.ndarray, n_known: int, numbers: np.ndarray) -> np.ndarray:
    """Fill ``numbers`` (n,), putting new identifiers into the table; their positions."""
    mask, n_new = len(known) - 1, 0
    new = np.empty(len(ids), dtype=np.int64)
    for row in range(len(ids)):
        slot = _slot(ids[row], mask)
        while values[slot] >= 0 and known[slot] != ids[row]:
            slot = (slot + 1) & mask
        if values[slot] < 0:
            known[slot], values[slot] = ids[row], n_known + n_new
            new[n_new] = row
            n_new += 1
        numbers[row] = values[slot]
    return new[:n_new].copy()


@njit(cache=True, nogil=True)
def _move(ids: np.ndarray, values: np.ndarray, to_ids: np.ndarray, to_values: np.ndarray) -> None:
    mask = len(to_ids) - 1
    for place in range(len(ids)):
        if values[place] >= 0:
            slot = _slot(ids[place], mask)
            while to_values[slot] >= 0:
                slot = (slot + 1) & mask
            to_ids[slot], to_values[slot] = ids[place], values[place]
