"""How many pairs of a test item and a negative are in the right order (numba), without comparing every pair.

Scores become *levels*, whole numbers that never fall as the score rises. A table says for each level how many test
items lie on higher ones, so that a negative costs one look-up. Only negatives on the level of a test item are compared
by score; with a thousand levels between the lowest and the highest test item they are few.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesneg.kernels.compiling import kernel

LEVELS = 1024
TOP = LEVELS + 3  # the level of all that lies above the range; level 0 is for all below
GROUP = 8  # items looked up together
BITS = 4  # of a number in the table, to count the unsure items of a group with
UNIT = 1 << BITS
WORTH = 16  # comparisons one after the other cost as much as so many side by side
FEW = 4  # test items that are sooner compared with everything


class Levels(NamedTuple):
    """Room to work on one line."""

    of_items: np.ndarray  # (whole groups,) uint16, 0 beyond the last item
    of_tests: np.ndarray  # (room for test items,) uint16
    table: np.ndarray  # (TOP + 1,) int64: 2·UNIT for each test item above, plus 1 where a test item lies
    n_tests: np.ndarray  # (TOP + 1,) int64, 2·UNIT for each test item on the level; zero between lines
    score: np.ndarray  # (TOP + 1,) float32, of the last test item put on a level, nan where none lies
    last: np.ndarray  # (TOP + 1,) int32, that test item, −1 where none lies
    others: np.ndarray  # (TOP + 1,) int32, the test item put there before it, −1 where there is none
    before: np.ndarray  # (room for test items,) int32, the test item put on a level before another one, or −1
    unsure: np.ndarray  # (n_groups + 1,) int32, groups with an item on the level of a test item


@kernel
def levels_for(n_items: int, n_tests: int) -> Any:
    n_groups = -(-n_items // GROUP)
    return Levels(
        np.zeros(n_groups * GROUP, dtype=np.uint16),
        np.empty(n_tests, dtype=np.uint16),
        np.empty(TOP + 1, dtype=np.int64),
        np.zeros(TOP + 1, dtype=np.int64),
        np.full(TOP + 1, np.nan, dtype=np.float32),
        np.full(TOP + 1, -1, dtype=np.int32),
        np.full(TOP + 1, -1, dtype=np.int32),
        np.empty(n_tests, dtype=np.int32),
        np.empty(n_groups + 1, dtype=np.int32),
    )


@kernel
def count_wins(x: np.ndarray, masked: np.ndarray, tests: np.ndarray, n_negatives: int, levels: Any) -> float:
    """In how many pairs the test item scores higher, a tie counting one half.

    ``x`` (n_items,) holds −∞ for ``masked`` items, nan for test items and the score of each of the ``n_negatives``
    others; it is spoiled. ``tests`` (t,) are the scores of the test items, at least one.
    """
    low, high = tests.min(), tests.max()
    scale = np.float32(LEVELS) / (high - low)
    shift = np.float32(1.5) - low * scale
    told_apart = np.float32(0.0) < scale < np.float32(np.inf) and _level(low, scale, shift) > 0
    if len(tests) > FEW and told_apart:
        _set_levels(x, scale, shift, levels.of_items)
        _set_levels(tests, scale, shift, levels.of_tests)
        _set_table(levels, tests)
        twice = _look_up(levels, x, tests)
        _clear_table(levels, len(tests))
        if twice >= 0:  # all that is no negative lies on level 0 and was counted as lower than every test item
            return 0.5 * twice - float(len(levels.of_items) - n_negatives) * len(tests)
    for item in masked:
        x[item] = np.nan
    return 0.5 * _compare_all(x, tests)


@kernel
def _level(score: Any, scale: Any, shift: Any) -> Any:
    """Never falls as the score rises, since neither rounding nor cutting does; 0 for nan."""
    level = score * scale + shift
    level = level if level > np.float32(0.0) else np.float32(0.0)
    level = level if level < np.float32(TOP) else np.float32(TOP)
    return np.uint16(np.int32(level))


@kernel
def _set_levels(scores: np.ndarray, scale: Any, shift: Any, levels: np.ndarray) -> None:
    for position in range(len(scores)):
        levels[position] = _level(scores[position], scale, shift)


@kernel
def _set_table(levels: Any, tests: np.ndarray) -> None:
    for test in range(len(tests)):
        level = levels.of_tests[test]
        levels.n_tests[level] += np.int64(2 * UNIT)
        levels.score[level] = tests[test]
        levels.before[test] = levels.others[level] = levels.last[level]
        levels.last[level] = test
    above = np.int64(0)
    for level in range(TOP, -1, -1):
        levels.table[level] = above
        above += levels.n_tests[level]
    for test in range(len(tests)):
        levels.table[levels.of_tests[test]] |= np.int64(1)


@kernel
def _clear_table(levels: Any, n_tests: int) -> None:
    for test in range(n_tests):
        level = levels.of_tests[test]
        levels.n_tests[level] = 0
        levels.score[level] = np.nan
        levels.last[level] = levels.others[level] = -1


@kernel
def _look_up(levels: Any, x: np.ndarray, tests: np.ndarray) -> Any:
    """Twice the wins over all items, or −1 where comparing every pair is sooner done."""
    table = levels.table
    total, n_unsure = np.int64(0), np.uint32(0)
    n_groups = len(levels.of_items) // GROUP
    for group in range(n_groups):
        p = levels.of_items[group * GROUP : (group + 1) * GROUP]
        found = (table[p[0]] + table[p[1]]) + (table[p[2]] + table[p[3]])
        found += (table[p[4]] + table[p[5]]) + (table[p[6]] + table[p[7]])
        total += found >> BITS
        levels.unsure[n_unsure] = group  # without a branch: it is kept only if the next does not overwrite it
        n_unsure += np.uint32((found & (UNIT - 1)) > 0)
    left = len(x) * len(tests) // WORTH
    for position in range(n_unsure):
        start = levels.unsure[position] * GROUP
        for item in range(start, start + GROUP):
            level, score = levels.of_items[item], x[item]
            total += np.int64(levels.score[level] > score) + np.int64(levels.score[level] >= score)
            test = levels.others[level]
            while test >= 0:
                total += np.int64(tests[test] > score) + np.int64(tests[test] >= score)
                test = levels.before[test]
                left -= 1
        if left < 0:
            return np.int64(-1)
    return total


@kernel
def _compare_all(x: np.ndarray, tests: np.ndarray) -> Any:
    """Twice the wins over all of ``x`` that are numbers, by definition."""
    total = np.int64(0)
    for test in tests:
        count = np.int32(0)
        for item in range(len(x)):
            count += np.int32(x[item] < test) + np.int32(x[item] <= test)
        total += np.int64(count)
    return total
