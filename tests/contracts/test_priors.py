"""What every prior promises. A new one joins by a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.runs.record import describe, settings_text


@dataclass(frozen=True)
class UserShare(bn.Prior):
    """The docs' example of a prior of one's own."""

    def fit(self, train):
        return bn.priors.Item(0.1 * train.popularity / train.n_users)

    def probability(self, users, items):
        raise ValueError("fit it first")


WORLD = bn.synthetic(70, 50, seed=1)
SPLIT = bn.split(WORLD, test=0.2, seed=0)
TRAIN = SPLIT.train
PRIORS = {
    "popularity": bn.priors.Popularity(),
    "flat": bn.priors.Flat(),
    "item": bn.priors.Item(np.linspace(0, 1, 50)),
    "group": bn.priors.Group("group"),
    "function": lambda users, items: np.full(np.shape(items), 0.1),
    "rate": bn.priors.Rate(),
    "smoothed group": bn.priors.SmoothedGroup("group"),
    "learned": bn.priors.Learned(),
    "learned from neighbours": bn.priors.Learned(item_model="neighbours", neighbours=10),
    "learned with a logistic curve": bn.priors.Learned(curve="logistic"),
    "learned at a given rate": bn.priors.Learned(hidden=0.5, folds=3),
    "learned, nothing kept": bn.priors.Learned(cache=0),
    "exposure": bn.priors.Exposure(SPLIT.test, base=bn.priors.Rate()),
    "combined": bn.priors.Combined([bn.priors.Learned(), bn.priors.Rate()], weights=[2, 1]),
    "mean of probabilities": bn.priors.Combined([bn.priors.Popularity(), bn.priors.Rate()], scale="probability"),
    "scaled": bn.priors.Scaled(bn.priors.Rate(), 3.0),
    "a user's own": UserShare(),
}


@pytest.fixture(params=PRIORS, ids=str)
def prior(request):
    found = PRIORS[request.param]
    return found if isinstance(found, bn.Prior) else bn.BNS(prior=found).prior


def everywhere(fitted) -> np.ndarray:
    users, items = np.indices((TRAIN.n_users, TRAIN.n_items))
    return fitted.probability(users, items)


def test_gives_a_probability_for_every_pair(prior):
    found = everywhere(prior.fit(TRAIN))
    assert found.shape == (70, 50)
    assert found.min() >= 0.0
    assert found.max() <= 1.0


def test_users_and_items_broadcast(prior):
    fitted = prior.fit(TRAIN)
    users, items = np.array([5, 0, 5]), np.array([[1, 2], [49, 0], [3, 3]])
    np.testing.assert_array_equal(fitted.probability(users[:, None], items), everywhere(fitted)[users[:, None], items])


def test_what_is_learned_depends_on_the_training_data_alone(prior):
    """Fitted twice, in whatever order users are asked about, with other held-out labels or none: the same numbers."""
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, two = everywhere(prior.fit(TRAIN)), prior.fit(TRAIN)
    backwards = np.arange(70)[::-1]
    again = np.concatenate([two.probability(np.array([[user]]), np.arange(50)[None]) for user in backwards])
    np.testing.assert_array_equal(one, again[backwards])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_a_fitted_prior_is_taken_as_it_is(prior):
    fitted = prior.fit(TRAIN)
    np.testing.assert_array_equal(everywhere(fitted.fit(TRAIN)), everywhere(fitted))


def test_its_calibration_can_be_asked_for(prior):
    found = bn.priors.calibration(prior, TRAIN, bins=5)
    assert found.count.sum() == pytest.approx(70 * 50 - round(0.8 * len(TRAIN)), rel=1e-6)
    assert np.average(found.observed_rate, weights=found.count) == pytest.approx(found.base_rate)
    assert np.average(found.mean_predicted, weights=found.count) == pytest.approx(found.predicted_rate)


def test_its_settings_can_be_recorded(prior):
    assert describe(bn.BNS(prior=prior))["prior"]["class"] == type(prior).__name__
    assert len(settings_text(bn.BNS(prior=prior))) < 120


def test_the_parts_of_a_combination_are_recorded_too():
    prior = bn.priors.Combined([bn.priors.Rate(0.5), bn.priors.Flat()])
    assert describe(prior)["priors"][0] == {"class": "Rate", "hidden": 0.5}
    assert settings_text(prior) == "Combined (priors=[Rate (hidden=0.5), Flat])"
