"""Going on from an earlier run on data whose users and items have changed."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.data.splits import Split
from bayesneg.runs.starting import Start, trained_embeddings_of


@pytest.fixture(scope="module")
def old():
    return bn.split(_world(range(30), range(45)), test=0.2, seed=0)


@pytest.fixture(scope="module")
def new():
    """The newer data has users and items that the old one lacks, lacks some of the old ones, and has another order."""
    return bn.split(_world(range(39, 9, -1), range(59, 14, -1)), test=0.2, seed=0)


def _world(users: range, items: range) -> bn.Interactions:
    rng = np.random.default_rng(0)
    pairs = [(user, item) for user in users for item in items if rng.random() < 0.2]
    return bn.Interactions.from_pairs([f"u{user}" for user, _ in pairs], [f"i{item}" for _, item in pairs])


@pytest.fixture(scope="module")
def run(old):
    return bn.fit(bn.MF(dim=4), old, bn.RNS(), epochs=2, progress=False)


def started(run, split, model=None):
    """The learner's embeddings before the first epoch, and those of a fresh one."""
    from bayesneg.seeding import stream

    model = model or bn.MF(dim=4)
    fresh = model.start(split.train, rng=stream(0, "init")).trained_embeddings()
    learner = Start(run, model, split.train, split.held_out).begin(split.train, rng=stream(0, "init"))
    return learner, fresh


def check_rows(run_vectors, run, split, learner, fresh):
    for vectors, before, afresh, ids, numbers in zip(
        learner.trained_embeddings(),
        run_vectors,
        fresh,
        (split.train.user_ids, split.train.item_ids),
        (run.split.train.numbers_of_users, run.split.train.numbers_of_items),
        strict=True,
    ):
        known = [each in numbers for each in ids.tolist()]
        assert 0 < sum(known) < len(known)
        for row, each in enumerate(ids.tolist()):
            expected = before[numbers[each]] if each in numbers else afresh[row]
            assert np.array_equal(vectors[row], expected)


def test_known_users_and_items_start_from_the_run_and_new_ones_afresh(run, new):
    learner, fresh = started(run, new)
    check_rows(run.scorer.embeddings(), run, new, learner, fresh)
    assert any(each not in run.split.train.numbers_of_items for each in new.train.item_ids.tolist())


def test_the_record_says_where_a_run_started(run, new):
    record = bn.fit(bn.MF(dim=4), new, bn.RNS(), epochs=1, progress=False, start=run).record
    facts = record.spec["start"]
    assert facts["label"] == "RNS"
    assert facts["fingerprint"] == run.split.fingerprint
    assert facts["n_known_users"] + facts["n_new_users"] == new.train.n_users
    assert facts["n_known_items"] + facts["n_new_items"] == new.train.n_items
    assert facts["n_new_items"] > 0


def test_without_a_start_the_record_and_the_bytes_are_as_before(old, run):
    assert "start" not in run.record.spec
    again = bn.fit(bn.MF(dim=4), old, bn.RNS(), epochs=2, progress=False)
    assert np.array_equal(again.scorer.items, run.scorer.items)


def test_going_on_is_better_than_one_epoch_afresh(old):
    """On the same data a start of 30 epochs and one more is what 31 would give, about."""
    model, sampler = bn.MF(dim=4, learning_rate=0.05), bn.RNS()
    long = bn.fit(model, old, sampler, epochs=30, evaluate_every=30, progress=False)
    further = bn.fit(model, old, sampler, epochs=1, progress=False, start=long)
    moved = np.linalg.norm(further.scorer.items - long.scorer.items) / np.linalg.norm(long.scorer.items)
    assert 0 < moved < 0.5


@pytest.mark.parametrize("how", [{"similarity": "cosine", "learning_rate": 0.1}, {"ranking": "cosine"}])
def test_a_model_ranked_by_cosine_goes_on_from_its_vectors_and_not_their_directions(old, new, tmp_path, how):
    model = bn.MF(dim=4, **how)
    run = bn.fit(model, old, bn.RNS(), epochs=2, progress=False, out=tmp_path / "run")
    lengths = np.linalg.norm(run.trained.items, axis=1)
    assert lengths.std() > 0.01
    loaded = bn.load_run(tmp_path / "run")
    assert loaded.trained is None
    for each in (run, loaded, bn.load_run(run.save(tmp_path / "saved"))):
        learner, fresh = started(each, new, model)
        check_rows(run.trained, each, new, learner, fresh)


@pytest.mark.parametrize("layers", [0, 2])
def test_torch_models_go_on_from_the_first_layer(old, new, tmp_path, layers):
    pytest.importorskip("torch")
    model = bn.LightGCN(dim=4, layers=layers, batch_size=64, device="cpu")
    run = bn.fit(model, old, bn.RNS(), epochs=2, progress=False, out=tmp_path / "run")
    vectors = run.trained or run.scorer.embeddings()
    for each in (run, bn.load_run(tmp_path / "run"), bn.load_run(run.save(tmp_path / "saved"))):
        learner, fresh = started(each, new, model)
        check_rows(vectors, each, new, learner, fresh)
    further = bn.fit(model, new, bn.RNS(), epochs=1, progress=False, start=run)
    assert np.isfinite(further.scorer.items).all()


@pytest.mark.parametrize("layers", [0, 2])
def test_a_user_without_newer_interactions_keeps_the_vectors_of_the_earlier_run(old, tmp_path, layers):
    """Smoothing gives a user without an edge a part of the first layer alone, which weight decay shrinks."""
    pytest.importorskip("torch")
    idle = old.train.users == 3
    newer = Split(old.train.select(~idle), old.test)
    for how in ({}, {"ranking": "cosine"}):
        model = bn.LightGCN(dim=4, layers=layers, batch_size=64, device="cpu", regularization=0.1, **how)
        before = bn.fit(model, old, bn.RNS(), epochs=2, progress=False)
        after = bn.fit(model, newer, bn.RNS(), epochs=3, progress=False, start=before, out=tmp_path / f"run{len(how)}")
        np.testing.assert_allclose(after.scorer.users[3], before.scorer.users[3], rtol=1e-6)
        assert not np.allclose(after.scorer.users[4], before.scorer.users[4])
        first = (before.trained or before.scorer.embeddings()).users[3]
        for each in (after, bn.load_run(tmp_path / f"run{len(how)}")):
            np.testing.assert_array_equal(trained_embeddings_of(each).users[3], first)
            np.testing.assert_allclose(each.scorer.users[3], before.scorer.users[3], rtol=1e-6)
        again = bn.fit(model, newer, bn.RNS(), epochs=1, progress=False, start=after)
        np.testing.assert_allclose(again.scorer.users[3], before.scorer.users[3], rtol=1e-6)


def test_the_best_epoch_is_gone_on_from_where_it_was_reported(old, tmp_path):
    split = bn.split(_world(range(30), range(45)), test=0.2, validation=0.2, seed=0)
    model = bn.MF(dim=4, ranking="cosine")
    run = bn.fit(model, split, bn.RNS(), epochs=6, seed=1, progress=False, out=tmp_path / "run")
    assert run.record.reported_epoch < 6
    learner, _ = started(bn.load_run(tmp_path / "run"), split, model)
    assert np.array_equal(learner.trained_embeddings().items, run.trained.items)


def test_a_run_with_a_start_resumes_to_the_same_bytes(run, new, tmp_path):
    how = {"progress": False, "start": run}
    whole = bn.fit(bn.MF(dim=4), new, bn.RNS(), epochs=4, **how)
    bn.fit(bn.MF(dim=4), new, bn.RNS(), epochs=2, out=tmp_path / "run", **how)
    resumed = bn.fit(bn.MF(dim=4), new, bn.RNS(), epochs=4, out=tmp_path / "run", resume=True, **how)
    assert np.array_equal(resumed.scorer.items, whole.scorer.items)
    with pytest.raises(bn.BayesnegError, match="holds a run with other settings: start was"):
        bn.fit(bn.MF(dim=4), new, bn.RNS(), epochs=5, out=tmp_path / "run", resume=True, progress=False)


def test_a_start_that_does_not_fit_gets_a_sentence(run, old, new):
    other = bn.split(
        bn.Interactions.from_pairs(["x", "x", "y", "y"], ["p", "q", "p", "q"]), test=0.5, by="user", seed=0
    )
    ease = bn.fit(bn.baselines.EASE(), old, progress=False)
    for model, data, start, sentence in (
        (bn.MF(dim=8), new, run, r"start has dim 4, and the model has dim 8; give dim=4 \(--set dim=4\)"),
        (bn.MF(dim=2, ensemble_size=2), new, run, "start has dim 4, and the model has dim 2"),
        (bn.MF(dim=4, ensemble_size=2), new, run, "start has ensemble_size 1, and the model has ensemble_size 2"),
        (
            bn.TorchMF(dim=4),
            new,
            run,
            "start is a run of MF, and the model is TorchMF; train MF, or start from a run of",
        ),
        (bn.MF(dim=4), new, ease, "start is a run of EASE, and the model is MF"),
        (bn.baselines.EASE(), new, run, "EASE is solved from all data at once; call fit without start"),
        (bn.MF(dim=4), other, run, "start knows no user and no item of the data"),
        (bn.MF(dim=4), new, "runs/old", "start must be a run, such as bn.load_run"),
    ):
        sampler = None if isinstance(model, bn.baselines.Baseline) else bn.RNS()
        with pytest.raises(bn.BayesnegError, match=sentence):
            bn.fit(model, data, sampler, epochs=1, progress=False, start=start)


def test_a_custom_module_cannot_be_started_from_a_run(old):
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):
        def __init__(self, train):
            super().__init__()
            self.users, self.items = (torch.nn.Parameter(torch.rand(n, 2)) for n in (train.n_users, train.n_items))

        def forward(self):
            return self.users, self.items

    model = bn.TorchModel(build=Module, device="cpu")
    run = bn.fit(model, old, bn.RNS(), epochs=1, progress=False)
    with pytest.raises(bn.BayesnegError, match="start works with MF, TorchMF and LightGCN"):
        bn.fit(model, old, bn.RNS(), epochs=1, progress=False, start=run)


def test_held_out_interactions_that_the_start_was_trained_on_are_counted():
    data = bn.synthetic(60, 80, seed=0)
    first, second = (bn.split(data, test=0.2, seed=seed) for seed in (0, 1))
    model = bn.MF(dim=4)
    start = bn.fit(model, first, bn.RNS(), epochs=1, progress=False)
    run = bn.fit(model, second, bn.RNS(), epochs=1, start=start, progress=False)
    pairs = set(zip(first.train.users.tolist(), first.train.indices.tolist(), strict=True))
    seen = sum(pair in pairs for pair in zip(second.test.users.tolist(), second.test.indices.tolist(), strict=True))
    assert 0 < seen < len(second.test)
    facts = run.record.spec["start"]
    assert (facts["n_held_out"], facts["n_held_out_seen"]) == (len(second.test), seen)
    same = bn.fit(model, first, bn.RNS(), epochs=1, start=start, progress=False)
    assert same.record.spec["start"]["n_held_out_seen"] == 0


def test_known_users_and_items_without_new_interactions_keep_what_was_learned(old, tmp_path):
    """User u3 and item i7 are in the newer data, and only their held-out interactions; u99 is new and has no others."""
    rows = [(user, item) for user, item in zip(old.train.users, old.train.indices, strict=True)]
    users, items = (old.train.user_ids[[u for u, _ in rows]], old.train.item_ids[[i for _, i in rows]])
    kept = (users != "u3") & (items != "i7")
    pairs = list(zip(users[kept].tolist(), items[kept].tolist(), strict=True))
    later = [*pairs, ("u3", "i1"), ("u3", "i2"), ("u99", "i1"), ("u5", "i7")]
    data = bn.Interactions.from_pairs(*zip(*later, strict=True))
    held = np.isin(data.user_ids[data.users], ["u3", "u99"]) | (data.item_ids[data.indices] == "i7")
    newer = bn.Split(train=data.select(~held), test=data.select(held))
    model = bn.MF(dim=4, learning_rate=0.05)
    first = bn.fit(model, old, bn.RNS(), epochs=20, evaluate_every=20, progress=False)
    second = bn.fit(model, newer, bn.RNS(), epochs=1, start=first, progress=False, out=tmp_path / "run")
    third = bn.fit(model, newer, bn.RNS(), epochs=1, start=second, progress=False)
    numbers = [newer.train.user_number(user) for user in ("u3", "u99")]
    for run in (second, bn.load_run(tmp_path / "run"), third):
        own, cold = run.scorer.score_all(np.array(numbers))
        vector = run.scorer.users[numbers[0]]
        np.testing.assert_array_equal(vector, first.scorer.users[old.train.user_number("u3")])
        np.testing.assert_allclose(own, run.scorer.items @ vector, rtol=1e-5)
        np.testing.assert_array_equal(cold, newer.train.popularity)
        assert len(run.similar("i7")) == 10
    loaded = bn.load_export(second.export(tmp_path / "export"))
    assert loaded.recommend("u3") == second.recommend("u3")
