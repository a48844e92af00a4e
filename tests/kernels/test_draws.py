"""Draws: the compiled kernels draw what the reference draws, number for number, on random and adversarial rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesneg as bn
from bayesneg.kernels.numba import compiling, draws, observed
from bayesneg.kernels.numba import rng as streams
from bayesneg.kernels.reference import draws as reference_draws
from bayesneg.kernels.reference.draws import numbers_of
from worlds import batch_of, exact_scorer, interactions, random_interactions


@settings(max_examples=200, deadline=None)
@given(st.sets(st.integers(0, 30)), st.integers(0, 40))
def test_number_outside_is_the_rank_th_absent_number(present, rank):
    ascending = np.array(sorted(present), dtype=np.int64)
    absent = [number for number in range(100) if number not in present]
    assert reference_draws.number_outside(ascending, rank) == absent[rank]
    assert draws.number_outside(ascending, 0, len(ascending), rank) == absent[rank]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 10**9), st.integers(1, 2**31 - 1))
def test_compiled_streams_are_the_reference_s(seed, example, n):
    state = streams.stream_of(np.uint64(seed), example)
    for number in islice(numbers_of(seed, example), 3):
        state = np.uint64((int(state) + reference_draws.GOLDEN) % 2**64)
        assert int(streams.mixed(state)) == number
        assert streams.below(np.uint64(number), n) == reference_draws.below(number, n) < n
        assert streams.unit(np.uint64(number)) == reference_draws.unit(number) < 1


def assert_draws_are_the_reference_s(train, users, m, seed):
    candidates, sizes = draws.uniform_candidates(users, train.observed, m, seed)
    assert candidates.dtype == sizes.dtype == np.int32
    for b, user in enumerate(users):
        expected = reference_draws.uniform_candidates(train.row(user), train.n_items, m, numbers_of(seed, b))
        assert candidates[b].tolist() == expected + [-1] * (m - len(expected))
        assert sizes[b] == len(set(expected)) == len(expected) == min(m, train.n_items - len(train.row(user)))
        assert not set(expected) & set(train.row(user).tolist())


@pytest.mark.parametrize("m", [1, 3, 17, 40, 100])
@pytest.mark.parametrize("most", [0.1, 1.0], ids=["sparse", "dense"])
def test_compiled_candidates_are_the_reference_s(m, most):
    train = random_interactions(np.random.default_rng(m), 50, 40, most=most)
    assert_draws_are_the_reference_s(train, np.repeat(np.arange(50), 4), m, 2**64 - m)


@pytest.mark.parametrize("m", [1, 2, 5, 2000])
def test_compiled_candidates_are_the_reference_s_at_the_edges(m):
    """A catalogue of one item; all items chosen, all but one, three quarters; none; a cell of many items."""
    wide = [[7, 900, 1501], [0, 1, 2, 3], list(range(1700)), list(range(1, 1700)), list(range(0, 1700, 2)), [1699], []]
    nearly = [[item for item in range(1700) if item % 4 != rest] for rest in range(4)]
    assert_draws_are_the_reference_s(interactions(wide + nearly, 1700), np.arange(11), m, 5)
    assert_draws_are_the_reference_s(interactions([[0], []], 1), np.array([0, 1]), m, 5)


def test_where_all_tries_are_rejected_the_item_is_drawn_by_rank():
    """Positions of a batch whose first sixteen numbers all hit the observed items, nearly three items of four."""
    train = interactions([list(range(29))], 40)
    assert reference_draws.SCARCE * (11 - 1) >= 40  # so that it is tried at all
    unlucky = []
    for example in range(3000):
        tries = islice(numbers_of(1, example), reference_draws.TRIES)
        if all(reference_draws.below(number, 40) < 29 for number in tries):
            unlucky.append(example)
    assert len(unlucky) > 5
    users = np.zeros(3000, np.int32)
    items = draws.uniform_candidates(users, train.observed, 1, 1)[0][:, 0]
    for example in unlucky:
        expected = reference_draws.uniform_candidates(train.row(0), 40, 1, numbers_of(1, example))
        assert expected == [items[example]]
    assert len(set(items[unlucky].tolist())) > 3


@settings(max_examples=100, deadline=None)
@given(st.sets(st.integers(0, 199), max_size=60), st.sampled_from([1, 7, 200, 5000, 10**6]))
def test_the_bitmap_never_changes_the_answer(present, spread):
    items = np.array(sorted(present), np.int32) * spread
    n_items = 200 * spread
    pairs = observed.observed_pairs(np.array([0, 0, len(items)]), items, n_items)
    asked = np.concatenate([items, items + 1, np.arange(0, n_items, max(1, n_items // 50))])
    for item in asked[asked < n_items]:
        for user, own in ((0, []), (1, items)):
            row = observed.ObservedRow(pairs.indptr[user], pairs.indptr[user + 1], pairs.shifts[user])
            assert observed.observes(row, pairs.indices, pairs.bits, item) == (item in own)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_draw_what_one_draws(threads):
    rng = np.random.default_rng(0)
    train = random_interactions(rng, 200, 60)
    users = rng.integers(0, 200, 7 * compiling.WORTH_A_THREAD)
    tables = bn.PNS().prepare(train, rng=rng).tables
    drawn = [
        (
            *draws.uniform_candidates(users, train.observed, 2, 1, threads=n),
            *draws.weighted_items(users, train.observed, *tables, 1, threads=n),
        )
        for n in (1, threads)
    ]
    for one, many in zip(*drawn, strict=True):
        np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("most", [0.1, 1.0], ids=["sparse", "dense"])
@pytest.mark.parametrize("power", [0.75, 0.0, 3.0])
def test_compiled_weighted_items_are_the_reference_s(power, most):
    rng = np.random.default_rng(0)
    train = random_interactions(rng, 60, 40, most=most)
    ready = bn.PNS(power=power).prepare(train, rng=rng)
    weights = np.where(train.popularity > 0, (train.popularity / train.popularity.max()) ** power, 0.0)
    users = np.repeat(np.arange(60), 50)
    items, sizes = draws.weighted_items(users, train.observed, *ready.tables, 3)
    expected = [reference_draws.weighted_item(train.row(u), weights, numbers_of(3, b)) for b, u in enumerate(users)]
    assert items[:, 0].tolist() == expected
    assert (sizes == (items[:, 0] >= 0)).all()


@pytest.mark.parametrize("rows", [[[0]], [[0, 1], [1, 2, 3]], [[0], [0], [0, 5]], [[0, 1, 2, 3, 4, 5], [2]]])
@pytest.mark.parametrize("power", [1.0, 2000.0])
def test_compiled_weighted_items_are_the_reference_s_at_the_edges(rows, power):
    """One item; weights left only in one place; no weight left for a user; weights too small for a number."""
    train = interactions(rows, 1 + max(map(max, rows)))
    tables = bn.PNS(power=power).prepare(train, rng=np.random.default_rng(0)).tables
    users = np.repeat(np.arange(len(rows)), 100)
    items, sizes = draws.weighted_items(users, train.observed, *tables, 9)
    weights = np.where(train.popularity > 0, (train.popularity / train.popularity.max()) ** power, 0.0)
    expected = [reference_draws.weighted_item(train.row(u), weights, numbers_of(9, b)) for b, u in enumerate(users)]
    assert items[:, 0].tolist() == expected
    assert (sizes == (items[:, 0] >= 0)).all()


@pytest.mark.parametrize("sampler", [bn.RNS(), bn.PNS(), bn.DNS(), bn.BNS(), bn.SRNS()], ids=lambda s: type(s).__name__)
def test_a_batch_says_how_many_threads_may_draw(sampler, monkeypatch):
    rng = np.random.default_rng(0)
    train = random_interactions(rng, 20, 60)
    ready = sampler.prepare(train, rng=rng)
    told = []
    monkeypatch.setattr(draws, "in_parts", lambda fill, n, m, threads: (fill(0, n), told.append(threads)))
    batch = batch_of(train, exact_scorer(rng, 20, 60), rng, size=10)
    ready.draws(batch)
    ready.draws(replace(batch, threads=3))
    assert told == [1, 3]


def test_a_user_without_items_may_be_given_any_item_of_a_small_catalogue():
    """Its bits are the next user's."""
    train = interactions([[], [0, 1, 2, 3, 4, 5]], 12)
    items, _ = draws.uniform_candidates(np.zeros(2000, dtype=np.int32), train.observed, 1, 7)
    assert set(items[:, 0].tolist()) == set(range(12))
