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


@pytest.fixture(scope="module")
def newcomers(split) -> bn.Split:
    """The validation part is of users without a training interaction."""
    data = split.known
    late, last = data.users >= 100, data.users >= 90
    return bn.Split(data.select(~last), data.select(late), data.select(last & ~late))


def test_where_validation_users_are_cold_every_epoch_is_trained_and_the_last_reported(newcomers, tmp_path):
    with pytest.warns(UserWarning, match=r"no validation user .* all 5 epochs are trained and the last is reported"):
        run = fitted(newcomers, epochs=5, patience=2, evaluate_users=4, out=tmp_path / "run")
    assert (len(run.record.epochs), run.record.reported_epoch, run.record.select) == (5, 5, "last")
    assert len({line["validation_ndcg@20"] for line in run.record.epochs}) == 1
    with pytest.warns(UserWarning, match="no validation user"):
        resumed = fitted(newcomers, epochs=6, patience=2, evaluate_users=4, out=tmp_path / "run", resume=True)
    assert len(resumed.record.epochs) == 6


def test_one_validation_user_with_a_history_chooses_the_epoch(newcomers):
    users = newcomers.validation.users
    first = np.flatnonzero(users == 95)[0]
    moved = newcomers.validation.select(np.arange(len(users)) == first)
    train = newcomers.train.union(moved)
    rest = newcomers.validation.select(np.arange(len(users)) != first)
    run = fitted(bn.Split(train, newcomers.test, rest), epochs=40, patience=3)
    assert (len(run.record.epochs), run.record.select) == (run.record.reported_epoch + 3, "best")


def test_known_validation_users_choose_the_epoch_of_a_run_with_a_start(newcomers):
    whole = fitted(newcomers.whole(), epochs=2)
    run = fitted(newcomers, epochs=30, patience=2, start=whole)
    assert run.record.select == "best"
    assert len({line["validation_ndcg@20"] for line in run.record.epochs}) > 1


def test_a_baseline_has_no_epochs_to_stop(split):
    with pytest.raises(InputError, match="EASE is solved at once and has no epochs to stop; call fit without patience"):
        bn.fit(bn.baselines.EASE(), split, patience=3, progress=False)


def test_a_final_model_keeps_what_was_measured_before(split, tmp_path):
    run = fitted(split, epochs=3)
    final = fitted(split.whole(), epochs=run.record.reported_epoch, measured_by=run, out=tmp_path / "final")
    for record in (final.record, bn.load_run(tmp_path / "final").record):
        assert record.final == {}
        before = record.before_final
        assert before["final"] == run.record.final
        assert before["reported_epoch"] == run.record.reported_epoch
        line = run.record.epochs[run.record.reported_epoch - 1]
        assert before["validation"] == {"ndcg@20": line["validation_ndcg@20"]}
        assert before["last_epoch"]["tnr"] == run.record.epochs[-1]["tnr"]
        assert f"{run.record.final['ndcg@20']:.4f}" in record._repr_html_()
    assert run.record.before_final == {}
    for data, measured, sentence in (
        (split, run, "measured_by is for a final model, .* this split has a test part"),
        (split.whole(), final, "measured_by must be a run with a test part"),
        (split.whole(), "runs/bns", "measured_by must be a run, .* got str"),
    ):
        with pytest.raises(InputError, match=sentence):
            fitted(data, epochs=1, measured_by=measured)


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
