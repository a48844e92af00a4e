"""New users and new items: exact where the model is, close to training where it is not."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.recommendation.fold_in import EXPONENT, LeastSquaresFoldIn, RegressionFoldIn

from .conftest import MODELS


@pytest.mark.parametrize("name", ["ease", "ease of low rank", "item-knn", "gf-cf"])
def test_an_item_model_scores_a_new_user_as_a_known_one_with_the_same_items(run_of, world, name):
    run = run_of(name)
    for number, user in enumerate(world.train.user_ids[:5].tolist()):
        folded = run.fold_in(world.train.item_ids[world.train.row(number)])
        assert folded.vector is None
        assert folded.recommend(k=20) == run.recommend(user, k=20, include_held_out=True)


@pytest.mark.parametrize("name", MODELS)
def test_a_new_user_gets_items_that_it_does_not_have(run_of, world, name):
    items = world.train.item_ids[[4, 9, 40]].tolist()
    user = run_of(name).fold_in(items)
    found = [item for item, _ in user.recommend(k=world.train.n_items)]
    assert user.items == items
    assert set(found).isdisjoint(items)
    assert len(set(found)) == len(found) == world.train.n_items - 3
    everything = user.recommend(k=world.train.n_items, include_seen=True)
    assert len(everything) == world.train.n_items
    some = user.recommend(k=5, only=found[:3], exclude=[found[1]])
    assert [item for item, _ in some] == [found[0], found[2]]


def test_by_popularity_every_new_user_is_alike(run_of, world):
    run = run_of("popularity")
    counts = dict(zip(world.train.item_ids.tolist(), world.train.popularity, strict=True))
    for item, score in run.fold_in([1, 5]).recommend(k=10):
        assert score == pytest.approx(counts[item], rel=1e-4)


def test_the_regression_without_its_penalty_is_the_linear_map_of_histories():
    rng = np.random.default_rng(0)
    others = rng.normal(size=(60, 5)).astype(np.float32)
    histories = [np.sort(rng.choice(60, size=rng.integers(1, 20), replace=False)) for _ in range(400)]
    turn, shift = rng.normal(size=(5, 5)), rng.normal(size=5)

    def truth(history):
        return others[history].sum(axis=0) / len(history) ** EXPONENT @ turn + shift

    known = np.stack([truth(history) for history in histories]).astype(np.float32)
    indptr = np.concatenate(([0], np.cumsum([len(history) for history in histories]))).astype(np.int64)
    fold = RegressionFoldIn(known, others, indptr, np.concatenate(histories).astype(np.int32), ridge=1e-9)
    errors = [fold.vector(history) - truth(history) for history in histories[:50]]
    assert np.abs(errors).max() < 1e-4
    assert np.array_equal(fold.vector(np.array([3, 1])), fold.vector(np.array([1, 3])))


def test_users_without_history_do_not_shift_the_map():
    rng = np.random.default_rng(1)
    others, known = rng.normal(size=(9, 2)).astype(np.float32), rng.normal(size=(4, 2)).astype(np.float32)
    indices = np.array([0, 3, 1, 5, 2, 8], dtype=np.int32)
    plain = RegressionFoldIn(known, others, np.array([0, 2, 3, 5, 6]), indices)
    cold = np.concatenate((known[:2], np.full((1, 2), 1e6, dtype=np.float32), known[2:]))
    with_cold = RegressionFoldIn(cold, others, np.array([0, 2, 3, 3, 5, 6]), indices)
    assert np.allclose(plain.vector(np.array([4])), with_cold.vector(np.array([4])))


@pytest.mark.parametrize("users", [["a"], list("abc")], ids=["one user", "users with the same items"])
def test_where_histories_do_not_vary_a_new_user_is_the_mean_user(users):
    data = Interactions.from_pairs([user for user in users for _ in "pqrs"], list("pqrs") * len(users))
    split = Split(data, data.select(np.zeros(len(data), dtype=bool)))
    run = bn.fit(bn.MF(dim=4), split, bn.RNS(), epochs=1, progress=False)
    mean = run.scorer.users.mean(axis=0)
    new = run.fold_in(["p"])
    np.testing.assert_allclose(new.vector, mean, rtol=1e-5)
    assert all(np.isfinite(score) for _, score in new.recommend(k=3))
    assert all(np.isfinite(score) for _, score in run.fold_in(users=["a"]).similar(k=3))


def test_the_vector_of_a_new_user_has_the_length_of_the_others_under_the_cosine(run_of):
    vector = run_of("cosine").fold_in([1, 5, 9]).vector
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)


def test_least_squares_solves_its_equation():
    rng = np.random.default_rng(0)
    others, history = rng.normal(size=(30, 4)).astype(np.float32), np.array([2, 7, 11])
    vector = LeastSquaresFoldIn(others, alpha=10.0, regularization=0.5).vector(history).astype(np.float64)
    weights = np.ones(30)
    weights[history] = 10.0
    wanted = np.zeros(30)
    wanted[history] = 1.0
    gradient = others.T @ (weights * (others @ vector - wanted)) + 0.5 * vector
    assert np.abs(gradient).max() < 1e-4


def test_als_folds_a_known_user_in_where_training_put_it(world):
    run = bn.fit(bn.baselines.ALS(dim=8, iterations=30), world, progress=False)
    cosines = []
    for number in range(20):
        vector = run.fold_in(world.train.item_ids[world.train.row(number)]).vector
        own = run.scorer.users[number]
        cosines.append(vector @ own / np.linalg.norm(vector) / np.linalg.norm(own))
    assert min(cosines) > 0.99


MODEL, SAMPLER = bn.MF(dim=8, learning_rate=0.05), bn.RNS()


@pytest.fixture(scope="module")
def tastes():
    """Users who like one of five kinds of items; the kind of each item, the data and a model trained on it."""
    rng = np.random.default_rng(5)
    of_users, of_items = rng.integers(5, size=400), rng.integers(5, size=150)
    users, items = np.nonzero(rng.random((400, 150)) < np.where(of_users[:, None] == of_items, 0.5, 0.03))
    split = bn.split(bn.Interactions.from_pairs(users, items), test=0.3, by="user", seed=0)
    return of_items, split, bn.fit(MODEL, split, SAMPLER, epochs=25, evaluate_every=25, progress=False)


def test_folding_in_is_far_above_popularity_and_near_training(tastes):
    """Users held out of training entirely; benchmarks/quality/fold_in.py has the figures on real data."""
    _, whole, trained_with = tastes
    new = np.arange(0, 400, 5)
    kept = [~np.isin(part.users, new) for part in (whole.train, whole.test)]
    reduced = Split(train=whole.train.select(kept[0]), test=whole.test.select(kept[1]))
    without = bn.fit(MODEL, reduced, SAMPLER, epochs=25, evaluate_every=25, progress=False)
    popular = bn.fit(bn.baselines.MostPopular(), whole, progress=False)

    def recall(lists):
        found = [
            np.isin(items, whole.train.item_ids[whole.test.row(user)]).sum() / max(1, len(whole.test.row(user)))
            for user, items in zip(new, lists, strict=True)
        ]
        return float(np.mean(found))

    ids = whole.train.user_ids[new].tolist()
    trained, popularity = (
        recall([[item for item, _ in run.recommend(user, k=10, include_held_out=True)] for user in ids])
        for run in (trained_with, popular)
    )
    histories = [whole.train.item_ids[whole.train.row(user)] for user in new]
    folded = recall([[item for item, _ in without.fold_in(items).recommend(k=10)] for items in histories])
    assert popularity < 0.5 * trained
    assert folded > 0.9 * trained


def test_a_new_item_is_like_the_others_that_its_users_like(tastes):
    of_items, split, run = tastes
    train = split.train
    for item in range(5):
        users = train.user_ids[train.users[train.indices == item]]
        new = run.fold_in(users=users)
        kind = of_items[train.item_ids[item]]
        assert [of_items[each] for each, _ in new.similar(k=10)].count(kind) >= 8
        chosen = [user for user, _ in new.recommend_to(k=10)]
        assert len(chosen) == 10
        assert set(chosen).isdisjoint(users.tolist())


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"items": []}, "items must name at least one item, got none; items look like"),
        ({"items": [777]}, "items: item 777 is not in the data; the nearest items are 119, 118, 117"),
        ({"items": [777, 778]}, "none of its 2 items is in the data"),
        ({"items": [1, 777]}, r"leave them out with unknown='skip'"),
        ({"items": "12"}, "items must be several identifiers of items"),
        ({"items": 12}, "items must be several identifiers of items"),
        ({"items": [None]}, r"item must be one identifier, a whole number or a text, got None \(NoneType\)"),
        ({"items": [[1]]}, "ask for one item at a time"),
        ({"items": [1], "unknown": "maybe"}, "unknown must be one of error, skip"),
        ({}, "either items, of a new user, or users, of a new item"),
        ({"items": [1], "users": [1]}, "either items, of a new user, or users, of a new item"),
    ],
)
def test_a_wrong_argument_gets_a_sentence(run_of, how, sentence):
    with pytest.raises(bn.BayesnegError, match=sentence):
        run_of("mf").fold_in(**how)


def test_an_item_model_has_no_place_for_a_new_item(run_of):
    with pytest.raises(
        bn.BayesnegError, match="EASE has no vectors of users, so a new item cannot be folded in; train"
    ):
        run_of("ease").fold_in(users=[1, 2])


def test_unknown_items_are_left_out_where_asked_and_named(run_of):
    user = run_of("mf").fold_in([1, 777, 4], unknown="skip")
    assert (user.items, user.unknown) == ([1, 4], [777])
    assert repr(user) == "NewUser(2 items, 1 unknown)"
