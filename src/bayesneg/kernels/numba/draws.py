"""Candidates for many examples at once, compiled: same names and same draws as in ``reference``.

Items are drawn from the whole catalogue and observed items are rejected. Where rejection would be slow, and after a
fixed number of tries, a rank among the unobserved items is drawn instead, so that no loop is unbounded. Each example
has its own random stream: the draws do not depend on the number of threads.
"""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.compiling import entry_point, in_parts, kernel, prefetch
from bayesneg.kernels.numba.observed import Observed, ObservedRow, in_row, observes
from bayesneg.kernels.numba.rng import GOLDEN, below, mixed, stream_of, unit
from bayesneg.kernels.reference.draws import SCARCE, TRIES

AHEAD = 8  # examples: rows lie anywhere in memory and are asked for so long before they are needed


def uniform_candidates(
    users: np.ndarray, observed: Observed, m: int, seed: int, *, threads: int = 1, places: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Unobserved items (B, m) without replacement, −1 where there are fewer, and the number of each row (B,).

    ``places`` (B,) int64 are those of the examples in a larger batch, whose streams they have: processes that share a
    batch draw what one process would, each for its own examples. 0, 1, … unless given.
    """
    users, places = np.ascontiguousarray(users, dtype=np.int32), np.arange(len(users)) if places is None else places
    candidates, sizes = np.empty((len(users), m), dtype=np.int32), np.empty(len(users), dtype=np.int32)

    def fill(first: int, last: int) -> None:
        part = slice(first, last)
        draw_uniform(users[part], places[part], observed, np.uint64(seed), candidates[part], sizes[part])

    in_parts(fill, len(users), m, threads)
    return candidates, sizes


def weighted_items(
    users: np.ndarray,
    observed: Observed,
    mass: np.ndarray,
    row_mass: np.ndarray,
    n_weighted: int,
    guide: np.ndarray,
    seed: int,
    *,
    threads: int = 1,
    places: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """One unobserved item (B, 1) per example, with probability ∝ its weight, and whether there is one (B,).

    ``mass`` (n_items + 1,) are the cumulated weights from 0, ``row_mass`` (n + n_users,) the cumulated weights of each
    user's row from 0, ``n_weighted`` how many items have a weight at all; every observed item has one. ``guide``
    (2^g,) is the item at each 2^g-th part of the whole mass, where the search for an item begins. ``places`` as in
    :func:`uniform_candidates`; ``row_mass`` belongs to the rows of ``observed``.
    """
    users, places = np.ascontiguousarray(users, dtype=np.int32), np.arange(len(users)) if places is None else places
    candidates, sizes = np.empty((len(users), 1), dtype=np.int32), np.empty(len(users), dtype=np.int32)
    guide_shift = np.uint64(65 - len(guide).bit_length())  # leaves the g highest of 64 bits

    def fill(first: int, last: int) -> None:
        part = slice(first, last)
        draw_weighted(
            users[part], places[part], observed, mass, row_mass, n_weighted, guide, guide_shift, np.uint64(seed),
            candidates[part], sizes[part],
        )  # fmt: skip

    in_parts(fill, len(users), 1, threads)
    return candidates, sizes


def looked_up(numbers: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """The values (B, m) of a list (n_items,) float64 at the candidates (B, m); arbitrary where a candidate is −1."""
    found = np.empty(candidates.shape, dtype=np.float64)
    look_up(numbers, candidates, found)
    return found


# ------------------------------------------------------------------------------------------------------- for one user


@kernel
def number_outside(ascending: np.ndarray, start: int, stop: int, rank: int) -> int:
    """The ``rank``-th whole number that is not among ascending[start:stop]."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] - (middle - start) > rank:
            high = middle
        else:
            low = middle + 1
    return rank + low - start


@kernel
def take_all(row: ObservedRow, indices: np.ndarray, n_items: int, b: int, candidates: np.ndarray) -> None:
    """Every unobserved item, ascending, then −1."""
    place, k = row.start, 0
    for item in range(n_items):
        if place < row.stop and indices[place] == item:
            place += 1
        else:
            candidates[b, k] = item
            k += 1
    candidates[b, k:] = -1


@kernel
def take_by_rejection(
    row: ObservedRow,
    indices: np.ndarray,
    bits: np.ndarray,
    n_items: int,
    state: np.uint64,
    b: int,
    candidates: np.ndarray,
) -> bool:
    """Draw from the whole catalogue and reject observed and repeated items; False where tries run out."""
    m = candidates.shape[1]
    k = 0
    for _ in range(TRIES * m):
        state += GOLDEN
        item = below(mixed(state), n_items)
        if observes(row, indices, bits, item):
            continue
        repeated = False
        for earlier in range(k):
            repeated |= candidates[b, earlier] == item
        candidates[b, k] = item
        k += not repeated
        if k == m:
            return True
    return False


@kernel
def take_by_rank(
    row: ObservedRow,
    indices: np.ndarray,
    n_items: int,
    state: np.uint64,
    b: int,
    candidates: np.ndarray,
    ranks: np.ndarray,
) -> None:
    """Ranks among the unobserved items without replacement, then the item at each; ``ranks`` (m,) is room for them."""
    n = n_items - (row.stop - row.start)
    for k in range(candidates.shape[1]):
        state += GOLDEN
        rank = number_outside(ranks, 0, k, below(mixed(state), n - k))
        place = k
        while place > 0 and ranks[place - 1] > rank:  # kept ascending
            ranks[place] = ranks[place - 1]
            place -= 1
        ranks[place] = rank
        candidates[b, k] = number_outside(indices, row.start, row.stop, rank)


@kernel
def weighted_by_rejection(
    row: ObservedRow,
    indices: np.ndarray,
    bits: np.ndarray,
    mass: np.ndarray,
    guide: np.ndarray,
    guide_shift: np.uint64,
    state: np.uint64,
) -> int:
    """An item ∝ its weight, drawn again while it is observed; −1 where tries run out."""
    for _ in range(TRIES):
        state += GOLDEN
        number = mixed(state)
        target = unit(number) * mass[-1]
        item = int(np.int64(guide[number >> guide_shift]))
        while mass[item + 1] <= target:  # ends, since the target is below the whole mass
            item += 1
        if not observes(row, indices, bits, item):
            return item
    return -1


@kernel
def weighted_by_inversion(
    row: ObservedRow, indices: np.ndarray, mass: np.ndarray, row_mass: np.ndarray, offset: int, state: np.uint64
) -> int:
    """An item ∝ its weight among those outside the row, whose mass begins at row_mass[row.start + offset]."""
    target = unit(mixed(state + GOLDEN)) * (mass[-1] - row_mass[row.stop + offset])
    low, high = row.start, row.stop  # the observed items before ``low`` lie before the target
    while low < high:
        middle = (low + high) // 2
        if mass[indices[middle]] - row_mass[middle + offset] > target:
            high = middle
        else:
            low = middle + 1
    n_items = len(mass) - 1
    item = np.searchsorted(mass, target + row_mass[low + offset], side="right") - 1
    for step in range(n_items):  # rounding may hit a neighbour that has no weight or is observed
        place = (item + step) % n_items
        if mass[place + 1] > mass[place] and not in_row(row, indices, place):
            return place
    return -1


# ------------------------------------------------------------------------------------------------------ entry points


@entry_point
def draw_uniform(users, places, observed, seed, candidates, sizes):  # type: ignore[no-untyped-def]
    """The examples at some ``places`` of a batch."""
    indptr, indices, n_items, bits, shifts = observed  # a tuple of arrays would be counted at every use
    m = candidates.shape[1]
    ranks = np.empty(m, dtype=np.int64)
    for b in range(len(users)):
        later = users[min(b + 2 * AHEAD, len(users) - 1)]
        prefetch(indptr, later)
        prefetch(shifts, later)
        prefetch(bits, 2 * indptr[users[min(b + AHEAD, len(users) - 1)]])
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
def draw_weighted(  # type: ignore[no-untyped-def]
    users, places, observed, mass, row_mass, n_weighted, guide, guide_shift, seed, candidates, sizes
):
    """The examples at some ``places`` of a batch."""
    indptr, indices, _, bits, shifts = observed
    for b in range(len(users)):
        later = users[min(b + 2 * AHEAD, len(users) - 1)]
        prefetch(indptr, later)
        prefetch(shifts, later)
        prefetch(bits, 2 * indptr[users[min(b + AHEAD, len(users) - 1)]])
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


@entry_point
def look_up(numbers, candidates, found):  # type: ignore[no-untyped-def]
    for b in range(len(candidates)):
        for k in range(candidates.shape[1]):
            found[b, k] = numbers[np.uint32(max(candidates[b, k], 0))]
