"""A keyed order is a permutation, its inverse undoes it, and it is as random as a shuffle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bayesneg.distributed.sharding.order import KeyedOrder, order_of
from bayesneg.kernels.numba.distributed.ordering import pairs_at, places_of
from bayesneg.kernels.reference import ordering
from bayesneg.seeding import stream


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 17, 64, 65, 1000])
@pytest.mark.parametrize("key", [0, 7, 2**64 - 1])
def test_the_compiled_order_is_the_specification_and_a_permutation(n, key):
    found = pairs_at(np.arange(n), n, key)
    assert found.tolist() == [ordering.pair_at(place, n, key) for place in range(n)]
    assert sorted(found.tolist()) == [*range(n)]
    places = places_of(0, n, n, key)
    assert places.tolist() == [ordering.place_of(pair, n, key) for pair in range(n)]
    assert found[places].tolist() == [*range(n)]


def test_threads_and_large_numbers_change_nothing():
    n, key = 10_000_000_019, 5
    some = np.random.default_rng(0).integers(0, n, 20_000)
    found = pairs_at(some, n, key, threads=3)
    assert np.array_equal(found, pairs_at(some, n, key))
    assert found[:20].tolist() == [ordering.pair_at(place, n, key) for place in some[:20].tolist()]
    assert found.min() >= 0
    assert found.max() < n
    first = int(found[0])
    assert places_of(first, first + 1, n, key).tolist() == [int(some[0])]


def test_every_pair_is_at_every_place_as_often_and_neighbours_are_independent():
    """Over keys: the place of a pair is uniform, and so are the distances of two pairs that lie side by side."""
    n, keys = 12, range(6000)
    table = np.array([pairs_at(np.arange(n), n, key) for key in keys])
    for place in (0, 5, 11):
        assert stats.chisquare(np.bincount(table[:, place], minlength=n)).pvalue > 1e-4
    for first, second in ((0, 1), (4, 5), (10, 3)):
        together = np.bincount((table[:, first] - table[:, second]) % n, minlength=n)[1:]
        assert stats.chisquare(together).pvalue > 1e-4


def test_a_mini_batch_of_one_order_is_a_random_part_of_the_pairs():
    n, size = 1 << 16, 512
    found = pairs_at(np.arange(n), n, 3).reshape(-1, size)
    halves = (found < n // 2).sum(axis=1)
    spread = halves.std() / np.sqrt(size / 4 * (1 - (size - 1) / (n - 1)))
    assert 0.75 < spread < 1.25
    assert stats.chisquare(np.bincount((found[:, 0] * 16) // n, minlength=16)).pvalue > 1e-4


def test_few_pairs_have_the_order_of_one_process_and_many_a_keyed_one(monkeypatch):
    expected = stream(3, "order", 2).permutation(100)
    assert np.array_equal(order_of(stream(3, "order", 2), 100), expected)
    monkeypatch.setattr("bayesneg.distributed.sharding.order.MOST_HELD", 99)
    keyed = order_of(stream(3, "order", 2), 100)
    assert isinstance(keyed, KeyedOrder)
    assert keyed == order_of(stream(3, "order", 2), 100)
    assert keyed != order_of(stream(3, "order", 3), 100)
    parts = [keyed.places(*bounds) for bounds in ((0, 30), (30, 100))]
    assert all((np.diff(part) > 0).all() for part in parts)
    assert sorted(np.concatenate(parts).tolist()) == [*range(100)]
    assert sorted(keyed.pairs(parts[1]).tolist()) == [*range(30, 100)]
