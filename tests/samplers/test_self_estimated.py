"""The self-estimated prior: its rates are those of a known world, and follow the model."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.samplers.candidates import evenly_spread
from bayesneg.seeding import stream
from worlds import interactions


def liking_world(seed=0, n_users=200, n_items=120, dim=4):
    """Users like items with a probability that grows with w·h; half of what they like is observed."""
    rng = np.random.default_rng(seed)
    w, h = rng.normal(size=(n_users, dim)).astype(np.float32), rng.normal(size=(n_items, dim)).astype(np.float32)
    liked = rng.random((n_users, n_items)) < 1 / (1 + np.exp(3 - w @ h.T))
    seen = liked & (rng.random(liked.shape) < 0.5)
    seen[np.arange(n_users), rng.integers(0, n_items, n_users)] = True  # everybody has an item
    train = interactions([np.flatnonzero(row).tolist() for row in seen], n_items)
    return train, liked & ~seen, EmbeddingScorer(w, h)


def test_it_is_calibrated_where_the_hidden_positives_are_like_the_observed_ones():
    train, hidden, scorer = liking_world()
    prior = bn.priors.SelfEstimated(hidden=hidden.sum() / len(train), held_out=0.4).fit(train)
    prior.end_epoch(scorer)
    users, items = evenly_spread(train, 10**6)
    p, truth = prior.probability(users, items), hidden[users, items]
    assert p.mean() == pytest.approx(truth.mean(), rel=0.05)
    for low, high in ((0.0, 0.03), (0.03, 0.1), (0.1, 0.3), (0.3, 1.0)):
        inside = (p >= low) & (p < high)
        assert inside.sum() > 200
        assert p[inside].mean() == pytest.approx(truth[inside].mean(), rel=0.3, abs=0.01)


def test_before_the_first_epoch_only_popularity_is_informative():
    train, _, scorer = liking_world()
    prior = bn.priors.SelfEstimated().fit(train)
    users = np.arange(train.n_users)[:, None]
    before = prior.probability(users, np.arange(train.n_items)[None, :])
    assert (before == before[:1]).all()
    order = np.argsort(train.popularity)
    assert before[0, order[-10:]].min() > before[0, order[:10]].max()
    prior.end_epoch(scorer)
    assert np.ptp(prior.probability(users, np.arange(train.n_items)[None, :]), axis=0).max() > 0.05


def test_pairs_broadcast_and_are_probabilities():
    train, _, scorer = liking_world()
    prior = bn.priors.SelfEstimated(hidden=1000.0).fit(train)
    prior.end_epoch(scorer)
    p = prior.probability(np.arange(5)[:, None], np.arange(7)[None, :])
    assert p.shape == (5, 7)
    assert p.max() <= 0.95
    assert p.min() >= 0.0


def test_a_resumed_run_ends_in_the_same_bytes_and_never_trains_on_held_out_pairs(tmp_path):
    split = bn.split(bn.synthetic(150, 200, seed=1), test=0.2, seed=0)
    sampler, model = bn.BNS(prior=bn.priors.SelfEstimated(held_out=0.2), likelihood="uninformative"), bn.MF(dim=8)
    straight = bn.fit(model, split, sampler, epochs=4, progress=False)
    bn.fit(model, split, sampler, epochs=2, out=tmp_path / "run", progress=False)
    resumed = bn.fit(model, split, sampler, epochs=4, out=tmp_path / "run", resume=True, progress=False)
    np.testing.assert_array_equal(straight.scorer.users, resumed.scorer.users)
    held = sampler.prepare(split.train, rng=stream(0, "sampler")).prior.rates.held_out.mask
    assert {line["skipped"] for line in straight.record.epochs} == {int(held.sum())}


def test_scores_are_not_counted_twice():
    with pytest.raises(InputError, match="SelfEstimated depends on the scores"):
        bn.BNS(prior=bn.priors.SelfEstimated())
    with pytest.raises(InputError, match="SelfEstimated depends on the scores"):
        bn.Posterior(prior=bn.priors.SelfEstimated(), likelihood="empirical")


def test_wrong_settings_and_a_prior_that_was_not_fitted_are_named():
    for settings, words in (({"hidden": 0.0}, "hidden"), ({"held_out": 0.8}, "held_out"), ({"seed": -1}, "seed")):
        with pytest.raises(InputError, match=words):
            bn.priors.SelfEstimated(**settings)
    with pytest.raises(InputError, match="fit"):
        bn.priors.SelfEstimated().probability(np.array([0]), np.array([0]))


def test_with_too_few_pairs_to_hold_out_all_have_the_mean():
    train = interactions([[0, 1], [2, 3]], 6)
    prior = bn.priors.SelfEstimated(hidden=0.5).fit(train)
    prior.end_epoch(EmbeddingScorer(np.ones((2, 3), np.float32), np.ones((6, 3), np.float32)))
    np.testing.assert_allclose(prior.probability(np.arange(2)[:, None], np.arange(6)), 0.5 * 4 / 8)
