"""The plan of the study: equal budgets, and nothing chosen on test labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bayesneg as bn
from benchmarks.studies.negatives import choosing, plan
from benchmarks.studies.negatives.contenders import BASELINES, CONTENDERS, Given, parts_of
from benchmarks.studies.negatives.priors import StoredPrior, store_prior
from benchmarks.studies.negatives.training import prior_named

PLAN = Path(__file__).parents[2] / "docs" / "explanation" / "study-plan.md"
PAIRS = [(dataset, model) for dataset in plan.DATASETS for model in plan.MODELS]


@pytest.mark.parametrize(("dataset", "model"), PAIRS)
def test_every_contender_has_the_same_budget(dataset, model):
    for name in CONTENDERS:
        trials = plan.search(dataset, model, {"learning_rate": 0.005}, [name])
        assert len({trial.key for trial in trials}) == len(trials) == plan.SEARCHED[model], name
        assert {trial.epochs for trial in trials} == {plan.SCALES[dataset, model].epochs}
    for name in BASELINES:
        assert len({trial.key for trial in plan.baselines(dataset, [name])}) == plan.SEARCHED[plan.BASELINE], name


def test_the_registered_page_names_every_contender():
    text = PLAN.read_text(encoding="utf-8")
    for name in CONTENDERS:
        assert f"`{name}`" in text, name


@pytest.mark.parametrize("name", CONTENDERS)
def test_a_contender_trains(name):
    split = bn.split(bn.synthetic(60, 80, seed=0), test=0.2, seed=0)
    (trial, *_) = plan.search("ml-100k", "mf", {"learning_rate": 0.005}, [name])
    model, sampler, loss = parts_of(name, "mf", trial.setting, Given(split, bn.priors.Popularity(), 20))
    assert sampler is not None
    assert sampler.uses_test_labels == CONTENDERS[name].is_oracle
    assert model.dim == 64
    assert (loss.__class__.__name__ == "BPR") == (model.similarity == "inner")


def run_of(values):
    return {"epochs": [{"epoch": at, "ndcg@20": value} for at, value in values.items()]}


def test_the_best_setting_and_its_first_best_epoch_are_chosen():
    trials = plan.search("gowalla", "mf", {"learning_rate": 0.005}, ["bsl"])
    finished = {trial.key: run_of({10: 0.1, 20: 0.1}) for trial in trials}
    finished[trials[3].key] = run_of({10: 0.1, 20: 0.3, 30: 0.3})
    assert choosing.of_search(finished, trials) == {"bsl": (trials[3], 20)}
    del finished[trials[0].key]
    with pytest.raises(SystemExit, match="1 of 6 trainings of search gowalla mf bsl are missing"):
        choosing.of_search(finished, trials)


@pytest.mark.parametrize("name", ["bsl", "ccl", "dns"])
def test_a_best_setting_at_the_edge_widens_the_search(name):
    trials = plan.search("gowalla", "mf", {"learning_rate": 0.005}, [name])
    part, key, _ = plan.ladder_of(trials[0])
    values = sorted({getattr(trial.setting, part)[key] for trial in trials})
    finished = {trial.key: run_of({10: 0.1}) for trial in trials}
    highest = next(trial for trial in trials if getattr(trial.setting, part)[key] == values[-1])
    finished[highest.key] = run_of({10: 0.2})
    more = choosing.widened(finished, trials)[len(trials) :]
    assert len(more) == 2
    assert {getattr(trial.setting, part)[key] > values[-1] for trial in more} == {True}
    finished |= {trial.key: run_of({10: 0.15}) for trial in more}
    assert len(choosing.widened(finished, trials)) == len(trials) + 2
    finished = {trial.key: run_of({10: 0.1}) for trial in trials}
    if len(values) > 2:
        middle = next(trial for trial in trials if getattr(trial.setting, part)[key] == values[1])
        assert choosing.widened({**finished, middle.key: run_of({10: 0.2})}, trials) == trials


def test_nothing_is_chosen_on_test_labels():
    trial, *others = plan.final(plan.search("gowalla", "mf", {}, ["bsl"])[0], 20)
    assert [other.seed for other in others] == [1, 2]
    assert trial.view == plan.TEST
    with pytest.raises(AssertionError):
        choosing.best_of({trial.key: run_of({20: 0.9})}, [trial])


def test_a_stored_prior_is_the_one_that_was_fitted(tmp_path):
    train = bn.synthetic(60, 80, seed=0)
    learned = bn.priors.Learned(likeliest=10)
    store_prior(learned, train, tmp_path / "prior.npz")
    stored, form = StoredPrior(tmp_path / "prior.npz"), learned.fit(train).form()
    users, items = np.arange(60), np.arange(80)
    np.testing.assert_allclose(stored.probability(users[:, None], items[None, :]), form.of(users, items), rtol=1e-6)


def test_priors_are_compared_at_the_setting_without_weights():
    (without, *_) = plan.search("gowalla", "mf", {"learning_rate": 0.005}, ["bsl"])
    trials = plan.priors(without)
    assert trials[0].key == without._replace(contender="posterior").key  # EASE, as in the search
    assert {trial.setting.loss["temperature"] for trial in trials} == {without.setting.loss["temperature"]}
    assert [prior_named(trial) for trial in trials] == ["ease", None, *plan.PRIORS[1:]]
    assert len({trial.key for trial in trials}) == len(trials)


def test_only_finished_searches_have_final_runs():
    trials = plan.search("gowalla", "mf", {"learning_rate": 0.005}, ["bsl", "softmax"])
    finished = {trial.key: run_of({10: 0.1}) for trial in trials[:-1]}
    assert {trial.contender for trial in choosing.complete(finished, trials)} == {"bsl"}
