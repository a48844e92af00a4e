"""Splits: exact counts, disjoint parts, no leak of the future, the same parts for the same seed."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import RULES, Split, carve_validation, split
from bayesneg.errors import InputError


def made(users: list[int], items: list[int], times: list[float] | None = None) -> Interactions:
    """Interactions whose dense numbers are the given ones, over 1 + max users and items."""
    return Interactions.from_numbers(
        np.array(users),
        np.array(items),
        user_ids=np.arange(max(users) + 1),
        item_ids=np.arange(max(items) + 1),
        times=times,
    )


def random_data(n: int = 4000, n_users: int = 60, n_items: int = 400, seed: int = 1) -> Interactions:
    rng = np.random.default_rng(seed)
    keys = rng.choice(n_users * n_items, size=n, replace=False)
    times = rng.integers(50, size=n)  # few distinct times, so ties abound
    return Interactions.from_numbers(
        keys // n_items, keys % n_items, user_ids=np.arange(n_users), item_ids=np.arange(n_items), times=times
    )


def pairs(part: Interactions) -> set[tuple[int, int]]:
    return set(zip(part.users.tolist(), part.indices.tolist(), strict=True))


def same(one: Interactions, other: Interactions) -> bool:
    return one.indptr.tobytes() == other.indptr.tobytes() and one.indices.tobytes() == other.indices.tobytes()


@st.composite
def datasets(draw: st.DrawFn) -> Interactions:
    chosen = draw(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=8, max_size=60))
    users, items = zip(*sorted(chosen), strict=True)
    times = draw(st.lists(st.integers(0, 5), min_size=len(users), max_size=len(users)))
    return made(list(users), list(items), times)


@settings(max_examples=60, deadline=None)
@given(datasets(), st.sampled_from(RULES), st.floats(0.2, 0.8), st.integers(0, 5))
def test_the_parts_are_disjoint_and_together_the_data(data, by, share, seed):
    try:
        parts = split(data, test=share, validation=0.4, by=by, seed=seed)
    except InputError as error:
        assert by in ("user", "last"), "only rounding within users may leave a part empty here"
        assert "leaves no" in str(error)  # noqa: PT017
        return
    train, test, validation = pairs(parts.train), pairs(parts.test), pairs(parts.validation)
    assert train | test | validation == pairs(data)
    assert len(train) + len(test) + len(validation) == len(data)


@pytest.mark.parametrize("by", ["interaction", "time"])
def test_a_share_of_everything_is_an_exact_rounded_count(by):
    parts = split(random_data(), test=0.2, validation=0.1, by=by)
    assert (len(parts.train), len(parts.test), len(parts.validation)) == (2880, 800, 320)


def test_a_fifth_of_100_000_interactions_is_20_000():
    parts = split(random_data(n=100_000, n_users=500, n_items=900))
    assert (len(parts.train), len(parts.test), parts.validation) == (80_000, 20_000, None)


@pytest.mark.parametrize("by", ["user", "last"])
def test_a_share_within_users_is_rounded_for_each_user(by):
    data = random_data()
    parts = split(data, test=0.3, by=by)
    np.testing.assert_array_equal(parts.test.counts, np.rint(0.3 * data.counts))


@pytest.mark.parametrize("by", ["interaction", "user"])
def test_random_rules_give_the_same_parts_for_a_seed_and_others_for_another(by):
    data = random_data()
    first, again, other = (split(data, by=by, validation=0.1, seed=seed) for seed in (3, 3, 4))
    assert same(first.train, again.train)
    assert same(first.test, again.test)
    assert same(first.validation, again.validation)
    assert not same(first.test, other.test)
    assert not same(first.validation, other.validation)


@pytest.mark.parametrize("by", ["interaction", "user"])
def test_every_interaction_is_equally_likely_to_be_held_out(by):
    data = made([0] * 10 + [1] * 20, [*range(10), *range(20)])
    times_held = np.zeros(len(data))
    for seed in range(600):
        times_held += split(data, test=0.4, by=by, seed=seed).test.contains(data.users, data.indices)
    z = (times_held - 600 * 0.4) / np.sqrt(600 * 0.4 * 0.6)
    assert np.abs(z).max() < 4


def test_leave_last_out_holds_out_each_users_latest_interaction():
    data = made([0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 3, 1], [9, 5, 7, 1, 2, 4])
    parts = split(data, by="last")
    assert pairs(parts.test) == {(0, 0), (1, 3)}
    assert pairs(split(data, by="last", test=2).test) == {(0, 0), (0, 2), (1, 3)}


def test_a_whole_float_counts_like_the_integer():
    data = random_data()
    assert same(split(data, by="last", test=2.0).test, split(data, by="last", test=2).test)


@pytest.mark.parametrize("by", ["user", "last"])
def test_a_users_only_interaction_stays_in_training(by):
    data = made([0, 1, 1, 1, 1, 2], [0, 0, 1, 2, 3, 1], [1, 2, 3, 4, 5, 6])
    parts = split(data, by=by, test=0.9, validation=0.0)
    assert parts.train.counts.tolist() == [1, 1, 1]
    assert parts.n_test_only_users == 0


@settings(max_examples=60, deadline=None)
@given(datasets(), st.sampled_from([1, 3, 0.5, 0.9]), st.sampled_from(["user", "last"]))
def test_no_user_loses_all_training_interactions(data, test, by):
    test = 0.7 if by == "user" else test
    try:
        parts = split(data, test=test, validation=0.6, by=by)
    except InputError:
        return
    assert (parts.train.counts[data.counts > 0] > 0).all()


@pytest.mark.parametrize("times", [None, "float", "datetime"])
def test_time_splits_never_leak_the_future(times):
    data = random_data()
    if times is not None:
        kind = np.float64 if times == "float" else "datetime64[ms]"
        data = made(data.users.tolist(), data.indices.tolist(), data.times.astype(kind))
    parts = split(data, by="time", test=0.25, validation=0.25)
    assert parts.train.times.max() <= parts.validation.times.min()
    assert parts.validation.times.max() <= parts.test.times.min()


def test_leave_last_out_never_leaks_a_users_future():
    parts = split(random_data(), by="last", test=3, validation=2)
    for user in range(parts.train.n_users):
        train, validation, test = (
            part.times[part.users == user] for part in (parts.train, parts.validation, parts.test)
        )
        assert (len(validation), len(test)) == (2, 3)
        assert train.max() <= validation.min()
        assert validation.max() <= test.min()


def test_equal_times_are_ordered_by_item_number():
    data = made([0, 0, 0, 1, 1, 1], [0, 1, 5, 2, 3, 4], [7] * 6)
    assert pairs(split(data, by="last").test) == {(0, 5), (1, 4)}
    assert pairs(split(data, by="time", test=0.5).test) == {(0, 5), (1, 4), (1, 3)}


@pytest.mark.parametrize("by", RULES)
def test_validation_is_carved_from_training_only(by):
    data = random_data()
    without, with_it = split(data, by=by, seed=5), split(data, by=by, seed=5, validation=0.2)
    assert same(without.test, with_it.test)
    assert pairs(with_it.validation) <= pairs(without.train)
    assert pairs(with_it.seen) == pairs(without.train)
    assert pairs(with_it.held_out) == pairs(with_it.test) | pairs(with_it.validation)


def test_validation_of_a_given_split_leaves_its_test_part_alone():
    data = random_data()
    given_parts = Split(data.select(data.indices < 300), data.select(data.indices >= 300))
    carved = carve_validation(given_parts, 0.1, seed=2)
    assert carved.test is given_parts.test
    assert len(carved.validation) == round(0.1 * len(given_parts.train))
    assert carved.how == "given; by=interaction validation=0.1 seed=2"


def test_validation_has_a_seed():
    parts = split(random_data(), seed=0)
    first, again, other = (carve_validation(parts, 0.1, seed=seed).validation for seed in (1, 1, 2))
    assert same(first, again)
    assert not same(first, other)


def test_a_second_validation_part_is_refused():
    with pytest.raises(InputError, match=r"no validation part yet, got one of 320"):
        carve_validation(split(random_data(), validation=0.1), 0.1)


def test_how_it_was_made_is_recorded():
    data = random_data()
    assert split(data, seed=7).how == "by=interaction test=0.2 seed=7"
    assert split(data, validation=0.1, by="user").how == "by=user test=0.2 seed=0 validation=0.1"
    assert split(data, by="last").how == "by=last test=1"


def test_users_and_items_that_occur_only_in_test_are_counted():
    data = made([0, 0, 1, 2], [0, 1, 2, 1])
    parts = Split(data.select(data.users == 0), data.select(data.users > 0))
    assert (parts.n_test_only_users, parts.n_test_only_items) == (2, 1)


def test_overlapping_parts_are_refused_by_name():
    data = made([0, 0, 1], [0, 1, 1])
    with pytest.raises(InputError, match=r"train and test must not overlap, but share 2 pairs.*user .*0"):
        Split(data, data.select(data.users == 0))
    with pytest.raises(InputError, match=r"test and validation must not overlap, but share 1 pairs"):
        Split(data.select(data.users == 0), data.select(data.users == 1), data.select(data.users == 1))


def test_parts_of_different_datasets_are_refused():
    with pytest.raises(InputError, match="train and test must be parts of one dataset"):
        Split(made([0, 1], [0, 1]), made([0, 1], [1, 0]))


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan"), True, "0.2"])
def test_a_test_share_outside_zero_and_one_is_refused(share):
    with pytest.raises(InputError, match=r"test must be a share strictly between 0 and 1, got "):
        split(random_data(), test=share)


@pytest.mark.parametrize("count", [0, -1, 1.5, float("inf"), False])
def test_leave_last_out_takes_only_shares_and_whole_counts(count):
    with pytest.raises(InputError, match=r"test must be a share .* a count of 1, 2, … is also allowed"):
        split(random_data(), test=count, by="last")


@pytest.mark.parametrize("share", [-0.1, 1, None, "0.1", float("nan")])
def test_a_wrong_validation_share_is_refused_by_name(share):
    with pytest.raises(InputError, match=r"validation must be a share"):
        split(random_data(), validation=share)


def test_an_unknown_rule_lists_the_known_ones():
    with pytest.raises(InputError, match=r"by must be one of interaction, user, last, time, got 'item'"):
        split(random_data(), by="item")


@pytest.mark.parametrize("by", ["last", "time"])
def test_time_rules_need_times(by):
    with pytest.raises(InputError, match=r"needs a time .* 2 of 2 in data have none; read it with a time"):
        split(made([0, 0], [0, 1]), by=by)
    with pytest.raises(InputError, match=r"1 of 2 in data have none"):
        split(made([0, 0], [0, 1], [1.0, float("nan")]), by=by)


@pytest.mark.parametrize("by", ["interaction", "time"])
def test_an_empty_part_is_refused_with_the_way_out(by):
    data = made([0, 0], [0, 1], [1, 2])
    with pytest.raises(InputError, match=r"test=0.2 leaves no test interactions out of 2; give test=0.3"):
        split(data, test=0.2, by=by)
    with pytest.raises(InputError, match=r"test=0.8 leaves no training interactions out of 2; give test=0.7"):
        split(data, test=0.8, by=by)


def test_an_empty_validation_part_is_refused():
    with pytest.raises(InputError, match=r"validation=0.01 leaves no validation interactions"):
        split(made([0] * 10, list(range(10))), validation=0.01)


def per_user(*counts: int) -> Interactions:
    users = [user for user, count in enumerate(counts) for _ in range(count)]
    items = [item for count in counts for item in range(count)]
    return made(users, items, list(range(len(users))))


FEW = {"one": (1,) * 6, "two": (2,) * 6, "three": (3,) * 6, "mixed": (1, 2, 3, 1, 2, 3), "one or two": (1, 2) * 3}


@pytest.mark.parametrize("by", ["user", "last"])
@pytest.mark.parametrize("counts", FEW.values(), ids=FEW)
@pytest.mark.parametrize("asked", [{}, {"test": 0.4}, {"test": 0.05}, {"validation": 0.05}])
def test_what_an_error_about_an_empty_part_proposes_works(by, counts, asked):
    data, asked = per_user(*counts), {"by": by, "validation": 0.1, **asked}
    with pytest.raises(InputError, match="leaves no") as caught:
        split(data, **asked)
    ways = str(caught.value).removesuffix(", or give more data").split("; ")[-1].split(", or ")
    for way in ways:
        proposed = {name: float(value) for name, value in re.findall(r"(test|validation)=([\d.]+)", way)}
        if "by interaction" in way:
            proposed["by"] = "interaction"
        parts = split(data, **{**asked, **proposed})
        assert len(parts.train)
        assert len(parts.test)
        if "holds out" in way:
            name = next(iter(proposed))
            assert f"holds out {len(getattr(parts, name))}" in way
    assert ("by interaction" in str(caught.value)) == (max(counts) < 3), "only then no share leaves three parts"


@pytest.mark.parametrize("by", RULES)
def test_global_random_state_is_untouched(by):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    split(random_data(), by=by, validation=0.1)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.int32])
def test_of_equal_times_within_a_user_the_higher_item_is_the_later(kind):
    times = np.array([-3, 0, 0, 2, 2, 7], dtype=kind)
    if kind is np.float64:
        times[1] = -0.0
    rng = np.random.default_rng(2)
    data = random_data(3000)
    data = replace(data, times=rng.choice(times, len(data)))
    newest = np.lexsort((data.indices, data.times, data.users))
    last = newest[np.append(np.diff(data.users[newest]) > 0, True)]
    assert split(data, by="last").test.indices.tolist() == data.indices[last].tolist()
