"""The compiled ranking against sorting and comparing everything, on lines that take each of its ways."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from bayesneg.evaluation import _auc, _judge, _lanes, _topk


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
SIZES = [1, 2, 31, 32, 33, 255, 256, 257, 1000, 5000, 40_000]  # the last has more columns than are counted


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
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in lists])))
    return indptr.astype(np.int64), np.concatenate(lists).astype(np.int32)


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
def test_lists_hits_and_wins_are_those_of_sorting_and_comparing_everything(make, n_items):
    scores, masked, tests = world(make, n_items)
    users = np.arange(len(scores))
    for k in sorted({1, min(20, n_items), min(600, n_items)}):
        items, hits, wins, n_negatives = _judge.judge(scores, users, *rows(masked), *rows(tests), k, True)
        assert np.array_equal(items, _judge.top_k(scores, users, *rows(masked), k))
        for user in users:
            assert items[user].tolist() == sorted_head(scores[user], masked[user], k)
            assert np.array_equal(hits[user], np.isin(items[user], tests[user]))
            assert (wins[user], n_negatives[user]) == pairs_won(scores[user], masked[user], tests[user])


def test_users_are_looked_up_by_number():
    scores, masked, tests = world(plain, 700)
    users = np.array([4, 1])
    items, hits, wins, _ = _judge.judge(scores[users], users, *rows(masked), *rows(tests), 10, True)
    whole = _judge.judge(scores, np.arange(6), *rows(masked), *rows(tests), 10, True)
    assert np.array_equal(items, whole[0][users])
    assert np.array_equal(hits, whole[1][users])
    assert np.array_equal(wins, whole[2][users])


def test_ordinary_lines_need_neither_the_heap_nor_every_pair():
    """The ways out for odd lines are tested above; here, that they stay ways out."""
    line = np.random.default_rng(0).normal(size=3700).astype(np.float32)
    nothing = np.zeros(0, dtype=np.int32)
    desk = _topk.desk_for(len(line), 20)
    _topk.lay_out(line, nothing, desk.x)
    _topk._find_maxima(desk.x, desk.maxima)
    cut = _topk._cut(desk.maxima, desk.lanes, 20)
    assert 20 <= (line >= cut).sum() < len(desk.items) // 2
    assert _topk._collect(desk, cut) == (line >= cut).sum()
    tests = line[:40].copy()
    padded = np.append(line, np.full(-len(line) % _lanes.BLOCK, -np.inf, dtype=np.float32))
    levels = _auc.levels_for(len(line))
    scale = np.float32(_auc.TOP - 4) / (tests.max() - tests.min())
    shift = np.float32(_lanes.ZERO + 2) - tests.min() * scale
    _auc._set_table(levels, tests, scale, shift)
    above, n_unsure = sorted_out(padded, scale, shift, levels.table, levels.unsure)
    assert 40 <= n_unsure < len(line) // 4
    unsure = levels.unsure[:n_unsure]
    assert np.isin(tests, unsure).all()
    assert above + (unsure[:, None] < tests).sum() == (padded[:, None] < tests).sum()


@njit
def sorted_out(x, scale, shift, table, unsure):
    return _lanes.sort_out(x, scale, shift, table, unsure)


def test_the_table_is_read_alike_with_and_without_permuting_instructions(monkeypatch):
    rng = np.random.default_rng(0)
    x, table = rng.normal(size=640).astype(np.float32), rng.integers(0, 129, size=256).astype(np.uint8)
    scale, shift = np.float32(30.0), np.float32(_lanes.ZERO + 100)
    levels = np.array([_auc.level_of(score, scale, shift) for score in x])
    monkeypatch.setattr(_lanes, "_permuted", _lanes._loaded)
    loading = njit(sorted_out.py_func)
    for read in (sorted_out, loading):
        unsure = np.empty(len(x) + _lanes.LANES, dtype=np.float32)
        total, n_unsure = read(x, scale, shift, table, unsure)
        found = table[levels]
        assert total == found[found < _lanes.UNSURE].sum()
        assert np.array_equal(unsure[:n_unsure], x[found == _lanes.UNSURE])
