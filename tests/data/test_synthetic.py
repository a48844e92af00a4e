"""Generated worlds: the truth is the truth of what was observed, and the default world is like ML-100K."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import RULES, split
from bayesneg.data.synthetic import SyntheticWorld, _allocated, synthetic
from bayesneg.errors import InputError


@pytest.fixture(scope="module")
def data() -> Interactions:
    return synthetic()


@pytest.fixture(scope="module")
def world(data: Interactions) -> SyntheticWorld:
    assert isinstance(data.truth, SyntheticWorld)
    return data.truth


@pytest.fixture(scope="module")
def liked(world: SyntheticWorld) -> np.ndarray:
    """The whole truth of the default world, (n_users, n_items): small enough to look at."""
    return world.likes(np.arange(world.n_users)[:, None], np.arange(world.n_items))


@pytest.fixture(scope="module")
def chances(world: SyntheticWorld) -> np.ndarray:
    return world.preference(np.arange(world.n_users)[:, None], np.arange(world.n_items))


def gini(counts: np.ndarray) -> float:
    ascending, n = np.sort(counts), len(counts)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ascending / (n * ascending.sum()))


def unobserved(data: Interactions) -> np.ndarray:
    mask = np.ones((data.n_users, data.n_items), dtype=bool)
    mask[data.users, data.indices] = False
    return mask


def test_the_default_world_has_the_size_of_ml_100k(data):
    assert (data.n_users, data.n_items, len(data), data.n_duplicates) == (943, 1682, 100_000, 0)
    assert (data.name, data.user_ids[17], data.item_ids[42]) == ("synthetic", "u17", "i42")


def test_every_observed_pair_is_liked_in_truth(data, world):
    assert world.likes(data.users, data.indices).all()


def test_likes_have_the_frequency_of_the_preference(liked, chances):
    """In each tenth of the preferences the number of likes is within 4 standard deviations of its mean."""
    edges = np.quantile(chances, np.linspace(0, 1, 11)[1:-1])
    tenth = np.digitize(chances, edges).ravel()
    expected = np.bincount(tenth, weights=chances.ravel())
    variance = np.bincount(tenth, weights=(chances * (1 - chances)).ravel())
    z = (np.bincount(tenth, weights=liked.ravel()) - expected) / np.sqrt(variance)
    assert np.abs(z).max() < 4


def test_likes_of_neighbouring_pairs_are_independent(liked, chances):
    """The surprises (like − preference) of adjacent users and adjacent items do not move together."""
    surprise = (liked - chances) / np.sqrt(chances * (1 - chances) + 1e-3)
    for one, other in ((surprise[1:], surprise[:-1]), (surprise[:, 1:], surprise[:, :-1])):
        correlation = np.mean(one * other) / np.mean(surprise**2)
        assert abs(correlation) < 4 / np.sqrt(one.size)


def test_preference_is_the_logistic_of_offsets_and_vectors(world):
    users, items = np.array([0, 5, 942]), np.array([3, 1681, 7])
    logits = np.einsum("nf,nf->n", world.user_vectors[users].astype(float), world.item_vectors[items])
    logits = logits + world.user_offsets[users] + world.item_offsets[items]
    np.testing.assert_allclose(world.preference(users, items), 1 / (1 + np.exp(-logits)), rtol=1e-9)


def test_likes_and_preference_broadcast(world, liked, chances):
    users, items = np.array([[4], [9]]), np.array([1, 2, 3])
    np.testing.assert_array_equal(world.likes(users, items), liked[[4, 9], 1:4])
    np.testing.assert_array_equal(world.preference(users, 2), chances[[4, 9], 2:3])
    assert world.likes(np.array([], dtype=int), np.array([], dtype=int)).shape == (0,)
    assert world.likes(3, 4).shape == ()


@pytest.mark.parametrize(("user", "item", "noun"), [(943, 0, "users"), (0, 1682, "items"), (-1, 0, "users")])
def test_users_and_items_out_of_range_are_refused(world, user, item, noun):
    with pytest.raises(InputError, match=f"{noun} must be numbers from 0 to"):
        world.likes(np.array([0, user]), np.array([0, item]))


def test_the_mean_preference_is_the_liked_share(chances):
    assert chances.mean() == pytest.approx(0.11, rel=0.02)


def test_a_fair_number_of_unobserved_items_is_liked(data, liked):
    assert 0.03 < liked[unobserved(data)].mean() < 0.10


def test_false_negatives_sit_where_preference_is_high(data, liked, chances):
    """Among each user's 50 unobserved items of highest preference most are false negatives."""
    hidden = np.where(unobserved(data), chances, -1.0)
    top = np.argsort(-hidden, axis=1)[:, :50]
    assert np.take_along_axis(liked, top, axis=1).mean() > 8 * liked[unobserved(data)].mean()


def test_popularity_is_as_skewed_as_in_ml_100k(data):
    """ML-100K: Gini 0.63, and the top tenth of the items has 43% of the interactions."""
    popularity = np.sort(data.popularity)[::-1]
    assert gini(popularity) == pytest.approx(0.63, abs=0.04)
    assert popularity[:168].sum() / len(data) == pytest.approx(0.43, abs=0.04)


def test_activity_is_as_skewed_as_in_ml_100k(data):
    """ML-100K: at least 20 interactions, median 65, ninth decile 244."""
    least, median, ninth = np.quantile(data.counts, [0, 0.5, 0.9])
    assert least >= 15
    assert median == pytest.approx(65, abs=10)
    assert ninth == pytest.approx(244, abs=40)


def test_exposure_is_heavy_tailed_and_goes_partly_with_quality(world):
    assert world.exposure.sum() == pytest.approx(1)
    assert np.sort(world.exposure)[::-1][:168].sum() > 0.4
    correlation = np.corrcoef(np.log(world.exposure), world.item_offsets)[0, 1]
    assert correlation == pytest.approx(0.7, abs=0.06)


def test_without_skew_every_item_is_exposed_alike():
    flat = synthetic(60, 90, exposure_skew=0.0).truth
    np.testing.assert_allclose(flat.exposure, 1 / 90)


def test_preferences_of_a_group_predict_those_of_a_member(data, world, chances):
    """Centred preferences agree within groups, and do not once groups carry no taste."""
    assert within_group_agreement(world, chances) > 0.2
    free = synthetic(300, 400, group_share=0.0).truth
    everything = free.preference(np.arange(300)[:, None], np.arange(400))
    assert abs(within_group_agreement(free, everything)) < 0.02
    assert data.user_columns["group"].tolist() == [f"g{group}" for group in world.groups]


def within_group_agreement(world: SyntheticWorld, chances: np.ndarray) -> float:
    """Mean correlation over items of two different members of a group, less that of any two users."""
    centred = chances - chances.mean(axis=1, keepdims=True)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    agreement = centred @ centred.T
    two = ~np.eye(len(agreement), dtype=bool)
    same = (world.groups[:, None] == world.groups) & two
    return float(agreement[same].mean() - agreement[two & ~same].mean())


def test_the_group_number_has_its_bounds():
    assert set(synthetic(100, 90, n_groups=3).user_columns["group"]) == {"g0", "g1", "g2"}


def test_the_world_can_be_learnt_beyond_popularity(data, world):
    """The true chance to be observed ranks held-out items far better than popularity, and that than chance."""
    parts = split(data, seed=0)
    chances = world.preference(np.arange(943)[:, None], np.arange(1682)) * world.exposure
    popular = np.broadcast_to(parts.train.popularity + 0.0, chances.shape)
    blind = np.random.default_rng(0).random(chances.shape)
    best, popularity, chance = (precision_at_20(scores, parts) for scores in (chances, popular, blind))
    assert best > 1.8 * popularity
    assert popularity > 5 * chance


def precision_at_20(scores: np.ndarray, parts) -> float:
    allowed = scores.copy()
    allowed[parts.train.users, parts.train.indices] = -1.0
    top = np.argsort(-allowed, axis=1, kind="stable")[:, :20]
    return float(parts.test.contains(np.arange(len(top))[:, None], top).mean())


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_world():
    first, again, other = (synthetic(80, 120, seed=seed) for seed in (4, 4, 5))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.times.tobytes() == again.times.tobytes()
    everyone, everything = np.arange(80)[:, None], np.arange(120)
    tosses = [made.truth.likes(everyone, everything).tobytes() for made in (first, again, other)]
    assert tosses[0] == tosses[1] != tosses[2]


def test_global_random_state_is_untouched():
    before, plain = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    synthetic(40, 60).truth.likes(0, np.arange(60))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert random.getstate() == plain


def test_nothing_users_by_items_is_held_in_memory():
    """20,000 × 20,000 pairs would take 400 MB as bytes; what NumPy holds at any time stays below 60 MB."""
    tracemalloc.start()
    try:
        large = synthetic(20_000, 20_000, n_interactions=400_000)
        assert large.truth.likes(np.arange(20_000), np.arange(20_000)).any()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(large) == 400_000
    assert peak < 60e6


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.floats(0.01, 0.99), st.integers(1, 60), st.integers(0, 99))
def test_a_tiny_world_is_exact_or_refused_with_the_way_out(n_users, n_items, share, n, seed):
    try:
        tiny = synthetic(n_users, n_items, n_interactions=n, liked_share=share, seed=seed)
    except InputError as error:
        assert "n_interactions must be at most what users see and like" in str(error)  # noqa: PT017
        return
    assert len(tiny) == n
    assert tiny.truth.likes(tiny.users, tiny.indices).all()


def test_one_user_and_one_item_are_a_world_if_the_user_likes_it():
    assert len(synthetic(1, 1, liked_share=0.999)) == 1


def test_a_world_without_a_given_number_is_as_dense_as_ml_100k_but_no_busier():
    assert len(synthetic(100, 200)) == round(100_000 * 100 * 200 / (943 * 1682))
    assert len(synthetic(50, 5000)) == round(50 * 100_000 / 943)


def test_too_many_interactions_are_refused_with_a_number_in_reach():
    with pytest.raises(InputError, match=r"n_interactions .* about 2,200 here, got 3,000; lower it"):
        synthetic(100, 200, n_interactions=3000)
    with pytest.raises(InputError, match=r"n_interactions .* got 2,200; lower it, or raise liked_share \(0.11\)"):
        synthetic(100, 200, n_interactions=2200)
    assert len(synthetic(100, 200, n_interactions=2200, liked_share=0.3)) == 2200


@pytest.mark.parametrize("name", ["n_users", "n_items", "n_interactions", "n_groups", "dim"])
@pytest.mark.parametrize("value", [0, -3, 2.5, True])
def test_counts_must_be_whole_and_positive(name, value):
    with pytest.raises(InputError, match=f"{name} must be a whole number of at least 1, got {value}"):
        synthetic(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("liked_share", 0.0),
        ("liked_share", 1.0),
        ("liked_share", float("nan")),
        ("group_share", 1.1),
        ("group_share", -0.1),
        ("exposure_skew", 6.0),
        ("exposure_quality", -0.5),
    ],
)
def test_shares_must_lie_within_their_bounds(name, value):
    with pytest.raises(InputError, match=rf"{name} must be (strictly )?between 0 and \d, got {value}"):
        synthetic(**{name: value})


@pytest.mark.parametrize("by", RULES)
def test_every_split_rule_works_on_a_world_and_keeps_its_truth(by, data, world):
    parts = split(data, by=by, validation=0.1)
    assert parts.truth is world
    assert parts.n_test_only_users == 0


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 100), st.integers(0, 50)), min_size=1, max_size=30), st.floats(0.05, 1))
@example([(1.0, 7), (1.0, 2), (1.0, 11)], 0.75)  # halves, where rounding once lost one
def test_an_allocation_adds_up_and_respects_the_room(rows, part):
    weights, room = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    total = int(part * room.sum())
    allocated = _allocated(total, weights, room)
    assert allocated.sum() == total
    assert (allocated >= 0).all()
    assert (allocated <= room).all()
