"""Every built-in prior keeps the contract that ``bayesneg.testing`` checks, and each check can fail.

A registered prior joins by its name; variants with other settings are listed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.reference.pools import Computed, SparseRows
from bayesneg.runs.record import describe, settings_text
from bayesneg.samplers import registry
from bayesneg.samplers.priors.basic import as_prior
from bayesneg.testing import check_prior
from bayesneg.testing.worlds import worlds_of


@dataclass(frozen=True)
class UserShare(bn.Prior):
    """The docs' example of a custom prior."""

    def fit(self, train):
        return bn.priors.Item(0.1 * train.popularity / train.n_users)

    def probability(self, users, items):
        raise ValueError("fit it first")


CONSTANT = as_prior(lambda users, items: np.full(np.shape(items), 0.1))
TRAIN = worlds_of(None)[2].train
PRIORS = {name: as_prior(name) for name in registry.priors() if name != "oracle"} | {
    "oracle": bn.priors.Oracle(TRAIN),
    "item": bn.priors.Item(np.linspace(0, 1, TRAIN.n_items)),
    "function": CONSTANT,
    "learned from neighbours": bn.priors.Learned(item_model="neighbours", neighbours=10),
    "learned from random walks": bn.priors.Learned(item_model="rp3beta", neighbours=10, folds=2),
    "learned from graph filters": bn.priors.Learned(item_model="gfcf", dim=4, folds=2),
    "learned with a logistic curve": bn.priors.Learned(curve="logistic"),
    "learned at a given rate": bn.priors.Learned(hidden=0.5, folds=3),
    "learned, uncached": bn.priors.Learned(cache=0),
    "exposure over a learned prior": bn.priors.Exposure(TRAIN, base="learned"),
    "scaled learned": bn.priors.Scaled("learned", 0.5),
    "exposure": bn.priors.Exposure(TRAIN, base="rate"),
    "combined": bn.priors.Combined(["learned", "rate"], weights=[2, 1]),
    "mean of probabilities": bn.priors.Combined(["popularity", "rate"], scale="probability"),
    "scaled": bn.priors.Scaled("rate", 3.0),
    "custom": UserShare(),
}


@pytest.fixture(params=PRIORS, ids=str)
def prior(request):
    return PRIORS[request.param]


def test_a_built_in_prior_keeps_the_contract(prior):
    check_prior(prior)


@pytest.mark.parametrize("name", [name for name in PRIORS if name not in ("oracle", "self")])
def test_its_calibration_is_a_reliability_diagram_of_all_unobserved_pairs(name):
    found = bn.priors.calibration(PRIORS[name], TRAIN, bins=5)
    assert found.count.sum() == pytest.approx(TRAIN.n_users * TRAIN.n_items - round(0.8 * len(TRAIN)), rel=1e-6)
    assert np.average(found.observed_rate, weights=found.count) == pytest.approx(found.base_rate)
    assert np.average(found.mean_predicted, weights=found.count) == pytest.approx(found.predicted_rate)


def test_its_settings_can_be_recorded(prior):
    sampler = bn.BNS(prior=prior, likelihood="uninformative")
    assert describe(sampler)["prior"]["class"] == type(prior).__name__
    assert len(settings_text(sampler)) < 140


def test_the_parts_of_a_combination_are_recorded_too():
    prior = bn.priors.Combined([bn.priors.Rate(0.5), bn.priors.Flat()])
    assert describe(prior)["priors"][0] == {"class": "Rate", "hidden": 0.5}
    assert settings_text(prior) == "Combined (priors=[Rate (hidden=0.5), Flat])"


# ---- the checks can fail


@dataclass
class Broken(bn.Prior):
    """Computes its probabilities with ``compute(self, users, items)``."""

    compute: object
    calls: list = field(default_factory=list)

    def probability(self, users, items):
        self.calls.append(users)
        return self.compute(self, users, items)


def tenth(prior, users, items):
    return np.full(np.broadcast_shapes(np.shape(users), np.shape(items)), 0.1)


class Refitting(Broken):
    """Halves its value when it is fitted again."""

    value = 0.1

    def fit(self, train):
        fitted = Refitting(lambda prior, users, items: tenth(prior, users, items) * prior.value)
        fitted.value = self.value / 2
        return fitted


class Drifting(Broken):
    value = 1.0

    def fit(self, train):
        Drifting.value /= 2
        return bn.priors.Flat(Drifting.value)


class Seeded(Broken):
    def fit(self, train):
        value = np.random.random()  # noqa: NPY002
        return bn.priors.Flat(value)


class Writing(Broken):
    def fit(self, train):
        train.indices.flags.writeable = True
        train.indices[:] = np.roll(train.indices, 1)
        return self


class Undeclared(Broken):
    def end_epoch(self, scorer):
        return


class Forgetful(Broken):
    follows_training = True

    def fit(self, train):
        return Forgetful(lambda prior, users, items: tenth(prior, users, items) * (1 + getattr(prior, "ended", 0)))

    def end_epoch(self, scorer):
        self.ended = getattr(self, "ended", 0) + 1


class OneUser(Broken):
    """Breaks where BNS asks for a candidate matrix."""

    def probability(self, users, items):
        return tenth(self, users, items) * (2.0 * 10 if np.shape(items)[-1] == 5 else 1.0)


FAILING = {
    "another shape": (Broken(lambda prior, users, items: np.ones(3)), r"returned shape \(3,\) for users and items of"),
    "above 1": (Broken(lambda prior, users, items: 2 + 0 * users * items), r"returned \[2\]; probabilities are betw"),
    "not a number": (Broken(lambda prior, users, items: np.nan * users * items), r"returned \[nan\]; probabilities"),
    "users alone": (Broken(lambda prior, users, items: users / 100.0), "must broadcast users"),
    "unseeded": (Drifting(tenth), "gave different probabilities for the same training data; seed its randomness"),
    "global random state": (Seeded(tenth), "draws from global random state"),
    "writes to the data": (Writing(tenth), "fit changed the training data; copy it"),
    "fitted twice": (Refitting(tenth), "fitting a fitted prior to the same data changed"),
    "undeclared": (Undeclared(tenth), "overrides end_epoch, but follows_training is False; declare follows_training"),
    "forgetful": (Forgetful(tenth), "gives other probabilities after a checkpoint; return all state from state_dict"),
    "fails in BNS": (OneUser(tenth), "BNS with OneUser: a prior must be a probability between 0 and 1"),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_broken_prior_is_told_what_is_wrong(case):
    broken, sentence = FAILING[case]
    with pytest.raises(AssertionError, match=sentence):
        check_prior(broken)


def test_a_prior_for_particular_data_is_checked_on_it():
    train = bn.synthetic(20, 15, seed=0)
    check_prior(bn.priors.Item(np.full(15, 0.1)), train=train)


COMPUTED = {"self", "function"}  # a function of the model's scores, and any function


@pytest.mark.parametrize("name", PRIORS)
def test_its_form_gives_pools_the_same_probabilities(name):
    fitted = PRIORS[name].fit(TRAIN)
    users, items = np.arange(TRAIN.n_users), np.arange(TRAIN.n_items)
    unobserved = ~TRAIN.contains(users[:, None], items[None, :])  # training items never count
    form = fitted.form()
    assert isinstance(form, Computed) == (name in COMPUTED)
    wanted = np.broadcast_to(fitted.probability(users[:, None], items[None, :]), unobserved.shape)
    np.testing.assert_allclose(form.of(users, items)[unobserved], wanted[unobserved], rtol=1e-6, atol=1e-12)


def test_a_prior_around_a_function_is_computed():
    for prior in (
        bn.priors.Combined(["rate", CONSTANT]),
        bn.priors.Scaled(CONSTANT, 2.0),
        bn.priors.Exposure(TRAIN, base=CONSTANT),
    ):
        assert isinstance(prior.fit(TRAIN).form(), Computed)
    scaled = bn.priors.Scaled("learned", 2.0).fit(TRAIN).form()
    assert isinstance(scaled, SparseRows)
