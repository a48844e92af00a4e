"""Counts of correctly ordered pairs of a test item and a negative, which the AUC is computed from (numba).

Scores are assigned to linear bins. A table has for each bin the number of test items in higher bins, so that a negative
costs one look-up; only negatives in the bin of a test item are compared with each test score.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesneg.evaluation._topk import LOWEST, copy_scores, count_reaching
from bayesneg.kernels.numba.compiling import entry_point, kernel

BINS_PER_TEST = 16
UNDECIDED = -1  # in the table: there is a test item in this bin


@kernel
def _count_twice(negatives: np.ndarray, tests: np.ndarray, bins: np.ndarray, undecided: np.ndarray) -> Any:
    """Twice the pairs in which the test item scores higher, a tie counting one half.

    ``negatives`` (n_items,) are scores, NaN for items that are none; ``bins`` and ``undecided`` (n_items + 1,) are
    work space.
    """
    n_bins = BINS_PER_TEST * len(tests)
    low, high = tests.min(), tests.max()
    scale = np.float32(n_bins - 3) / (high - low)
    if not np.float32(0) < scale < np.float32(np.inf):
        scale = np.float32(np.nan)  # all scores fall into the last bin, and every pair is compared
    shift = np.float32(1) - low * scale
    _assign_bins(tests, scale, shift, n_bins, bins)
    table = _tests_above(bins[: len(tests)], n_bins)
    _assign_bins(negatives, scale, shift, n_bins, bins)
    above, n_undecided = np.int64(0), 0
    for item in range(len(negatives)):
        n_above = table[np.uint32(bins[item])]
        undecided[n_undecided] = negatives[item]
        n_undecided += n_above == UNDECIDED
        above += max(n_above, 0)
    twice = 2 * above
    for score in tests:
        twice += _compare(undecided[:n_undecided], score)
    return twice


@kernel
def _assign_bins(scores: np.ndarray, scale: Any, shift: Any, n_bins: int, bins: np.ndarray) -> None:
    """Linear bins, 0 for all below their range, the last for all above and for NaN."""
    last = np.float32(n_bins - 1)
    for position in range(len(scores)):
        level = scores[position] * scale + shift
        level = level if level < last else last
        bins[position] = np.int32(level if level > np.float32(0) else np.float32(0))


@kernel
def _tests_above(test_bins: np.ndarray, n_bins: int) -> np.ndarray:
    table = np.zeros(n_bins, dtype=np.int32)
    for position in test_bins:
        table[position] += 1
    above = np.int32(0)
    for position in range(n_bins - 1, -1, -1):
        here = table[position]
        table[position] = UNDECIDED if here else above
        above += here
    return table


@kernel
def _compare(scores: np.ndarray, test_score: Any) -> Any:
    """How many ``scores`` are below the test item's, plus how many are not above it."""
    twice = np.int32(0)
    for position in range(len(scores)):
        twice += np.int32(scores[position] < test_score) + np.int32(scores[position] <= test_score)
    return twice


@entry_point
def count_ordered_pairs(
    scores: np.ndarray,  # (B, n_items) float32
    users: np.ndarray,  # (B,) int64
    indptr: np.ndarray,  # (n_users + 1,) of the masked items
    indices: np.ndarray,
    test_indptr: np.ndarray,  # (n_users + 1,) of the test items, at least one for each of these users
    test_indices: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """For each user, the pairs of a test item and a negative in the right order, and the negatives: (B,) each.

    A negative is an item that is neither masked nor in the test. A tie counts one half.
    """
    n_items = scores.shape[1]
    ordered = np.empty(len(users), dtype=np.float64)
    n_negatives = np.empty(len(users), dtype=np.int64)
    negatives, undecided = np.empty(n_items, dtype=np.float32), np.empty(n_items + 1, dtype=np.float32)
    bins = np.empty(n_items, dtype=np.int32)
    nothing = indices[:0]
    for row in range(len(users)):
        user = users[row]
        tests = test_indices[test_indptr[user] : test_indptr[user + 1]]
        test_scores = np.empty(len(tests), dtype=np.float32)
        copy_scores(scores[row][tests], nothing, test_scores)
        copy_scores(scores[row], indices[indptr[user] : indptr[user + 1]], negatives)
        for item in tests:
            negatives[item] = np.nan
        n_negatives[row] = count_reaching(negatives, LOWEST)
        ordered[row] = 0.5 * _count_twice(negatives, test_scores, bins, undecided)
    return ordered, n_negatives
