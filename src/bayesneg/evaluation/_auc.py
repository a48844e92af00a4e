"""How many pairs of a test item and a negative are in the right order (numba), without comparing every pair.

Scores become *levels*, whole numbers that never fall as the score rises. A table says for each level how many test
items lie on higher ones, so that a negative costs one look-up. Only negatives on the level of a test item are compared
by score; with some 250 levels between the lowest and the highest test item they are few.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesneg.evaluation._lanes import BLOCK, LEVELS, UNSURE, ZERO, compare_all, sort_out
from bayesneg.kernels.numba.compiling import kernel

TOP = LEVELS - 1  # the level of all that lies above the range; level 0 is for all below
FEW = 4  # test items that are sooner compared with everything
MANY = 120  # test items that share a table; they must be fewer than UNSURE


class Levels(NamedTuple):
    """Room to work on one line."""

    table: np.ndarray  # (LEVELS,) uint8: the test items above a level, UNSURE where one lies on it
    of_tests: np.ndarray  # (MANY,) uint8
    unsure: np.ndarray  # (n_items and some,) float32, the scores on the level of a test item


@kernel
def levels_for(n_items: int) -> Any:
    return Levels(
        np.empty(LEVELS, dtype=np.uint8),
        np.empty(MANY, dtype=np.uint8),
        np.empty(n_items + 8 * BLOCK, dtype=np.float32),
    )


@kernel
def count_wins(x: np.ndarray, tests: np.ndarray, n_negatives: int, levels: Any) -> float:
    """In how many pairs the test item scores higher, a tie counting one half.

    ``x`` (whole blocks,) holds the score of each of the ``n_negatives``, nan for test items and −∞ elsewhere. ``tests``
    (t,) are the scores of the test items, at least one; they change their order.
    """
    if len(tests) > MANY:
        tests.sort()  # each table then covers a short range
    n_hidden = len(x) - n_negatives - len(tests)
    twice = np.int64(0)
    for first in range(0, len(tests), MANY):
        some = tests[first : first + MANY]
        low, high = some.min(), some.max()
        scale = np.float32(TOP - 4) / (high - low)
        shift = np.float32(ZERO + 2) - low * scale
        told_apart = np.float32(0.0) < scale < np.float32(np.inf) and level_of(low, scale, shift) > 0
        if len(some) > FEW and told_apart:
            _set_table(levels, some, scale, shift)
            above, n_unsure = sort_out(x, scale, shift, levels.table, levels.unsure)
            levels.unsure[n_unsure : n_unsure + BLOCK] = np.nan
            # all that is no negative lies on level 0 and was counted as lower than every test item
            twice += 2 * (above - (len(x) - n_negatives) * len(some))
            twice += compare_all(levels.unsure[: -(-n_unsure // BLOCK) * BLOCK], some)
        else:
            twice += compare_all(x, some)
            for test in some:
                twice -= n_hidden * (2 if test > -np.inf else 1)
    return 0.5 * twice


@kernel
def level_of(score: Any, scale: Any, shift: Any) -> Any:
    """Never falls as the score rises, since neither rounding nor cutting does; 0 for nan."""
    level = score * scale + shift
    level = level if level > np.float32(ZERO) else np.float32(ZERO)
    level = level if level < np.float32(ZERO + TOP) else np.float32(ZERO + TOP)
    return np.uint8(np.int32(level) - ZERO)


@kernel
def _set_table(levels: Any, tests: np.ndarray, scale: Any, shift: Any) -> None:
    levels.table[:] = 0
    for test in range(len(tests)):
        level = levels.of_tests[test] = level_of(tests[test], scale, shift)
        levels.table[level] += np.uint8(1)
    above = np.uint8(0)
    for level in range(TOP, -1, -1):
        here = levels.table[level]
        levels.table[level] = above
        above += here
    for test in range(len(tests)):
        levels.table[levels.of_tests[test]] = np.uint8(UNSURE)
