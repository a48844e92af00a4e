"""The draws of ``draws`` for a part of a batch: the streams are those of the examples' places in the whole batch.

Processes that share a batch then draw what one process would, each for its own examples.
"""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.compiling import entry_point, in_parts
from bayesneg.kernels.numba.draws import (
    take_all,
    take_by_rank,
    take_by_rejection,
    weighted_by_inversion,
    weighted_by_rejection,
)
from bayesneg.kernels.numba.observed import Observed, ObservedRow
from bayesneg.kernels.numba.rng import GOLDEN, stream_of
from bayesneg.kernels.reference.draws import SCARCE, TRIES


def uniform_candidates(
    users: np.ndarray, places: np.ndarray, observed: Observed, m: int, seed: int, *, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """As :func:`~bayesneg.kernels.numba.draws.uniform_candidates`, for the examples at ``places`` (B,) of a batch."""
    users = np.ascontiguousarray(users, dtype=np.int32)
    candidates, sizes = np.empty((len(users), m), dtype=np.int32), np.empty(len(users), dtype=np.int32)

    def fill(first: int, last: int) -> None:
        part = slice(first, last)
        draw_uniform_at(users[part], places[part], observed, np.uint64(seed), candidates[part], sizes[part])

    in_parts(fill, len(users), m, threads)
    return candidates, sizes


def weighted_items(
    users: np.ndarray,
    places: np.ndarray,
    observed: Observed,
    mass: np.ndarray,
    row_mass: np.ndarray,
    n_weighted: int,
    guide: np.ndarray,
    seed: int,
    *,
    threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """As :func:`~bayesneg.kernels.numba.draws.weighted_items`, for the examples at ``places`` (B,) of a batch.

    ``row_mass`` belongs to the rows of ``observed``.
    """
    users = np.ascontiguousarray(users, dtype=np.int32)
    candidates, sizes = np.empty((len(users), 1), dtype=np.int32), np.empty(len(users), dtype=np.int32)
    guide_shift = np.uint64(65 - len(guide).bit_length())  # leaves the g highest of 64 bits

    def fill(first: int, last: int) -> None:
        part = slice(first, last)
        draw_weighted_at(
            users[part], places[part], observed, mass, row_mass, n_weighted, guide, guide_shift, np.uint64(seed),
            candidates[part], sizes[part],
        )  # fmt: skip

    in_parts(fill, len(users), 1, threads)
    return candidates, sizes


@entry_point
def draw_uniform_at(users, places, observed, seed, candidates, sizes):  # type: ignore[no-untyped-def]
    indptr, indices, n_items, bits, shifts = observed
    m = candidates.shape[1]
    ranks = np.empty(m, dtype=np.int64)
    for b in range(len(users)):
        row = ObservedRow(indptr[users[b]], indptr[users[b] + 1], shifts[users[b]])
        n = n_items - (row.stop - row.start)
        sizes[b] = min(n, m)
        if n <= m:
            take_all(row, indices, n_items, b, candidates)
            continue
        state = stream_of(seed, places[b])
        if SCARCE * (n - m) >= n_items:
            if take_by_rejection(row, indices, bits, n_items, state, b, candidates):
                continue
            state += np.uint64(TRIES * m) * GOLDEN
        take_by_rank(row, indices, n_items, state, b, candidates, ranks)


@entry_point
def draw_weighted_at(  # type: ignore[no-untyped-def]
    users, places, observed, mass, row_mass, n_weighted, guide, guide_shift, seed, candidates, sizes
):
    indptr, indices, _, bits, shifts = observed
    for b in range(len(users)):
        user = users[b]
        row = ObservedRow(indptr[user], indptr[user + 1], shifts[user])
        candidates[b, 0], sizes[b] = -1, 0
        if n_weighted <= row.stop - row.start:
            continue
        state = stream_of(seed, places[b])
        item = -1
        if SCARCE * (mass[-1] - row_mass[row.stop + user]) >= mass[-1]:
            item = weighted_by_rejection(row, indices, bits, mass, guide, guide_shift, state)
            state += np.uint64(TRIES) * GOLDEN
        if item < 0:
            item = weighted_by_inversion(row, indices, mass, row_mass, user, state)
        candidates[b, 0], sizes[b] = item, item >= 0
