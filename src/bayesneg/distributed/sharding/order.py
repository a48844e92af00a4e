"""The order of the training pairs in several processes.

Few pairs are in the order of one process: a permutation that every process holds. Many are in a keyed order, of which a
process computes the places of its own pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesneg.kernels.numba.distributed.ordering import pairs_at, places_of
from bayesneg.seeding import seed_from

MOST_HELD = 1 << 27  # pairs whose permutation every process holds, 1 GiB


@dataclass(frozen=True)
class KeyedOrder:
    """A random permutation of n pairs that is computed where it is needed; the same in any number of processes.

    Args:
        n: The number of pairs.
        key: 64 random bits.
    """

    n: int
    key: int

    def __len__(self) -> int:
        return self.n

    def places(self, first: int, last: int, *, threads: int = 1) -> np.ndarray:
        """The places in the order of the pairs from ``first`` to ``last``, ascending: 8 bytes for each."""
        found = places_of(first, last, self.n, self.key, threads=threads)
        found.sort()
        return found

    def pairs(self, places: np.ndarray, *, threads: int = 1) -> np.ndarray:
        """The pairs at these places."""
        return pairs_at(places, self.n, self.key, threads=threads)


def order_of(rng: np.random.Generator, n: int) -> np.ndarray | KeyedOrder:
    """The order of n pairs: that of one process up to ``MOST_HELD``, a keyed one of more.

    Args:
        rng: The stream of the order, the same in all processes.
        n: The number of pairs.
    """
    return rng.permutation(n) if n <= MOST_HELD else KeyedOrder(n, seed_from(rng))
