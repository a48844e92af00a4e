"""Intervals and paired differences against scipy.stats and the definition of coverage."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from bayesneg.errors import InputError
from bayesneg.evaluation import statistics
from bayesneg.evaluation.statistics import Estimate, mean_interval, paired_difference

NUMBERS = st.floats(-100, 100, allow_nan=False, width=32)


def test_examples_in_the_docstrings_hold():
    result = doctest.testmod(statistics)
    assert result.attempted >= 4
    assert result.failed == 0


@given(st.lists(NUMBERS, min_size=2, max_size=40), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_interval_agrees_with_scipy(values, level):
    assume(np.std(values) > 1e-6)
    expected = stats.t.interval(level, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert mean_interval(np.array(values), level) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=40))
def test_paired_difference_agrees_with_scipy(pairs):
    a, b = np.array(pairs).T
    assume(np.std(a - b) > 1e-6)
    expected = stats.ttest_rel(a, b)
    interval = expected.confidence_interval(0.9)
    got = paired_difference(a, b, level=0.9)
    assert got.mean == pytest.approx(np.mean(a) - np.mean(b), rel=1e-9, abs=1e-9)
    assert (got.low, got.high) == pytest.approx((interval.low, interval.high), rel=1e-8, abs=1e-8)
    assert got.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert got.n == len(pairs)


def test_interval_holds_the_true_mean_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(3.0, 2.0, size=(4000, 5))
    ends = np.array([mean_interval(values, 0.9) for values in draws])
    held = np.mean((ends[:, 0] < 3.0) & (ends[:, 1] > 3.0))
    assert held == pytest.approx(0.9, abs=4 * math.sqrt(0.09 / 4000))


@pytest.mark.parametrize("values", [[0.3], []])
def test_fewer_than_two_values_have_no_interval(values):
    assert all(math.isnan(end) for end in mean_interval(np.array(values)))


def test_a_single_pair_has_a_difference_but_no_interval():
    difference = paired_difference(np.array([0.5]), np.array([0.25]))
    assert difference.mean == 0.25
    assert all(math.isnan(value) for value in (difference.low, difference.high, difference.p_value))


def test_undefined_values_are_left_out():
    values = np.array([1.0, np.nan, 2.0, 3.0])
    assert mean_interval(values) == mean_interval(np.array([1.0, 2.0, 3.0]))
    assert paired_difference(values, np.zeros(4)).n == 3


def test_no_difference_anywhere_has_p_value_one():
    same = np.array([0.1, 0.2, 0.4])
    assert paired_difference(same, same) == Estimate(0.0, 0.0, 0.0, "users", 3, 1.0)


def test_the_same_difference_everywhere_has_p_value_zero():
    values = np.array([1.0, 2.0, 4.0])
    assert paired_difference(values + 0.5, values) == Estimate(0.5, 0.5, 0.5, "users", 3, 0.0)


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_level_must_lie_between_0_and_1(level):
    with pytest.raises(InputError, match=f"level must lie between 0 and 1, got {level}"):
        mean_interval(np.array([1.0]), level)


def test_a_paired_difference_needs_pairs():
    with pytest.raises(InputError, match="got 2 and 3"):
        paired_difference(np.zeros(2), np.zeros(3))
