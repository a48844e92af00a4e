"""Training that starts from the embeddings of ALS."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.linear.als import als
from bayesneg.models.als_start import USUAL, chosen_setting
from tests.worlds import interactions

SPLIT = bn.split(bn.synthetic(120, 90, seed=0), test=0.2, validation=0.1, seed=0)


def fitted(epochs=2, split=SPLIT, **settings):
    model = bn.MF(**{"dim": 8, "init": "als", **settings})
    return bn.fit(model, split, bn.RNS(), epochs=epochs, progress=False)


def by_als(rng, n=1):
    """The same as training starts from, by its parts."""
    how = chosen_setting(SPLIT.train, rng)
    return [als(SPLIT.train, dim=8, **how, seed=int(rng.integers(2**31))) for _ in range(n)]


def test_the_first_embeddings_are_those_of_als_scaled():
    learner = bn.MF(dim=8, init="als").start(SPLIT.train, rng=np.random.default_rng(3))
    (solved,) = by_als(np.random.default_rng(3))
    np.testing.assert_allclose(learner.vectors.users, 2.0 * solved.user_vectors, rtol=1e-6)
    np.testing.assert_allclose(learner.vectors.items, 2.0 * solved.item_vectors, rtol=1e-6)


def test_each_model_of_an_ensemble_starts_from_a_run_of_als():
    settings = {"dim": 8, "init": "als", "init_scale": 1.0, "ensemble_size": 2}
    learner = bn.MF(**settings).start(SPLIT.train, rng=np.random.default_rng(3))
    first, second = by_als(np.random.default_rng(3), 2)
    assert np.abs(first.item_vectors - second.item_vectors).max() > 0.01
    wanted = sum(one.user_vectors @ one.item_vectors.T for one in (first, second)) / 2
    np.testing.assert_allclose(learner.vectors.users @ learner.vectors.items.T, wanted, rtol=1e-4, atol=1e-6)


def test_the_setting_is_the_best_on_hidden_pairs(monkeypatch):
    flat, usual, wild = ({"regularization": one, "alpha": 10.0} for one in (1e6, 50.0, 1e-3))
    split = bn.split(bn.synthetic(300, 200, seed=0), test=0.2, seed=0)
    for tried in ((flat, usual, wild), (wild, usual, flat)):
        monkeypatch.setattr("bayesneg.models.als_start.SETTINGS", tried)
        assert chosen_setting(split.train, np.random.default_rng(0)) == {**usual, "iterations": 15}


def test_few_or_very_many_interactions_take_the_usual_setting(monkeypatch):
    usual = {**USUAL, "iterations": 15}
    assert chosen_setting(interactions([[0, 1], [1, 2]], 4), np.random.default_rng(0)) == usual
    monkeypatch.setattr("bayesneg.models.als_start.MOST", 10)
    assert chosen_setting(SPLIT.train, np.random.default_rng(0)) == usual


@pytest.mark.parametrize(("n_users", "n_items", "n_pairs"), [(30, 40, 60), (10, 10, 20)])
def test_the_penalty_is_lowered_where_it_leaves_nothing(n_users, n_items, n_pairs):
    rng = np.random.default_rng(0)
    pairs = np.unique(np.stack([rng.integers(n_users, size=n_pairs), rng.integers(n_items, size=n_pairs)], 1), axis=0)
    train = interactions([pairs[pairs[:, 0] == user, 1].tolist() for user in range(n_users)], n_items)
    assert np.abs(als(train, dim=8, **USUAL, iterations=15, seed=0).item_vectors).max() < 1e-3
    learner = bn.MF.recommended().start(train, rng=np.random.default_rng(0))
    assert np.abs(learner.vectors.items).max() > 0.05


def test_it_saves_epochs():
    normal, started = (fitted(epochs=3, init=init).record.final["ndcg@20"] for init in ("normal", "als"))
    assert started > normal + 0.05


def test_it_is_deterministic_and_resumes_to_the_byte(tmp_path):
    kept = {"out": tmp_path / "run", "checkpoint_every": 1}
    bn.fit(bn.MF(dim=8, init="als"), SPLIT, bn.RNS(), epochs=2, progress=False, **kept)
    resumed = bn.fit(bn.MF(dim=8, init="als"), SPLIT, bn.RNS(), epochs=4, progress=False, resume=True, **kept)
    np.testing.assert_array_equal(fitted(epochs=4).scorer.users, resumed.scorer.users)


def test_going_on_from_a_run_gives_new_items_no_vectors_of_another_als():
    users, items = SPLIT.train.users, SPLIT.train.indices
    old = bn.Interactions.from_pairs(users[items < 60], items[items < 60])
    earlier = bn.fit(bn.MF(dim=8, init="als"), bn.split(old, test=0.2, seed=0), bn.RNS(), epochs=1, progress=False)
    now = bn.split(bn.Interactions.from_pairs(users, items), test=0.2, seed=0)
    run = bn.fit(bn.MF(dim=8, init="als", learning_rate=1e-9), now, bn.RNS(), epochs=1, start=earlier, progress=False)
    lengths = np.linalg.norm(run.scorer.items, axis=1)
    new = ~np.isin(now.train.item_ids, earlier.split.train.item_ids)
    assert new.any()
    assert lengths[new].max() < 0.1 * np.sqrt(8) * 3  # normal ones of standard deviation 0.1


def test_another_word_is_refused():
    with pytest.raises(InputError, match="init must be"):
        bn.MF(init="svd")


def test_without_a_model_the_recommended_settings_are_trained():
    run = bn.fit(None, SPLIT, progress=False)
    spec = run.record.spec
    assert (spec["model"]["dim"], spec["model"]["init"]) == (bn.MF.recommended().dim, "als")
    assert spec["sampler"]["prior"]["class"] == "Learned"
    assert run.record.label == "BNS (recommended)"
    assert len(run.record.epochs) == run.record.reported_epoch + 10 < 200  # stopped early
    by_hand = bn.fit(
        bn.MF.recommended(), SPLIT, bn.BNS.recommended(), epochs=200, patience=10, evaluate_users=1000, progress=False
    )
    np.testing.assert_array_equal(run.scorer.users, by_hand.scorer.users)
    few = bn.fit(None, bn.split(bn.synthetic(120, 90, seed=0), test=0.2, seed=0), bn.RNS(), epochs=2, progress=False)
    assert (few.record.label, len(few.record.epochs), few.record.select) == ("RNS", 2, "last")


def test_without_a_validation_part_a_tenth_is_held_out_to_stop_on(tmp_path):
    data = bn.synthetic(120, 90, seed=0)
    bare, validated = (bn.split(data, test=0.2, seed=3, **more) for more in ({}, {"validation": 0.1}))
    with pytest.warns(UserWarning, match="no validation part to stop on, a tenth of the training part is held out"):
        run = bn.fit(None, bare, progress=False)
    assert len(run.record.epochs) == run.record.reported_epoch + 10 < 200
    assert run.split.validation is not None
    assert len(run.split.train) == len(validated.train)
    with pytest.warns(UserWarning, match="a tenth"):
        read = bn.fit(
            None,
            replace(bare, origin={"data": "d", "split_by": "interaction", "split_seed": 3}),
            epochs=None,
            progress=False,
        )
    np.testing.assert_array_equal(read.split.train.indices, validated.train.indices)
    assert read.split.origin == {"data": "d", "split_by": "interaction", "split_seed": 3, "validation": 0.1}


def test_a_final_fit_and_given_epochs_hold_nothing_out():
    whole = SPLIT.whole()
    assert len(bn.fit(None, whole, epochs=2, progress=False).split.train) == len(whole.train)
    bare = bn.split(bn.synthetic(60, 50, seed=0), test=0.2, seed=0)
    assert bn.fit(None, bare, epochs=1, progress=False).split is bare
