"""The training loop: what it records, and which epoch it reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.runs.record import describe
from fits import fit, without_seconds


def test_training_learns(split):
    run = fit(split, bn.RNS(), epochs=40)
    assert run.evaluate(k=10).mean["auc"] > 0.7
    assert run.record.epochs[0]["ndcg@20"] < run.record.epochs[-1]["ndcg@20"]


def test_same_seed_same_bytes_and_another_seed_others(split):
    one, two, other = fit(split, seed=1), fit(split, seed=1), fit(split, seed=2)
    assert one.scorer.users.tobytes() == two.scorer.users.tobytes()
    assert without_seconds(one.record.epochs) == without_seconds(two.record.epochs)
    assert one.scorer.users.tobytes() != other.scorer.users.tobytes()


def test_factors_are_float32(split):
    assert fit(split).scorer.users.dtype == np.float32


def test_every_epoch_is_recorded_with_the_same_keys(split):
    lines = fit(split).record.epochs
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
    keys = {
        "epoch",
        "tnr",
        "inf",
        "gradient_fn",
        "tnr_uniform",
        "tnr_true",
        "inf_true",
        "gradient_fn_true",
        "tnr_uniform_true",
        "skipped",
        "seconds",
        "ndcg@20",
    }
    assert all(set(line) == keys for line in lines)


def test_evaluation_can_be_rarer_but_never_misses_the_last_epoch(split):
    lines = fit(split, epochs=5, evaluate_every=2).record.epochs
    assert [line["epoch"] for line in lines if "ndcg@20" in line] == [2, 4, 5]


def test_the_record_knows_the_settings_the_data_and_the_versions(split):
    record = fit(split, bn.BNS(candidates=7)).record
    assert record.label == "BNS (candidates=7)"
    assert record.spec["sampler"]["candidates"] == 7
    assert record.spec["model"]["dim"] == 4
    assert record.data["fingerprint"] == split.fingerprint
    assert {"python", "bayesneg", "numpy", "numba"} <= set(record.versions)


def test_settings_are_recorded_alike_in_every_process(split):
    """Identifiers are objects, and what lies in memory differs from process to process."""
    labels = split.held_out
    copied = replace(labels, user_ids=np.array([str(i) + "" for i in labels.user_ids.tolist()], dtype=object))
    one, two = (describe(bn.BNS(prior=bn.priors.Oracle(given))) for given in (labels, copied))
    assert one == two
    texts = [np.array(["".join(["a", "b"]), "c"], dtype=object) for _ in range(2)]
    assert describe(texts[0]) == describe(texts[1]) != describe(texts[0][::-1])


def test_an_array_among_the_settings_is_recorded_by_its_digest(split):
    def record(value):
        prior = bn.priors.Item(np.full(split.train.n_items, value))
        return fit(split, bn.BNS(prior=prior), epochs=1).record.spec["sampler"]["prior"]

    assert record(0.1) == record(0.1) != record(0.2)


def test_without_validation_the_last_epoch_is_reported(split):
    run = fit(split)
    assert (run.record.select, run.record.reported_epoch) == ("last", 4)


def test_with_validation_the_best_epoch_on_it_is_reported_whatever_test_says(validated):
    run = fit(validated, bn.DNS(candidates=20), epochs=30, model=bn.MF(dim=16, learning_rate=0.2))
    curve = run.record.at_epochs("validation_ndcg@20")
    best = max(curve, key=curve.__getitem__)
    assert best != 30  # it over-fits, so that the choice matters
    assert run.record.reported_epoch == best
    assert run.evaluate(k=20, part="validation").mean["ndcg@20"] == pytest.approx(curve[best])
    assert run.record.final["ndcg@20"] == pytest.approx(run.record.at_epochs("ndcg@20")[best])


def test_the_last_epoch_can_be_asked_for_in_spite_of_validation(validated):
    assert fit(validated, select="last").record.reported_epoch == 4


def test_best_without_validation_is_refused(split):
    with pytest.raises(InputError, match="needs a validation part"):
        fit(split, select="best")


def test_validation_and_test_labels_never_reach_the_training(validated):
    """Other held-out labels, same training: same factors."""
    shuffled = Split(train=validated.train, test=validated.validation, validation=validated.test)
    one, two = (fit(part, select="last").scorer.users for part in (validated, shuffled))
    np.testing.assert_array_equal(one, two)


def test_samplers_never_see_the_truth(split):
    class Curious(bn.NegativeSampler):
        def prepare(self, train, *, rng):
            assert train.truth is None
            return self

        def sample(self, batch):
            assert batch.train.truth is None
            return bn.RNS().sample(batch)

    assert split.truth is not None
    fit(split, Curious(), epochs=1)


def test_shuffle_once_keeps_the_order_and_shuffle_epoch_changes_it(split):
    orders = {}
    for shuffle in ("once", "epoch"):
        seen = []

        class Watching(bn.NegativeSampler):
            def sample(self, batch, seen=seen):
                seen.append((batch.epoch, batch.positions))
                return bn.RNS().sample(batch)

        fit(split, Watching(), epochs=2, model=bn.MF(dim=4, shuffle=shuffle, sampling_batch=10**6))
        orders[shuffle] = [positions for _, positions in seen]
        assert sorted(orders[shuffle][0]) == list(range(len(split.train)))
    assert np.array_equal(*orders["once"])
    assert not np.array_equal(*orders["epoch"])


def test_two_threads_learn_as_well(split):
    one, two = (
        fit(split, bn.RNS(), model=bn.MF(dim=8, learning_rate=0.05, threads=t), epochs=30).evaluate(k=10).mean["auc"]
        for t in (1, 2)
    )
    assert two == pytest.approx(one, abs=0.05)


def test_initial_factors_have_the_stated_spread():
    train = bn.synthetic(500, 500, seed=0)
    learner = bn.MF(regularization=0.04).start(train, rng=np.random.default_rng(0))
    assert learner.users.std() == pytest.approx(0.2, rel=0.02)
    assert bn.MF(init_scale=0.5).start(train, rng=np.random.default_rng(0)).items.std() == pytest.approx(0.5, rel=0.02)


ENSEMBLE = bn.MF(dim=3, ensemble_size=2, learning_rate=0.05)


def test_the_informativeness_of_an_ensemble_is_that_of_its_mean(split):
    """A step is taken before it is told, so that the first example of the first epoch has the first vectors."""
    learner = ENSEMBLE.start(split.train, rng=np.random.default_rng(0))
    users, items = (vectors.copy() for vectors in learner.embeddings())
    sampler = bn.RNS().prepare(split.train, rng=np.random.default_rng(0))
    order = np.arange(len(split.train))
    first = next(iter(learner.train_epoch(sampler, epoch=1, order=order, rng=np.random.default_rng(1))))
    w, i, j = users[first.users[0]], items[split.train.indices[0]], items[first.negatives[0]]
    assert first.info[0] == pytest.approx(1 / (1 + np.exp(w @ (i - j))), rel=1e-5)
