"""Ranking a block of users over the whole catalogue (numba): their best items, and the pairs in the right order.

Items are ranked by score descending, then by item number ascending; a score that is not a number ranks as −∞. Masked
items are a user's sorted CSR row. The scores are only read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesneg.evaluation._auc import count_wins, levels_for
from bayesneg.evaluation._topk import LOWEST, desk_for, lay_out, select
from bayesneg.kernels.numba.compiling import DIGEST, entry_point, kernel


@kernel
def _mark_tests(line: np.ndarray, masked: np.ndarray, tests: np.ndarray, x: np.ndarray, scores: np.ndarray) -> Any:
    """Put nan in the places of the test items and their ``scores`` aside; returns how many are not masked as well."""
    n_free = len(tests)
    for position in range(len(tests)):
        item = np.uint32(tests[position])
        if x[item] == LOWEST and _holds(masked, item):
            n_free -= 1
        scores[position] = line[item] if line[item] > LOWEST else LOWEST
        x[item] = np.nan
    return n_free


@kernel
def _holds(row: np.ndarray, item: Any) -> bool:
    place = np.searchsorted(row, item)
    return bool(place < len(row) and row[place] == item)


def _entry_points(digest: int) -> tuple[Any, Any]:
    """Compiled functions that close over the digest; see :mod:`bayesneg.kernels.numba.compiling`."""

    @entry_point
    def top_k(
        scores: np.ndarray,  # (B, n_items) float32
        users: np.ndarray,  # (B,) int64
        indptr: np.ndarray,  # (n_users + 1,) of the masked items
        indices: np.ndarray,
        k: int,
    ) -> np.ndarray:
        """The k best unmasked items of each user, best first: (B, k) int32, −1 where a user has fewer than k."""
        items = np.empty((len(users), k + digest * 0), dtype=np.int32)
        desk = desk_for(scores.shape[1], k)
        for row in range(len(users)):
            masked = indices[indptr[users[row]] : indptr[users[row] + 1]]
            lay_out(scores[row], masked, desk.x)
            select(scores[row], masked, desk, items[row])
        return items

    @entry_point
    def judge(
        scores: np.ndarray,  # (B, n_items) float32
        users: np.ndarray,  # (B,) int64
        indptr: np.ndarray,  # (n_users + 1,) of the masked items
        indices: np.ndarray,
        test_indptr: np.ndarray,  # (n_users + 1,) of the test items, at least one for each of these users
        test_indices: np.ndarray,
        k: int,  # 0 if no lists are wanted
        counting: bool,  # whether wins are wanted
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The items of :func:`top_k`, which of them are test items, and what the AUC is made of.

        Returns items (B, k), hits (B, k), wins (B,), the pairs of a test item and a negative, an item neither masked
        nor in the test, in which the test item scores higher, a tie counting one half, and n_negatives (B,).
        """
        n_items = scores.shape[1] + digest * 0
        items = np.empty((len(users), k), dtype=np.int32)
        hits = np.zeros((len(users), k), dtype=np.bool_)
        wins = np.zeros(len(users), dtype=np.float64)
        n_negatives = np.zeros(len(users), dtype=np.int64)
        most_tests = np.max(test_indptr[users + 1] - test_indptr[users])
        test_scores = np.empty(most_tests, dtype=np.float32)
        desk, levels = desk_for(n_items, k), levels_for(n_items)
        for row in range(len(users)):
            user, line, x = users[row], scores[row], desk.x
            masked = indices[indptr[user] : indptr[user + 1]]
            tests = test_indices[test_indptr[user] : test_indptr[user + 1]]
            lay_out(line, masked, x)
            if k > 0:
                select(line, masked, desk, items[row])
            n_free = _mark_tests(line, masked, tests, x, test_scores)
            for rank in range(k):
                hits[row, rank] = items[row, rank] >= 0 and np.isnan(x[items[row, rank]])
            n_negatives[row] = n_items - len(masked) - n_free
            if counting:
                wins[row] = count_wins(x, test_scores[: len(tests)], n_negatives[row], levels)
        return items, hits, wins, n_negatives

    return top_k, judge


top_k, judge = _entry_points(DIGEST)
