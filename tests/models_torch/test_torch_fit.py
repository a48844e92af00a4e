"""``fit`` with torch models: the same loop, records and checkpoints as with the compiled MF."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import metadata

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.data.splits import Split
from bayesneg.errors import BayesnegError, DivergedError, InputError
from bayesneg.runs import folder as files
from worlds import interactions

torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

from bayesneg.models.torch.trainable import Trainable  # noqa: E402

SMALL = bn.LightGCN(dim=4, learning_rate=0.05, device="cpu")


@pytest.fixture(scope="module")
def split():
    return bn.split(bn.synthetic(80, 100, seed=3), test=0.2, seed=0)


@pytest.fixture(scope="module")
def validated():
    return bn.split(bn.synthetic(80, 100, seed=3), test=0.2, validation=0.2, seed=0)


def fit(split, sampler=None, **more):
    settings = {"epochs": 3, "progress": False, "model": SMALL} | more
    return bn.fit(settings.pop("model"), split, sampler or bn.BNS(), **settings)


def without_seconds(lines):
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def vectors(run):
    return run.scorer.users.tobytes() + run.scorer.items.tobytes()


# ----------------------------------------------------------------------------------------------------------- training


@pytest.mark.parametrize("kind", [bn.LightGCN, bn.TorchMF])
def test_training_learns(split, kind):
    run = fit(split, bn.RNS(), epochs=20, model=kind(dim=8, device="cpu"))
    curve = run.record.at_epochs("ndcg@20")
    assert run.evaluate(k=10).mean["auc"] > 0.6
    assert curve[20] > 1.2 * curve[1]


def test_same_seed_same_bytes_and_another_seed_others(split):
    one, two, other = fit(split, seed=1), fit(split, seed=1), fit(split, seed=2)
    assert vectors(one) == vectors(two)
    assert without_seconds(one.record.epochs) == without_seconds(two.record.epochs)
    assert vectors(one) != vectors(other)


def test_the_number_of_threads_changes_no_byte():
    """In a world large enough that torch shares its work among threads."""
    split = bn.split(bn.synthetic(1500, 1200, seed=0), test=0.2, seed=0)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            run = fit(split, model=bn.LightGCN(dim=32, batch_size=4096, device="cpu"), epochs=1)
            found.append(vectors(run))
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


def test_global_random_state_is_untouched(split):
    torch_before, numpy_before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    fit(split)
    fit(split, model=bn.TorchModel(build=two_vectors, device="cpu"), epochs=1)
    assert torch.equal(torch.random.get_rng_state(), torch_before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


def test_global_random_state_changes_no_result(split):
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(vectors(fit(split, model=bn.TorchModel(build=two_vectors, device="cpu"), epochs=1)))
    assert found[0] == found[1]


def test_initial_vectors_have_the_stated_spread():
    train = bn.synthetic(500, 500, seed=0)
    learner = bn.LightGCN(init_scale=0.3, device="cpu").start(train, rng=np.random.default_rng(0))
    assert learner.module.first.detach().numpy().std() == pytest.approx(0.3, rel=0.02)


def test_vectors_are_float32(split):
    assert fit(split, epochs=1).scorer.users.dtype == np.float32


@pytest.mark.parametrize("batch_size", [1, 100, 10**6])
def test_every_example_is_trained_once_an_epoch_whatever_the_batch(batch_size):
    sizes = []

    class Watching(bn.NegativeSampler):
        def sample(self, batch):
            sizes.append(len(batch.users))
            return bn.RNS().sample(batch)

    split = bn.split(bn.synthetic(20, 30, seed=0), test=0.2, seed=0)
    fit(split, Watching(), epochs=1, model=bn.TorchMF(dim=2, batch_size=batch_size, device="cpu"))
    assert sum(sizes) == len(split.train)
    assert set(sizes[:-1]) <= {batch_size}
    assert sizes[-1] == (len(split.train) % batch_size or batch_size)


@pytest.mark.parametrize("shuffle", ["once", "epoch"])
def test_shuffle_once_keeps_the_order_and_shuffle_epoch_changes_it(split, shuffle):
    seen = []

    class Watching(bn.NegativeSampler):
        def sample(self, batch):
            seen.append(batch.positions)
            return bn.RNS().sample(batch)

    fit(split, Watching(), epochs=2, model=bn.TorchMF(dim=2, batch_size=10**6, shuffle=shuffle, device="cpu"))
    assert np.array_equal(*seen) == (shuffle == "once")


@pytest.mark.parametrize(
    "sampler", [bn.RNS(), bn.PNS(), bn.DNS(candidates=5), bn.SRNS(), bn.BNS(), bn.AOBPR()], ids=str
)
def test_a_user_who_chose_everything_is_skipped_and_counted(sampler):
    train, test = interactions([[0, 1, 2, 3, 4], [0, 1], [2], []], 5), interactions([[], [2], [0], [1]], 5)
    parts = Split(train=train, test=replace(test, user_ids=train.user_ids, item_ids=train.item_ids))
    run = fit(parts, sampler, epochs=2)
    assert run.record.data["n_users_without_negatives"] == 1
    assert [line["skipped"] for line in run.record.epochs] == [5, 5]


# ------------------------------------------------------------------------------------------------------------ records


def test_the_record_is_like_that_of_mf(split):
    torch_run, mf_run = fit(split), fit(split, model=bn.MF(dim=4))
    assert [set(line) for line in torch_run.record.epochs] == [set(line) for line in mf_run.record.epochs]
    assert set(torch_run.record.final) == set(mf_run.record.final)
    assert torch_run.record.model == "LightGCN (learning_rate=0.05, device=cpu, dim=4)"
    assert torch_run.record.spec["model"]["class"] == "LightGCN"
    assert torch_run.record.versions["torch"] == metadata.version("torch")  # without +cpu or +cu128


def test_a_run_is_recorded_read_back_and_reported(split, tmp_path):
    run = fit(split, out=tmp_path / "run")
    again = bn.load_run(tmp_path / "run")
    assert again.record.to_dict() == run.record.to_dict()
    assert vectors(again) == vectors(run)
    user = split.train.user_ids[7]
    assert again.recommend(user, k=5) == run.recommend(user, k=5)
    assert "BNS" in bn.write_report([again.record], tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    "sampler",
    [
        bn.BNS(),
        bn.SRNS(memory=3, fresh=5),
        bn.AOBPR(scale=5, rank="factor"),
        bn.samplers.DENS(warmup=1, gate_learning_rate=0.5),
    ],
    ids=lambda s: type(s).__name__,
)
def test_a_resumed_run_ends_in_the_same_bytes(validated, tmp_path, sampler):
    class StoppedError(Exception):
        pass

    def stopping(line):
        if line["epoch"] == 3:
            raise StoppedError

    settings = {
        "sampler": sampler,
        "epochs": 5,
        "checkpoint_every": 2,
        "model": bn.LightGCN.paper(dim=4, decay_every=2, device="cpu"),
    }
    whole = fit(validated, out=tmp_path / "whole", **settings)
    with pytest.raises(StoppedError):
        fit(validated, out=tmp_path / "cut", progress=stopping, **settings)
    resumed = fit(validated, out=tmp_path / "cut", resume=True, **settings)
    assert vectors(resumed) == vectors(whole)
    assert without_seconds(resumed.record.epochs) == without_seconds(whole.record.epochs)
    for name in (files.METRICS, files.WEIGHTS):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_best_epoch_on_validation_survives_an_interruption(validated, tmp_path):
    """The model over-fits, so that the best epoch lies before the checkpoint that training is resumed from."""
    model = bn.TorchMF(dim=16, learning_rate=0.1, regularization=0.0, device="cpu")
    settings = {"sampler": bn.DNS(candidates=20), "model": model, "checkpoint_every": 8}
    whole = fit(validated, epochs=12, **settings)
    fit(validated, epochs=8, out=tmp_path / "run", **settings)
    resumed = fit(validated, epochs=12, out=tmp_path / "run", resume=True, **settings)
    curve = whole.record.at_epochs("validation_ndcg@20")
    assert whole.record.reported_epoch == max(curve, key=curve.__getitem__) < 8
    assert vectors(resumed) == vectors(whole)
    assert whole.evaluate(k=20, part="validation").mean["ndcg@20"] == pytest.approx(max(curve.values()))


def test_resuming_with_other_settings_is_refused(split, tmp_path):
    fit(split, out=tmp_path / "run")
    with pytest.raises(InputError, match="model layers was 1, now it is 2"):
        fit(
            split,
            out=tmp_path / "run",
            resume=True,
            model=bn.LightGCN(dim=4, layers=2, learning_rate=0.05, device="cpu"),
        )


def test_several_runs_at_a_time_change_no_number(split):
    """Modules are built from torch's one global generator, each from the seed of its own fit."""

    def slowly(train):
        torch.rand(1)
        time.sleep(0.05)  # so that the builds would overlap
        return TwoVectors(train)

    model = bn.TorchModel(build=slowly, device="cpu")
    one, three = (
        bn.compare(model, split, {"BNS": bn.BNS()}, seeds=3, epochs=2, jobs=jobs, progress=False) for jobs in (1, 3)
    )
    assert [record.final for record in one] == [record.final for record in three]


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_asking_for_a_gpu_that_is_not_there_is_refused(split, tmp_path):
    with pytest.raises(InputError, match=r"device is 'cuda', but torch sees no GPU here; use device='cpu'"):
        fit(split, model=bn.LightGCN(device="cuda"), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_on_a_gpu_runs_are_trained_one_at_a_time(split, monkeypatch):
    from bayesneg.experiments.runner import runs_at_once

    monkeypatch.setattr("bayesneg.models.torch.device.pick_device", lambda name: torch.device("cuda"))
    assert runs_at_once([bn.LightGCN()], None) == 1
    with pytest.raises(InputError, match="jobs must be 1 on a GPU"):
        bn.compare(bn.LightGCN(), split, {"RNS": bn.RNS()}, seeds=1, epochs=1, jobs=2)


@pytest.mark.parametrize("sampler", [bn.RNS(), bn.BNS(), bn.SRNS(), bn.AOBPR()], ids=lambda s: type(s).__name__)
def test_a_run_that_leaves_the_finite_numbers_names_the_epoch_and_leaves_nothing(split, tmp_path, sampler):
    wild = bn.LightGCN(dim=4, learning_rate=1e30, device="cpu")
    with pytest.raises(DivergedError, match=r"diverged in epoch \d.*lower learning_rate"):
        fit(split, sampler, model=wild, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_nan_among_the_embeddings_is_noticed_in_its_epoch(split, tmp_path):
    class Spoiling(bn.RNS):
        def end_epoch(self, epoch, scorer):
            if epoch == 2:
                with torch.no_grad():
                    scorer.module.first[0, 0] = float("nan")

    with pytest.raises(DivergedError, match="diverged in epoch 2"):
        fit(split, Spoiling(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("sampler", [bn.RNS(), bn.BNS()], ids=lambda s: type(s).__name__)
def test_out_of_memory_names_the_batch_and_the_chunk(split, tmp_path, monkeypatch, sampler):
    def full(self, *arguments):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    monkeypatch.setattr(Trainable, "update", full)
    with pytest.raises(
        BayesnegError, match=r"out of memory on cpu: lower batch_size \(now 128\), chunk \(now 16777216\) or"
    ):
        fit(split, sampler, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


class TwoVectors(torch.nn.Module):
    def __init__(self, train):
        super().__init__()
        self.users, self.items = torch.nn.Embedding(train.n_users, 4), torch.nn.Embedding(train.n_items, 4)

    def forward(self):
        return self.users.weight, self.items.weight


def two_vectors(train):
    return TwoVectors(train)
