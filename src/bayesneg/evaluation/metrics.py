"""Ranking metrics, one value per user.

A metric of top-k lists takes ``hits`` (U, k), True where the item at that rank is a test item of the user,
and, where the formula needs it, ``n_tests`` (U,), the number of test items of each user, at least 1. A list
shorter than k is padded with False. In the formulas hit_r is 1 at a hit of rank r (from 1) and t is the
number of test items. Most examples are one user with 3 test items, two of them at ranks 1 and 3 of the top 4.
"""

from __future__ import annotations

import numpy as np


def precision(hits: np.ndarray) -> np.ndarray:
    """The share of the top k that are test items: Σ_r hit_r / k.

    >>> float(precision(np.array([[True, False, True, False]]))[0])  # 2 of 4
    0.5
    """
    return hits.sum(axis=1) / hits.shape[1]


def recall(hits: np.ndarray, n_tests: np.ndarray) -> np.ndarray:
    """The share of the test items in the top k: Σ_r hit_r / t.

    >>> round(float(recall(np.array([[True, False, True, False]]), np.array([3]))[0]), 4)  # 2 of 3
    0.6667
    """
    return hits.sum(axis=1) / n_tests


def ndcg(hits: np.ndarray, n_tests: np.ndarray) -> np.ndarray:
    """Normalized discounted cumulative gain: DCG over that of the ideal ranking.

    Σ_r hit_r / log₂(r+1) ÷ Σ_{r ≤ min(k, t)} 1 / log₂(r+1).
    Example: (1 + 0 + 1/2) / (1 + 0.6309 + 0.5) = 1.5 / 2.1309.

    >>> round(float(ndcg(np.array([[True, False, True, False]]), np.array([3]))[0]), 4)
    0.7039
    """
    discounts = 1.0 / np.log2(_ranks(hits) + 1.0)  # (k,)
    ideal = np.cumsum(discounts)
    gains = (hits * discounts).sum(axis=1)  # not a matrix product, whose rounding depends on the block of users
    return gains / ideal[_listable(hits, n_tests) - 1]


def hit(hits: np.ndarray) -> np.ndarray:
    """1 if a test item is in the top k: max_r hit_r; its mean over users is the hit rate.

    >>> float(hit(np.array([[True, False, True, False]]))[0])
    1.0
    """
    return np.any(hits, axis=1).astype(np.float64)


def mrr(hits: np.ndarray) -> np.ndarray:
    """The reciprocal rank of the first hit: 1 / min{r: hit_r = 1}, and 0 without a hit.

    >>> float(mrr(np.array([[False, False, False, True]]))[0])  # rank 4
    0.25
    """
    first = np.argmax(hits, axis=1) + 1  # 1 where there is none, and then divided into 0
    return hit(hits) / first


def average_precision(hits: np.ndarray, n_tests: np.ndarray) -> np.ndarray:
    """Average precision: the precision at each hit over the most hits possible; its mean over users is the MAP.

    Σ_r hit_r · (hits up to r) / r ÷ min(k, t). Example: (1/1 + 2/3) / 3.

    >>> round(float(average_precision(np.array([[True, False, True, False]]), np.array([3]))[0]), 4)
    0.5556
    """
    found, total = np.zeros(len(hits)), np.zeros(len(hits))
    for rank, hit_here in enumerate(hits.T, start=1):  # rank by rank, as the memory is laid out
        found += hit_here
        total += hit_here * (found / rank)
    return total / _listable(hits, n_tests)


def auc(ordered: np.ndarray, n_tests: np.ndarray, n_negatives: np.ndarray) -> np.ndarray:
    """The share of correctly ordered (test item, negative) pairs, ties one half: ordered / (t · n_negatives).

    ``ordered`` (U,) counts these pairs; the AUC of a user without negatives is NaN.
    Example: two test items that score above 9 and 6 of 10 negatives give 15 / 20.

    >>> float(auc(np.array([15.0]), np.array([2]), np.array([10]))[0])
    0.75
    """
    pairs = n_tests * n_negatives
    return np.divide(ordered, pairs, out=np.full(len(ordered), np.nan), where=pairs > 0)


def popularity(items: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The mean number of training interactions, ``counts`` (n_items,), of the recommended ``items`` (U, k).

    −1 pads a ranking that is shorter than k and does not count; an empty ranking gives NaN.
    Example: (7 + 3) / 2.

    >>> float(popularity(np.array([[0, 2, -1]]), np.array([7, 1, 3]))[0])
    5.0
    """
    totals = np.append(counts, 0)[items].sum(axis=1)  # item −1 counts 0
    n_listed = (items >= 0).sum(axis=1)
    return np.divide(totals, n_listed, out=np.full(len(items), np.nan), where=n_listed > 0)


def _ranks(hits: np.ndarray) -> np.ndarray:
    return np.arange(1, hits.shape[1] + 1)


def _listable(hits: np.ndarray, n_tests: np.ndarray) -> np.ndarray:
    """The most hits possible: min(k, t)."""
    return np.minimum(hits.shape[1], n_tests)
