"""On a CUDA GPU: the same choices and results as on the CPU, up to the order of additions."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import BayesnegError, InputError
from bayesneg.seeding import stream

torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

from torch import nn  # noqa: E402

from bayesneg.models.torch.steps import TorchSteps  # noqa: E402

pytestmark = pytest.mark.gpu

SAMPLERS = {
    "rns": bn.RNS(),
    "pns": bn.PNS(),
    "dns": bn.DNS(candidates=4),
    "dns of all": bn.DNS(candidates="all"),
    "bns": bn.BNS(),
    "bns, many candidates": bn.BNS(candidates=20),
    "bns, share of the catalogue": bn.BNS(cdf_over="catalogue"),
    "bns, mixture": bn.BNS(likelihood="mixture"),
    "bns, empirical": bn.BNS(likelihood="empirical"),
    "bns, empirical, refreshed": bn.BNS(likelihood="empirical", cdf="refreshed"),
    "bns over all items": bn.BNS(cdf_over="all"),
    "bns with a schedule": bn.BNS(weight=bn.samplers.LinearDecay(5.0, 2.0, 0.5)),
    "bns after rns": bn.WarmStart(bn.RNS(), bn.BNS(), warmup=1),
    "posterior": bn.Posterior(),
    "aobpr": bn.AOBPR(scale=5.0),
    "aobpr by factor": bn.AOBPR(scale=5.0, rank="factor"),
    "srns": bn.SRNS(memory=3, fresh=4, warmup=2),
}


@pytest.fixture(scope="module")
def split():
    return bn.split(bn.synthetic(80, 100, seed=3), test=0.2, validation=0.1, seed=0)


def fit(split, sampler, *, device="cuda", epochs=3, **more):
    model = more.pop("model", bn.LightGCN(dim=8, learning_rate=0.02, batch_size=100, device=device))
    return bn.fit(model, split, sampler, epochs=epochs, progress=False, select="last", **more)


def test_auto_takes_the_gpu(split):
    learner = bn.LightGCN(dim=4).start(split.train, rng=np.random.default_rng(0))
    assert learner.device.type == "cuda"


@pytest.mark.parametrize("name", sorted(SAMPLERS.keys() - {"aobpr by factor"}))
def test_gpu_and_cpu_train_the_same_vectors(split, name):
    """Three epochs of a small world; one flipped tie would show in a few rows only."""
    gpu, cpu = (fit(split, SAMPLERS[name], device=device).scorer for device in ("cuda", "cpu"))
    near = np.isclose(gpu.items, cpu.items, atol=1e-3).all(axis=1)
    assert near.mean() > 0.95
    np.testing.assert_allclose(gpu.users, cpu.users, atol=0.1)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_recorded_step_is_the_step(split, name, monkeypatch):
    recorded = fit(split, SAMPLERS[name]).scorer
    monkeypatch.setattr(TorchSteps, "_step", TorchSteps._eager_step)
    eager = fit(split, SAMPLERS[name]).scorer
    near = np.isclose(recorded.items, eager.items, atol=1e-3).all(axis=1)
    assert near.mean() > 0.95


@pytest.mark.parametrize("name", ["bns", "srns"])
def test_a_resumed_run_goes_on_where_it_stopped(split, tmp_path, name):
    pytest.importorskip("polars", reason="run folders need polars")
    whole = fit(split, SAMPLERS[name], epochs=4)
    fit(split, SAMPLERS[name], epochs=2, out=tmp_path / "run")
    resumed = fit(split, SAMPLERS[name], epochs=4, out=tmp_path / "run", resume=True)
    near = np.isclose(whole.scorer.items, resumed.scorer.items, atol=1e-3).all(axis=1)
    assert near.mean() > 0.95


class TwoTower(nn.Module):
    def __init__(self, train, dim=6):
        super().__init__()
        self.users, self.items = nn.Embedding(train.n_users, dim), nn.Embedding(train.n_items, dim)
        self.tower = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self):
        return self.tower(self.users.weight), self.tower(self.items.weight)

    def scores(self, users):
        return self.tower(self.users(users)) @ self.tower(self.items.weight).T


NEED_EMBEDDINGS = {"srns", "aobpr by factor", "bns, empirical, refreshed"}


@pytest.mark.parametrize("gives", ["vectors", "scores"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_custom_model_works_with_every_sampler(split, name, gives):
    model = bn.TorchModel(build=TwoTower, gives=gives, device="cuda")
    if gives == "scores" and name in NEED_EMBEDDINGS:
        with pytest.raises(InputError, match="gives scores and no vectors"):
            fit(split, SAMPLERS[name], model=model)
    else:
        assert np.isfinite(fit(split, SAMPLERS[name], model=model).record.final["ndcg@20"])


@pytest.mark.parametrize("penalty", ["batch", "first_layer"])
def test_a_penalty_on_embeddings_trains_the_same_vectors_on_both_devices(split, penalty):
    settings = {"dim": 8, "learning_rate": 0.02, "batch_size": 100, "penalty": penalty, "regularization": 0.1}
    gpu, cpu = (fit(split, bn.BNS(), model=bn.LightGCN(device=device, **settings)).scorer for device in ("cuda", "cpu"))
    assert np.isclose(gpu.items, cpu.items, atol=1e-3).all(axis=1).mean() > 0.95


def test_a_custom_sampler_works(split):
    class Highest(bn.NegativeSampler):
        def sample(self, batch):
            items, _ = bn.samplers.UniformDraw().draw(batch.users, 3, train=batch.train, rng=batch.rng)
            scores = torch.from_numpy(batch.score(np.maximum(items, 0))).cuda()
            return torch.from_numpy(items).gather(1, scores.argmax(dim=1, keepdim=True).cpu())[:, 0]

    assert np.isfinite(fit(split, Highest()).record.final["ndcg@20"])


def test_compare_works(split):
    model = bn.LightGCN(dim=8, device="cuda")
    records = bn.compare(model, split, {"RNS": bn.RNS(), "BNS": bn.BNS()}, seeds=2, epochs=2, progress=False)
    assert [record.label for record in records[::2]] == ["RNS", "BNS", "POPULARITY", "EASE"]


def test_a_large_catalogue_stays_within_memory():
    rng = np.random.default_rng(0)
    n_users, n_items = 2_000, 300_000
    train = bn.Interactions.from_numbers(
        rng.integers(0, n_users, 40_000),
        rng.integers(0, n_items, 40_000),
        user_ids=np.arange(n_users),
        item_ids=np.arange(n_items),
    )
    learner = bn.LightGCN(device="cuda", batch_size=1024).start(train, rng=rng)
    torch.cuda.reset_peak_memory_stats()
    sampler = bn.BNS().prepare(train, rng=rng)
    order = rng.permutation(len(train))[:2048]
    for _ in learner.train_epoch(sampler, epoch=1, order=order, rng=stream(0, "sampler", 1)):
        pass
    assert torch.cuda.max_memory_allocated() < 4 * 2**30


@pytest.mark.parametrize("started", [False, True])
def test_out_of_memory_names_the_batch_and_the_chunk(split, started):
    """Vectors that do not fit, or fit without what Adam remembers of them."""
    sampler = bn.RNS().prepare(split.train, rng=stream(0, "sampler"))

    def start():
        return bn.TorchMF(dim=1 << 17, device="cuda").start(split.train, rng=stream(0, "init"))

    learner = start() if started else None

    def train():
        return list(learner.train_epoch(sampler, epoch=1, order=np.arange(100), rng=stream(0, "sampler", 1)))

    torch.cuda.empty_cache()
    whole = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 32 * 2**20) / whole)
    try:
        with pytest.raises(BayesnegError, match="out of memory on cuda: lower batch_size"):
            train() if started else start()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
