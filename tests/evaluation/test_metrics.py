"""Each metric by hand, and against definitions written as loops over ranks."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesneg.evaluation import metrics

#          rank:  1      2      3      4      5
ONE = np.array([[False, True, False, True, True]])
TWO_TESTS_MISSED = np.array([5])  # 5 test items, of which 3 are listed


def test_examples_in_the_docstrings_hold():
    result = doctest.testmod(metrics)
    assert result.attempted >= 8
    assert result.failed == 0


def test_precision_divides_by_k():
    assert metrics.precision(ONE) == pytest.approx(3 / 5)


def test_precision_divides_by_k_even_where_the_list_is_padded():
    assert metrics.precision(np.array([[True, True, False, False]])) == pytest.approx(2 / 4)


def test_recall_divides_by_the_number_of_test_items():
    assert metrics.recall(ONE, TWO_TESTS_MISSED) == pytest.approx(3 / 5)
    assert metrics.recall(ONE, np.array([30])) == pytest.approx(3 / 30)


def test_ndcg_by_hand():
    # 1/log2(3) + 1/log2(5) + 1/log2(6) = 0.630930 + 0.430677 + 0.386853 = 1.448459; ideal of 3 = 2.130930
    assert metrics.ndcg(ONE, np.array([3])) == pytest.approx(1.448459 / 2.130930, abs=1e-6)


def test_ndcg_ideal_has_no_more_than_k_items():
    full = np.array([[True, True]])
    assert metrics.ndcg(full, np.array([100])) == pytest.approx(1.0)


def test_ndcg_ideal_has_no_more_than_the_test_items():
    first = np.array([[True, False, False]])
    assert metrics.ndcg(first, np.array([1])) == pytest.approx(1.0)


def test_mrr_is_the_reciprocal_rank_of_the_first_hit_alone():
    assert metrics.mrr(ONE) == pytest.approx(1 / 2)


def test_average_precision_by_hand():
    # precisions at the hits: 1/2, 2/4, 3/5; over min(5, 4)
    assert metrics.average_precision(ONE, np.array([4])) == pytest.approx((0.5 + 0.5 + 0.6) / 4)


def test_average_precision_of_a_perfect_short_list_is_one():
    assert metrics.average_precision(np.array([[True, True]]), np.array([9])) == pytest.approx(1.0)


def test_every_metric_is_zero_without_a_hit():
    none, tests = np.zeros((1, 3), dtype=bool), np.array([2])
    values = [
        metrics.precision(none),
        metrics.recall(none, tests),
        metrics.ndcg(none, tests),
        metrics.hit(none),
        metrics.mrr(none),
        metrics.average_precision(none, tests),
    ]
    assert np.array_equal(np.ravel(values), np.zeros(6))


def test_auc_is_the_share_of_pairs_won():
    assert metrics.auc(np.array([6.0, 0.5]), np.array([2, 1]), np.array([4, 2])).tolist() == [6 / 8, 0.5 / 2]


def test_auc_is_undefined_without_negatives():
    assert np.isnan(metrics.auc(np.array([0.0, 3.0]), np.array([1, 1]), np.array([0, 3]))).tolist() == [
        True,
        False,
    ]


def test_popularity_of_an_empty_list_is_undefined():
    assert np.isnan(metrics.popularity(np.array([[-1, -1]]), np.array([5, 6])))[0]


def test_popularity_does_not_count_padding():
    assert metrics.popularity(np.array([[1, -1], [0, 1]]), np.array([5, 8])).tolist() == [8.0, 6.5]


@st.composite
def lists(draw):
    k = draw(st.integers(1, 12))
    rows = draw(st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=1, max_size=6))
    n_tests = [draw(st.integers(max(1, sum(row)), 20)) for row in rows]
    return rows, n_tests


@given(lists())
def test_metrics_agree_with_loops_over_ranks(case):
    rows, n_tests = case
    hits, tests = np.array(rows), np.array(n_tests)
    loops = [by_loops(row, t) for row, t in zip(rows, n_tests, strict=True)]
    expected = {name: [loop[name] for loop in loops] for name in loops[0]}
    assert metrics.precision(hits) == pytest.approx(expected["precision"])
    assert metrics.recall(hits, tests) == pytest.approx(expected["recall"])
    assert metrics.ndcg(hits, tests) == pytest.approx(expected["ndcg"])
    assert metrics.hit(hits) == pytest.approx(expected["hit"])
    assert metrics.mrr(hits) == pytest.approx(expected["mrr"])
    assert metrics.average_precision(hits, tests) == pytest.approx(expected["map"])


def by_loops(row: list[bool], n_tests: int) -> dict[str, float]:
    """The metrics of one list, rank by rank, from the ranks of its hits."""
    ranks = [rank for rank, is_hit in enumerate(row, start=1) if is_hit]
    k, best = len(row), min(len(row), n_tests)
    gains = sum(1 / math.log2(1 + rank) for rank in ranks)
    return {
        "precision": len(ranks) / k,
        "recall": len(ranks) / n_tests,
        "ndcg": gains / sum(1 / math.log2(1 + rank) for rank in range(1, best + 1)),
        "hit": 1.0 if ranks else 0.0,
        "mrr": 1 / ranks[0] if ranks else 0.0,
        "map": sum(found / rank for found, rank in enumerate(ranks, start=1)) / best,
    }
