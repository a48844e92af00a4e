"""The best few of a long line of scores (numba), without sorting the line.

Better is a higher score and, among equal scores, a lower item number; a score that is not a number ranks as −∞.

The line lies in stretches of ``DEEP`` rows of ``LANES`` items, and each column of a stretch is known by its maximum. If
k columns have a maximum of at least c, then k items score at least c, and every item of the top k does: only columns
that reach c are looked into. Finding the maxima and counting them against c are all vector instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesneg.evaluation._lanes import list_reaching
from bayesneg.kernels.numba.compiling import kernel

LANES = 32
DEEP = 8
STRETCH = LANES * DEEP
COLUMNS = 6  # for each item wanted, so many maxima are counted; more are folded
HALVINGS = 24  # of the range in which c is sought; float32 has no more to give
LOWEST = np.float32(-np.inf)


class Desk(NamedTuple):
    """Room to work on one line."""

    x: np.ndarray  # (whole stretches,) float32: the scores of one user, −∞ where masked and beyond the last item
    maxima: np.ndarray  # (n_columns,) float32
    folded: np.ndarray  # (whole lanes,) float32
    lanes: np.ndarray  # (LANES,) float32
    columns: np.ndarray  # (n_columns and some,) int32, those that reach the cut
    values: np.ndarray  # (room for candidates,) float32
    items: np.ndarray  # (room for candidates,) int32
    ranks: np.ndarray  # (LANES,) int32


@kernel
def desk_for(n_items: int, k: int) -> Any:
    n_stretches = -(-n_items // STRETCH)
    n_columns = n_stretches * LANES
    few = (-(-2 * k // LANES) + 2) * LANES
    return Desk(
        np.full(n_stretches * STRETCH, LOWEST, dtype=np.float32),
        np.empty(n_columns, dtype=np.float32),
        np.empty(-(-COLUMNS * k // LANES) * LANES, dtype=np.float32),
        np.empty(LANES, dtype=np.float32),
        np.empty(n_columns + LANES, dtype=np.int32),
        np.empty(few, dtype=np.float32),
        np.empty(few, dtype=np.int32),
        np.empty(LANES, dtype=np.int32),
    )


@kernel
def lay_out(line: np.ndarray, masked: np.ndarray, x: np.ndarray) -> None:
    """Copy one user's scores to ``x``, −∞ in the place of masked items and of what is not a number."""
    for item in range(len(line)):
        x[item] = line[item] if line[item] > LOWEST else LOWEST
    for item in masked:
        x[np.uint32(item)] = LOWEST


@kernel
def select(line: np.ndarray, masked: np.ndarray, desk: Any, items: np.ndarray) -> None:
    """The best unmasked ``items`` (k,) of a line that is laid out, best first, −1 where there are fewer than k."""
    _find_maxima(desk.x, desk.maxima)
    counted = desk.maxima
    if len(desk.maxima) > len(desk.folded):
        _fold(desk.maxima, desk.folded)
        counted = desk.folded
    cut = _cut(counted, desk.lanes, len(items))
    found = _collect(desk, cut) if cut > LOWEST else len(desk.items)
    if found < len(desk.items):
        _put_in_order(desk, found, items)
    else:  # too few scores are finite, or too many equal
        select_by_heap(line, masked, items)


@kernel
def _find_maxima(x: np.ndarray, maxima: np.ndarray) -> None:
    for stretch in range(len(x) // STRETCH):
        p = x[stretch * STRETCH : (stretch + 1) * STRETCH]
        m = maxima[stretch * LANES : (stretch + 1) * LANES]
        for l in range(LANES):  # noqa: E741
            first = _higher(_higher(p[l], p[l + LANES]), _higher(p[l + 2 * LANES], p[l + 3 * LANES]))
            second = _higher(_higher(p[l + 4 * LANES], p[l + 5 * LANES]), _higher(p[l + 6 * LANES], p[l + 7 * LANES]))
            m[l] = _higher(first, second)


@kernel
def _higher(a: Any, b: Any) -> Any:
    return a if a > b else b


@kernel
def _fold(maxima: np.ndarray, folded: np.ndarray) -> None:
    """The maxima of every len(folded)-th column, −∞ where there are fewer columns."""
    folded[:] = LOWEST
    for start in range(0, len(maxima), len(folded)):
        part = maxima[start : start + len(folded)]
        for l in range(len(part)):  # noqa: E741
            folded[l] = _higher(part[l], folded[l])


@kernel
def _cut(maxima: np.ndarray, lanes: np.ndarray, k: int) -> Any:
    """A score that at least k maxima reach, and hardly more; −∞ where none is found."""
    _fold(maxima, lanes)
    low, high = lanes[0], lanes[0]
    for l in range(1, LANES):  # noqa: E741
        low = lanes[l] if lanes[l] < low else low
        high = _higher(lanes[l], high)
    for _ in range(HALVINGS):
        if not _count_reaching(maxima, low) < k:
            break
        low -= high - low
    else:
        return LOWEST
    for _ in range(HALVINGS):
        middle = low + (high - low) * np.float32(0.5)
        count = _count_reaching(maxima, middle)
        if count >= k:
            low = middle
            if count < k + 6:
                break
        else:
            high = middle
    return low


@kernel
def _count_reaching(maxima: np.ndarray, cut: Any) -> Any:
    count = np.int32(0)
    for l in range(len(maxima)):  # noqa: E741
        count += np.int32(maxima[l] >= cut)
    return count


@kernel
def _collect(desk: Any, cut: Any) -> Any:
    """Put every item that reaches the cut on the desk; returns how many, or len(desk.items) if too many."""
    n_columns = list_reaching(desk.maxima, cut, desk.columns)
    found, room = np.uint32(0), np.uint32(len(desk.items) - 1)
    for position in range(n_columns):
        reaching = np.uint32(desk.columns[position])
        item = reaching // np.uint32(LANES) * np.uint32(STRETCH) + reaching % np.uint32(LANES)
        for _ in range(DEEP):
            value = desk.x[item]
            desk.values[found], desk.items[found] = value, item
            found += np.uint32(value >= cut)
            item += np.uint32(LANES)
        if found + np.uint32(DEEP) > room:
            return room + 1
    return found


@kernel
def _put_in_order(desk: Any, n_candidates: int, items: np.ndarray) -> None:
    """Each candidate at its rank, which is how many others are better: no branch depends on a score."""
    for start in range(0, n_candidates, LANES):
        values, candidates = desk.values[start : start + LANES], desk.items[start : start + LANES]
        desk.ranks[:] = 0
        for other in range(n_candidates):
            value, item = desk.values[other], desk.items[other]
            for l in range(LANES):  # noqa: E741
                desk.ranks[l] += np.int32((value > values[l]) | ((value == values[l]) & (item < candidates[l])))
        for l in range(min(LANES, n_candidates - start)):  # noqa: E741
            if desk.ranks[l] < len(items):
                items[desk.ranks[l]] = candidates[l]


@kernel
def select_by_heap(line: np.ndarray, masked: np.ndarray, items: np.ndarray) -> None:
    """The same for any line: masked items, ascending, are stepped over, and a heap holds the best so far."""
    k, n_items = len(items), len(line)
    values = np.empty(k, dtype=np.float32)
    items[:] = -1
    size, start = 0, 0
    for position in range(len(masked) + 1):  # the stretches between masked items
        stop = masked[position] if position < len(masked) else n_items
        while start < stop and size < k:
            _push(values, items, size, _number(line[start]), start)
            size, start = size + 1, start + 1
        for item in range(start, stop):
            if line[item] > values[0]:  # strictly: a later item never displaces an equal one
                values[0], items[0] = line[item], item
                _sift_down(values, items, size)
        start = stop + 1
    for last in range(size - 1, 0, -1):  # the worst goes to the end, again and again: best first
        values[0], values[last] = values[last], values[0]
        items[0], items[last] = items[last], items[0]
        _sift_down(values, items, last)


@kernel
def _number(value: Any) -> Any:
    return LOWEST if np.isnan(value) else value


@kernel
def _push(values: np.ndarray, items: np.ndarray, size: int, value: Any, item: int) -> None:
    """Add to a heap whose root is the worst: the lowest score and, among equals, the highest item number."""
    hole = size
    while hole > 0:
        parent = (hole - 1) // 2
        if values[parent] < value:  # an equal parent has a lower number, as items come in ascending order
            break
        values[hole], items[hole] = values[parent], items[parent]
        hole = parent
    values[hole], items[hole] = value, item


@kernel
def _sift_down(values: np.ndarray, items: np.ndarray, size: int) -> None:
    value, item = values[0], items[0]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        right = child + 1
        if right < size and _worse(values[right], items[right], values[child], items[child]):
            child = right
        if not _worse(values[child], items[child], value, item):
            break
        values[hole], items[hole] = values[child], items[child]
        hole = child
    values[hole], items[hole] = value, item


@kernel
def _worse(value: Any, item: int, other_value: Any, other_item: int) -> bool:
    return bool(value < other_value or (value == other_value and item > other_item))
