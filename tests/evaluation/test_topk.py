"""The compiled ranking against sorting and comparing everything, on lines that take each of its ways."""

from __future__ import annotations

import numpy as np
import pytest

from bayesneg.evaluation import _auc, _topk
from bayesneg.evaluation._auc import count_ordered_pairs
from bayesneg.evaluation._topk import top_k


def plain(rng, n):
    return rng.normal(size=n)


def tied(rng, n):
    return rng.integers(0, 5, size=n) / 4


def nearly_tied(rng, n):
    return 1e6 + rng.integers(0, 40, size=n) / 16


def with_outliers(rng, n):
    return np.where(rng.random(n) < 0.01, 1e30, rng.normal(size=n))


def with_infinities(rng, n):
    return rng.choice([np.nan, -np.inf, np.inf, 0.0, 1.0, 2.0], size=n, p=[0.2, 0.2, 0.05, 0.2, 0.2, 0.15])


def mostly_nothing(rng, n):
    return np.where(rng.random(n) < 0.02, rng.normal(size=n), np.nan)


def huge(rng, n):
    return rng.normal(size=n) * 3e38


def constant(rng, n):
    return np.zeros(n)


LINES = [plain, tied, nearly_tied, with_outliers, with_infinities, mostly_nothing, huge, constant]
SIZES = [1, 2, 31, 32, 33, 255, 256, 257, 1000, 5000, 40_000]


def world(make, n_items, n_users=6):
    """Scores, and CSR rows of masked and of test items, some of which are the same."""
    rng = np.random.default_rng(n_items)
    with np.errstate(over="ignore"):
        scores = np.stack([make(rng, n_items) for _ in range(n_users)]).astype(np.float32)
    shares = rng.choice([0.0, 0.05, 0.3], size=n_users)
    masked = [np.flatnonzero(rng.random(n_items) < share) for share in shares]
    sizes = rng.choice([1, 3, 40, 300], size=n_users)
    tests = [np.sort(rng.choice(n_items, size=min(size, n_items), replace=False)) for size in sizes]
    return scores, masked, tests


def rows(lists):
    """Read-only as those of ``Interactions``, whose kernels are compiled already."""
    indptr = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    indices = np.concatenate(lists).astype(np.int32)
    indptr.flags.writeable = indices.flags.writeable = False
    return indptr, indices


def cleaned(line):
    return np.where(np.isnan(line), -np.inf, line)


def sorted_head(line, masked, k):
    order = np.lexsort((np.arange(len(line)), -cleaned(line)))
    kept = order[~np.isin(order, masked)][:k]
    return [*kept.tolist(), *[-1] * (k - len(kept))]


def pairs_won(line, masked, tests):
    negatives = np.delete(cleaned(line), np.union1d(masked, tests))
    won = sum((negatives < test).sum() + 0.5 * (negatives == test).sum() for test in cleaned(line)[tests])
    return float(won), len(negatives)


@pytest.mark.parametrize("n_items", SIZES)
@pytest.mark.parametrize("make", LINES)
def test_lists_and_pairs_are_those_of_sorting_and_comparing_everything(make, n_items):
    scores, masked, tests = world(make, n_items)
    users = np.arange(len(scores))
    for k in sorted({1, min(20, n_items), min(600, n_items)}):
        items = top_k(scores, users, *rows(masked), k)
        for user in users:
            assert items[user].tolist() == sorted_head(scores[user], masked[user], k)
    ordered, n_negatives = count_ordered_pairs(scores, users, *rows(masked), *rows(tests))
    for user in users:
        assert (ordered[user], n_negatives[user]) == pairs_won(scores[user], masked[user], tests[user])


def test_users_are_looked_up_by_number():
    scores, masked, tests = world(plain, 700)
    users = np.array([4, 1])
    items = top_k(scores[users], users, *rows(masked), 10)
    assert np.array_equal(items, top_k(scores, np.arange(6), *rows(masked), 10)[users])
    some = count_ordered_pairs(scores[users], users, *rows(masked), *rows(tests))
    whole = count_ordered_pairs(scores, np.arange(6), *rows(masked), *rows(tests))
    assert np.array_equal(some, np.array(whole)[:, users])


def test_few_more_than_k_items_of_an_ordinary_line_are_sorted():
    """Odd lines, where all are, are tested above; here, that they stay the exception."""
    line = np.random.default_rng(0).normal(size=3700).astype(np.float32)
    lanes = np.empty(64, dtype=np.float32)
    _topk._find_maxima(line, lanes)
    assert 20 <= (line >= _topk._threshold(lanes, 20)).sum() < 60


def test_few_negatives_of_an_ordinary_line_are_compared_with_the_test_items():
    line = np.random.default_rng(0).normal(size=3700).astype(np.float32)
    line[:40] = np.nan
    bins, undecided = np.empty(len(line), dtype=np.int32), np.full(len(line) + 1, np.nan, dtype=np.float32)
    _auc._count_twice(line, np.linspace(-2, 2, 40, dtype=np.float32), bins, undecided)
    assert 40 <= np.isfinite(undecided).sum() < len(line) // 4
