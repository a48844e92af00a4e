"""A summary of a list says how many items stand above a score, nearly as the list itself would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesneg.kernels.numba import summaries
from bayesneg.kernels.reference import formulas
from worlds import interactions, random_interactions


def written(x, train, pool, *, over_all=False):
    """Knots (B, K) that the compiled code writes for users of length 1, and the ranks."""
    ranks = summaries.knot_ranks(train.n_items)
    knots = np.full((train.n_users, len(ranks)), np.nan, np.float32)
    vectors = np.eye(train.n_users, dtype=np.float32)
    summaries.summarise(
        x, x.max(axis=1), x.min(axis=1), np.arange(train.n_users, dtype=np.int32), vectors, pool,
        train.indptr, train.indices, over_all, ranks, knots,
    )  # fmt: skip
    return knots, ranks


@pytest.mark.parametrize("n_items", [1, 2, 31, 32, 33, 1682, 10**6])
def test_ranks_go_from_the_first_to_the_last_ever_wider(n_items):
    ranks = summaries.knot_ranks(n_items)
    assert ranks[0] == 1
    assert ranks[-1] == n_items
    assert len(ranks) == min(n_items, len(ranks)) <= summaries.KNOTS
    assert (np.diff(ranks) > 0).all()
    assert (ranks[1:] <= np.maximum(ranks[:-1] + 2, 1.65 * ranks[:-1])).all()


@pytest.mark.parametrize(("n_items", "size"), [(10, 10), (10, 50), (1000, 64), (100_000, 256)])
def test_a_pool_counts_for_the_whole_catalogue(n_items, size):
    order = np.random.default_rng(0).permutation(n_items)
    pool = summaries.thinned(order, size)
    assert pool.items[: min(size, n_items)].tolist() == order[:size].tolist()
    assert len(set(pool.items.tolist())) == len(pool.items) <= size * (1 + np.log2(max(n_items / size, 1)) / 2 + 1)
    assert pool.weights.sum() == pytest.approx(n_items, rel=0.02)
    assert (pool.slots[pool.items] == np.arange(len(pool.items))).all()
    assert (pool.slots >= 0).sum() == len(pool.items)


@pytest.mark.parametrize("over_all", [False, True])
@pytest.mark.parametrize("size", [300, 40])
def test_compiled_knots_are_the_reference_s_to_within_a_bin(over_all, size):
    rng = np.random.default_rng(1)
    train = random_interactions(rng, 20, 300, most=0.4)
    pool = summaries.thinned(rng.permutation(300), size)
    x = rng.gumbel(size=(20, len(pool.items))).astype(np.float32)
    knots, ranks = written(x, train, pool, over_all=over_all)
    for user in range(20):
        weights = pool.weights.copy()
        if not over_all:
            places = pool.slots[train.row(user)]
            weights[places[places >= 0]] = 0
        expected = formulas.summarise(x[user], weights, ranks)
        within = ranks <= weights.sum()
        width = (x[user].max() - x[user].min()) / (summaries.BINS - 1)
        assert np.abs(knots[user, within] - expected[within]).max() <= 1.001 * width
        assert (np.diff(knots[user]) <= 0).all()


@pytest.mark.parametrize("outlier", [50.0, 1e3, -1e3])
def test_one_item_far_from_all_others_does_not_blur_them(outlier):
    rng = np.random.default_rng(2)
    train = interactions([[5], [6]], 2000)
    x = rng.normal(size=(2, 2000)).astype(np.float32)
    x[:, 0] = outlier
    knots, ranks = written(x, train, summaries.thinned(np.arange(2000), 2000))
    for user in range(2):
        expected = formulas.summarise(np.delete(x[user], train.row(user)), np.ones(1999, int), ranks)
        inner = (ranks > 1) & (ranks <= 1000)
        assert np.abs(knots[user, inner] - expected[inner]).max() < 0.05


@pytest.mark.parametrize("value", [0.0, -3.5, np.nan, np.inf])
def test_a_list_without_any_spread_has_one_knot(value):
    train = interactions([[0], [1, 2]], 40)
    x = np.full((2, 40), value, np.float32)
    knots, ranks = written(x, train, summaries.thinned(np.arange(40), 40))
    np.testing.assert_array_equal(knots, np.full((2, len(ranks)), value, np.float32))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=32), st.lists(st.floats(-25, 25, width=32), min_size=1))
def test_compiled_look_up_is_the_reference_s_ties_included(values, scores):
    knots = np.array(sorted(values, reverse=True), np.float32)
    ranks = np.cumsum(np.arange(1, len(knots) + 1))
    for z in np.array([*scores, *values], np.float32):
        assert summaries.items_above(knots, ranks, z) == pytest.approx(formulas.items_above(knots, ranks, z), abs=1e-4)


def test_items_above_is_exact_at_every_knot_of_a_fresh_summary():
    x = np.random.default_rng(0).normal(size=500)
    ranks = summaries.knot_ranks(500)
    knots = formulas.summarise(x, np.ones(500, int), ranks)
    np.testing.assert_allclose(formulas.items_above(knots, ranks, np.sort(x)[::-1][ranks - 1]), ranks - 1)
    off = formulas.items_above(knots, ranks, x) + 1 - (x[None, :] >= x[:, None]).sum(axis=1)
    assert np.abs(off[x > np.median(x)]).max() < 0.02 * 500
    top = x >= np.sort(x)[-20]
    assert np.abs(off[top]).max() <= 1.0


def test_users_are_due_once_an_epoch_and_when_their_vectors_have_moved():
    vectors = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]], np.float32)
    then, made = np.zeros_like(vectors), np.zeros(3, np.int32)

    def due(users, epoch):
        return summaries.due_users(np.array(users, np.int32), epoch, vectors, then, made, 0.1).tolist()

    assert due([1, 0, 1], 1) == [1, 0]
    assert due([0, 1], 1) == []
    vectors[0, 1], vectors[1, 0] = 0.09, 0.21
    assert due([0, 1, 1], 1) == [1]  # 0.09 of 1 is less than a tenth, 0.21 of 2 is more
    assert due([2, 1], 1) == [2]
    assert due([0, 1, 2], 2) == [0, 1, 2]
    np.testing.assert_array_equal(then, vectors)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100, 999, 1000, 2000])
def test_a_pool_of_any_size_counts_for_the_whole_catalogue(size):
    pool = summaries.thinned(np.arange(1000), size)
    assert pool.weights.sum() == 1000
    assert len(set(pool.items.tolist())) == len(pool.items)
