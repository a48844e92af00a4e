"""The training loop: what it records, which epoch it reports, and that it can be interrupted."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.data.splits import Split
from bayesneg.errors import DivergedError, InputError
from bayesneg.runs import folder as files
from bayesneg.runs.record import describe
from worlds import interactions


@pytest.fixture(scope="module")
def split():
    return bn.split(bn.synthetic(80, 100, seed=3), test=0.2, seed=0)


@pytest.fixture(scope="module")
def validated():
    return bn.split(bn.synthetic(80, 100, seed=3), test=0.2, validation=0.2, seed=0)


def fit(split, sampler=None, **more):
    settings = {"epochs": 4, "progress": False} | more
    model = settings.pop("model", bn.MF(dim=4, learning_rate=0.05))
    return bn.fit(model, split, sampler or bn.BNS(), **settings)


def without_seconds(lines):
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


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
        "tnr_uniform",
        "tnr_true",
        "inf_true",
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


def test_shuffle_once_keeps_the_order_and_shuffle_epoch_changes_it(split):
    orders = {}
    for shuffle in ("once", "epoch"):
        seen = []

        class Watching(bn.NegativeSampler):
            def sample(self, batch, seen=seen):
                seen.append((batch.epoch, batch.positions))
                return np.full(len(batch.users), bn.NO_NEGATIVE)

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


# ------------------------------------------------------------------------------------------------------ run folders


def test_a_run_is_recorded_as_it_goes_and_read_back(split, tmp_path):
    run = fit(split, out=tmp_path / "run", seed=5)
    again = bn.load_run(tmp_path / "run")
    assert again.record.to_dict() == run.record.to_dict()
    np.testing.assert_array_equal(again.scorer.users, run.scorer.users)
    user = split.train.user_ids[7]
    assert again.recommend(user, k=5) == run.recommend(user, k=5)
    assert again.split.fingerprint == split.fingerprint


def test_saving_later_writes_the_same_as_recording(split, tmp_path):
    run = fit(split, out=tmp_path / "recorded")
    run.save(tmp_path / "saved")
    for name in ("run.json", "epochs.jsonl", "metrics.json", "weights.safetensors", "split.parquet"):
        assert (tmp_path / "recorded" / name).read_bytes() == (tmp_path / "saved" / name).read_bytes()


def test_a_folder_that_holds_a_run_is_left_alone(split, tmp_path):
    run = fit(split, out=tmp_path / "run")
    before = (tmp_path / "run" / "run.json").read_bytes()
    for again in (lambda: fit(split, out=tmp_path / "run", seed=9), lambda: run.save(tmp_path / "run")):
        with pytest.raises(InputError, match="already holds a run"):
            again()
    assert (tmp_path / "run" / "run.json").read_bytes() == before


MEMBERS = bn.MF(dim=3, ensemble_size=2, learning_rate=0.05)


@pytest.mark.parametrize(
    "sampler",
    [bn.SRNS(memory=3, fresh=5), bn.AOBPR(scale=5, rank="factor"), bn.BNS(cdf="refreshed"), bn.DNS()],
    ids=str,
)
def test_members_train_with_every_kind_of_sampler_and_are_stored_as_one_model(split, tmp_path, sampler):
    run = fit(split, sampler, model=MEMBERS, out=tmp_path / "run")
    again = bn.load_run(tmp_path / "run")
    assert run.scorer.users.shape[1] == 6
    assert again.evaluate(k=5).mean == run.evaluate(k=5).mean
    assert again.recommend(split.train.user_ids[0], k=3) == run.recommend(split.train.user_ids[0], k=3)
    several = fit(split, sampler, model=replace(MEMBERS, threads=2))
    assert np.isfinite(several.scorer.users).all()


def test_the_information_of_members_is_that_of_their_mean(split):
    """A step is taken before it is told, so that the first example of the first epoch has the first vectors."""
    learner = MEMBERS.start(split.train, rng=np.random.default_rng(0))
    users, items = (vectors.copy() for vectors in learner.embeddings())
    sampler = bn.RNS().prepare(split.train, rng=np.random.default_rng(0))
    order = np.arange(len(split.train))
    first = next(iter(learner.train_epoch(sampler, epoch=1, order=order, rng=np.random.default_rng(1))))
    w, i, j = users[first.users[0]], items[split.train.indices[0]], items[first.negatives[0]]
    assert first.info[0] == pytest.approx(1 / (1 + np.exp(w @ (i - j))), rel=1e-5)


def test_a_run_from_before_there_were_members_is_resumed(split, tmp_path):
    whole = fit(split, epochs=6)
    fit(split, epochs=3, out=tmp_path / "run")
    head = json.loads((tmp_path / "run" / files.HEAD).read_text())
    assert head["record"]["spec"]["model"].pop("ensemble_size") == 1
    (tmp_path / "run" / files.HEAD).write_text(json.dumps(head))
    resumed = fit(split, epochs=6, out=tmp_path / "run", resume=True)
    assert resumed.scorer.users.tobytes() == whole.scorer.users.tobytes()
    with pytest.raises(InputError, match="model ensemble_size was 1, now it is 2"):
        fit(split, epochs=7, out=tmp_path / "run", resume=True, model=bn.MF(dim=4, learning_rate=0.05, ensemble_size=2))


@pytest.mark.parametrize("sampler", [bn.BNS(), bn.SRNS(memory=3, fresh=5), bn.AOBPR(scale=5, rank="factor")], ids=str)
@pytest.mark.parametrize("stop", [3, 5])
def test_a_resumed_run_ends_in_the_same_bytes(validated, tmp_path, sampler, stop):
    class StoppedError(Exception):
        pass

    def stopping(line):
        if line["epoch"] == stop:
            raise StoppedError

    whole = fit(validated, sampler, epochs=7, out=tmp_path / "whole", checkpoint_every=2)
    with pytest.raises(StoppedError):
        fit(validated, sampler, epochs=7, out=tmp_path / "cut", checkpoint_every=2, progress=stopping)
    assert not (tmp_path / "cut" / files.METRICS).exists()
    resumed = fit(validated, sampler, epochs=7, out=tmp_path / "cut", checkpoint_every=2, resume=True)
    assert resumed.scorer.users.tobytes() == whole.scorer.users.tobytes()
    assert without_seconds(resumed.record.epochs) == without_seconds(whole.record.epochs)
    assert resumed.record.final == whole.record.final
    assert (tmp_path / "cut" / "metrics.json").read_bytes() == (tmp_path / "whole" / "metrics.json").read_bytes()


def test_the_best_epoch_survives_an_interruption_after_it(validated, tmp_path):
    """The model over-fits, so that the best epoch lies before the checkpoint that training is resumed from."""
    model = bn.MF(dim=32, learning_rate=0.3, regularization=1e-4, init_scale=0.1)
    settings = {"sampler": bn.DNS(candidates=5), "model": model, "checkpoint_every": 10}
    whole = fit(validated, epochs=30, **settings)
    fit(validated, epochs=20, out=tmp_path / "run", **settings)
    resumed = fit(validated, epochs=30, out=tmp_path / "run", resume=True, **settings)
    assert whole.record.reported_epoch <= 20
    assert resumed.record.reported_epoch == whole.record.reported_epoch
    assert resumed.scorer.users.tobytes() == whole.scorer.users.tobytes()


def test_a_resumed_run_that_diverges_is_kept(split, tmp_path):
    wild = bn.MF(dim=4, learning_rate=1.5, regularization=0.5, init_scale=0.1)
    fit(split, epochs=1, out=tmp_path / "run", model=wild)
    with pytest.raises(DivergedError):
        fit(split, epochs=400, out=tmp_path / "run", resume=True, model=wild)
    assert (tmp_path / "run" / "run.json").exists()


def test_an_extension_that_was_interrupted_is_not_taken_for_finished(split, tmp_path):
    def interrupting(line):
        raise KeyboardInterrupt

    fit(split, out=tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        fit(split, epochs=9, out=tmp_path / "run", resume=True, progress=interrupting)
    with pytest.raises(InputError, match="was not finished"):
        bn.load_run(tmp_path / "run")


def test_a_line_lost_before_the_checkpoint_is_written_again(split, tmp_path):
    whole = fit(split, epochs=6)
    fit(split, out=tmp_path / "run")
    lines = (tmp_path / "run" / "epochs.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "run" / "epochs.jsonl").write_text("".join(lines[:2]))
    resumed = fit(split, epochs=6, out=tmp_path / "run", resume=True)
    assert without_seconds(resumed.record.epochs) == without_seconds(whole.record.epochs)
    assert len((tmp_path / "run" / "epochs.jsonl").read_text().splitlines()) == 6


def test_samplers_never_see_the_truth(split):
    class Curious(bn.NegativeSampler):
        def prepare(self, train, *, rng):
            assert train.truth is None
            return self

        def sample(self, batch):
            assert batch.train.truth is None
            return np.full(len(batch.users), bn.NO_NEGATIVE)

    assert split.truth is not None
    fit(split, Curious(), epochs=1)


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


def test_an_interrupt_leaves_a_checkpoint(split, tmp_path):
    def interrupting(line):
        if line["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(split, out=tmp_path / "run", progress=interrupting)
    assert int(files.read_arrays(tmp_path / "run" / files.CHECKPOINT)["progress"][0]) == 2


def test_a_finished_run_can_be_trained_further(split, tmp_path):
    whole = fit(split, epochs=6)
    fit(split, epochs=4, out=tmp_path / "run")
    longer = fit(split, epochs=6, out=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(longer.scorer.users, whole.scorer.users)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"seed": 9}, "another seed"), ({"model": bn.MF(dim=5)}, "model dim was 4, now it is 5")],
)
def test_resuming_as_another_run_is_refused(split, tmp_path, change, words):
    fit(split, out=tmp_path / "run")
    with pytest.raises(InputError, match=words):
        fit(split, out=tmp_path / "run", resume=True, **change)


def test_resuming_with_fewer_epochs_than_were_trained_is_refused(split, tmp_path):
    fit(split, out=tmp_path / "run")
    with pytest.raises(InputError, match="already holds 4 epochs"):
        fit(split, epochs=3, out=tmp_path / "run", resume=True)


def test_a_line_that_a_killed_process_left_unfinished_does_not_count(split, tmp_path):
    whole = fit(split, epochs=6)
    fit(split, out=tmp_path / "run")
    with (tmp_path / "run" / "epochs.jsonl").open("a") as lines:
        lines.write('{"epoch": 5, "tn')
    resumed = fit(split, epochs=6, out=tmp_path / "run", resume=True)
    assert without_seconds(resumed.record.epochs) == without_seconds(whole.record.epochs)


def test_a_run_killed_before_its_split_was_written_can_be_resumed(split, tmp_path):
    fit(split, out=tmp_path / "run")
    for name in ("split.parquet", "checkpoint.safetensors", "metrics.json"):
        (tmp_path / "run" / name).unlink()
    fit(split, out=tmp_path / "run", resume=True)
    assert bn.load_run(tmp_path / "run").split.fingerprint == split.fingerprint


@pytest.mark.parametrize("name", ["run.json", "checkpoint.safetensors"])
def test_a_spoiled_run_is_called_damaged(split, tmp_path, name):
    fit(split, out=tmp_path / "run")
    (tmp_path / "run" / name).write_bytes(b"{]")
    with pytest.raises(InputError, match="the run is damaged"):
        fit(split, out=tmp_path / "run", resume=True)


def test_resuming_on_other_data_is_refused(split, validated, tmp_path):
    fit(split, out=tmp_path / "run")
    with pytest.raises(InputError, match="other data"):
        fit(validated, out=tmp_path / "run", resume=True, select="last")


def test_an_unfinished_run_says_how_to_finish_it(split, tmp_path):
    fit(split, out=tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    with pytest.raises(InputError, match="was not finished"):
        bn.load_run(tmp_path / "run")


def test_records_are_json_without_nan(split, tmp_path):
    fit(split, out=tmp_path / "run")
    for line in (tmp_path / "run" / "epochs.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(name))


# --------------------------------------------------------------------------------------------------------- odd worlds


def test_a_diverging_run_names_the_epoch_and_what_to_lower_and_leaves_nothing(split, tmp_path):
    with pytest.raises(DivergedError, match=r"epoch \d+.*lower learning_rate"):
        fit(split, model=bn.MF(learning_rate=1e6), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "sampler", [bn.RNS(), bn.PNS(), bn.DNS(candidates=5), bn.SRNS(), bn.BNS(), bn.AOBPR()], ids=str
)
def test_a_user_who_chose_everything_is_skipped_and_counted(sampler):
    train = interactions([[0, 1, 2, 3, 4], [0, 1], [2]], 5)
    test = interactions([[], [2], [0]], 5)
    run = bn.fit(bn.MF(dim=2), _given(train, test), sampler, epochs=2, progress=False)
    assert run.record.data["n_users_without_negatives"] == 1
    assert [line["skipped"] for line in run.record.epochs] == [5, 5]


def test_users_with_fewer_unseen_items_than_candidates_are_counted():
    train = interactions([[0, 1, 2, 3], [0]], 5)
    test = interactions([[], [2]], 5)
    run = bn.fit(bn.MF(dim=2), _given(train, test), bn.BNS(candidates=3), epochs=1, progress=False)
    assert run.record.data["n_users_short_of_candidates"] == 1
    assert run.record.epochs[0]["skipped"] == 0


def test_users_and_items_only_in_test_are_counted():
    train, test = interactions([[0, 1], [], [1]], 4), interactions([[2], [0], [3]], 4)
    record = bn.fit(bn.MF(dim=2), _given(train, test), bn.BNS(), epochs=1, progress=False).record
    assert (record.data["n_test_only_users"], record.data["n_test_only_items"]) == (1, 2)


def test_a_single_user_works():
    split = _given(interactions([[0, 1]], 4), interactions([[2]], 4))
    assert bn.fit(bn.MF(dim=2), split, bn.BNS(), epochs=2, progress=False).evaluate(k=2).n_users == 1


def test_a_sampler_that_picks_a_positive_is_told_so(split):
    class Wrong(bn.NegativeSampler):
        def sample(self, batch):
            return batch.positives

    with pytest.raises(InputError, match="who chose it in training"):
        fit(split, Wrong())


@pytest.mark.parametrize("answer", [lambda n: np.zeros(n + 1, int), lambda n: np.zeros(n), lambda n: np.full(n, 10**6)])
def test_a_sampler_that_answers_nonsense_is_told_so(split, answer):
    class Wrong(bn.NegativeSampler):
        def sample(self, batch):
            return answer(len(batch.users))

    with pytest.raises(InputError, match="sample must return"):
        fit(split, Wrong())


def test_a_sampler_of_one_s_own_gets_as_many_examples_at_once_as_asked_for(split):
    sizes = []

    class Watching(bn.NegativeSampler):
        def sample(self, batch):
            sizes.append(len(batch.users))
            return np.full(len(batch.users), bn.NO_NEGATIVE)

    fit(split, Watching(), epochs=1, model=bn.MF(dim=2, sampling_batch=100))
    assert max(sizes) == 100
    assert sum(sizes) == len(split.train)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dim": 0}, "dim must be"),
        ({"learning_rate": 0}, "learning_rate must be"),
        ({"regularization": -1}, "regularization must be"),
        ({"regularization": 0}, "give init_scale"),
        ({"learning_rate": "x"}, "learning_rate must be a number"),
        ({"update": "both"}, "update must be"),
        ({"shuffle": "never"}, "shuffle must be"),
        ({"threads": 0}, "threads must be"),
    ],
)
def test_a_wrong_model_setting_is_refused(settings, words):
    with pytest.raises(InputError, match=words):
        bn.MF(**settings)


def _given(train, test):
    return Split(train=train, test=replace(test, user_ids=train.user_ids, item_ids=train.item_ids))


@pytest.mark.parametrize(
    ("model", "sampler"), [("mf", bn.RNS()), (bn.MF, bn.RNS()), (bn.MF(), "rns"), (bn.MF(), bn.RNS)]
)
def test_a_name_or_a_class_is_not_taken_for_an_object(model, sampler):
    split = bn.split(bn.synthetic(30, 40, seed=0), test=0.2, seed=0)
    with pytest.raises(InputError, match=r"(model|sampler) must be an object such as bn\.(MF|BNS)\(\), got "):
        bn.fit(model, split, sampler, epochs=1, progress=False)
