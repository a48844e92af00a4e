"""Early stopping, evaluation on a sample of users, and a final model on all data."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.evaluation.ranking import evaluate
from bayesneg.experiments.yardsticks import beside
from bayesneg.runs.verdict import verdict


@pytest.fixture(scope="module")
def split() -> bn.Split:
    return bn.split(bn.synthetic(120, 90, seed=0), test=0.2, validation=0.1, seed=0)


def fitted(split, **given):
    return bn.fit(bn.MF(dim=8, learning_rate=0.1), split, bn.RNS(), progress=False, **given)


def test_training_stops_after_evaluations_without_a_better_one(split):
    whole, stopped = fitted(split, epochs=60), fitted(split, epochs=60, patience=4)
    n = len(stopped.record.epochs)
    assert n < 60
    assert n == stopped.record.reported_epoch + 4
    curve = [line["validation_ndcg@20"] for line in whole.record.epochs]
    assert [line["validation_ndcg@20"] for line in stopped.record.epochs] == curve[:n]
    assert max(curve[:n]) == curve[stopped.record.reported_epoch - 1]
    np.testing.assert_array_equal(stopped.scorer.users, fitted(split, epochs=n).scorer.users)


def test_epochs_without_an_evaluation_do_not_count(split):
    stopped = fitted(split, epochs=60, patience=2, evaluate_every=3)
    assert len(stopped.record.epochs) == stopped.record.reported_epoch + 6


def test_a_stopped_run_resumes_to_the_same_end(split, tmp_path):
    def interrupted(line):
        if line["epoch"] == 3:
            raise KeyboardInterrupt

    settings = {"epochs": 60, "patience": 4, "checkpoint_every": 2}
    expected = fitted(split, **settings)
    model = bn.MF(dim=8, learning_rate=0.1)
    with pytest.raises(KeyboardInterrupt):
        bn.fit(model, split, bn.RNS(), out=tmp_path / "run", progress=interrupted, **settings)
    for _ in range(2):  # the second time there is nothing left to train
        resumed = fitted(split, out=tmp_path / "run", resume=True, **settings)
        assert len(resumed.record.epochs) == len(expected.record.epochs)
        np.testing.assert_array_equal(resumed.scorer.items, expected.scorer.items)
    with pytest.raises(InputError, match="patience was 4, now it is 5"):
        fitted(split, out=tmp_path / "run", resume=True, epochs=60, patience=5)


def test_patience_needs_validation_data(split):
    with pytest.raises(InputError, match="patience stops on validation data; split with validation"):
        fitted(bn.split(bn.synthetic(40, 30, seed=0), seed=0), epochs=2, patience=1)
    with pytest.raises(InputError, match="patience must be a whole number of at least 1, got 0"):
        fitted(split, epochs=2, patience=0)


def test_a_sample_of_users_is_evaluated_between_epochs(split):
    run = fitted(split, epochs=2, evaluate_users=20)
    line = run.record.epochs[-1]
    for part, key in (("test", "ndcg@20"), ("validation", "validation_ndcg@20")):
        report = evaluate(run.scorer, split, k=20, part=part, metrics="ndcg", sample=20)
        assert len(report.user_ids) == 20
        if run.record.reported_epoch == 2:
            assert line[key] == report.mean["ndcg@20"]
    assert len(run.record.per_user["ndcg@20"]) == (split.test.counts > 0).sum()  # the result is on all
    everyone = evaluate(run.scorer, split, k=20, metrics="ndcg")
    sampled = evaluate(run.scorer, split, k=20, metrics="ndcg", sample=10_000)
    assert sampled.mean == everyone.mean
    with pytest.raises(InputError, match="sample must be a whole number"):
        evaluate(run.scorer, split, sample=0)


def test_a_final_model_is_trained_on_everything(split, tmp_path):
    everything = split.whole()
    assert len(everything.train) == len(split.train) + len(split.validation) + len(split.test)
    assert len(everything.test) == 0
    run = fitted(everything, epochs=2)
    assert run.record.final == {}
    assert not any(key.startswith(("tnr", "ndcg")) and "true" not in key for key in run.record.epochs[-1])
    run.save(tmp_path / "final")
    loaded = bn.load_run(tmp_path / "final")
    user = split.train.user_ids[split.test.users[0]]
    assert loaded.recommend(user) == run.recommend(user)
    held = set(split.train.item_ids[split.known.row(split.test.users[0])])
    assert not held & {item for item, _ in run.recommend(user, k=20)}
    with pytest.raises(InputError, match="the test part is empty, as after train --final"):
        loaded.evaluate()
    for command, said in ((bn.compare, "nothing to compare on"), (bn.audit, "no negative is known to be false")):
        with pytest.raises(InputError, match=said):
            command(bn.MF(dim=4), everything, "rns", epochs=1, progress=False)


def test_the_verdict_on_a_good_run():
    split = bn.split(bn.synthetic(300, 100, seed=0), test=0.2, validation=0.1, seed=0)
    run = bn.fit(bn.baselines.EASE(), split, progress=False)
    others = beside(run, "popularity,ease")
    assert [one.label for one in others] == ["POPULARITY"]  # not EASE beside itself
    assert "better than each of them" in verdict(run.record, others)
    assert verdict(run.record, []) == ""
