"""Summaries made in torch are those of the specification, and follow the stated rule of refreshing."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.numba.summaries import knot_ranks
from bayesneg.kernels.reference import formulas
from bayesneg.seeding import stream
from worlds import random_interactions

torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

from bayesneg.kernels.torch.formulas import items_above  # noqa: E402
from bayesneg.kernels.torch.score_lists import TrainingRows  # noqa: E402
from bayesneg.models.torch.summaries import TorchSummaries  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def summaries_of(train, device, ranks):
    indptr, items = (torch.from_numpy(a.copy()).to(device) for a in (train.indptr, train.indices))
    return TorchSummaries(TrainingRows(indptr, items, train.n_items), ranks, 4, torch.device(device))


def vectors(rng, train, device):
    return tuple(
        torch.from_numpy(rng.normal(size=(n, 4)).astype(np.float32)).to(device) for n in (train.n_users, train.n_items)
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("over_all", [False, True])
def test_the_knots_are_those_of_the_whole_list(device, over_all):
    rng = np.random.default_rng(0)
    train = random_interactions(rng, 20, 60, most=0.5)
    ranks = knot_ranks(60)
    w, h = vectors(rng, train, device)
    there = torch.arange(20, device=device)
    knots = summaries_of(train, device, ranks).refresh(there, (w, h), 1, moved=0.1, pool=100, over_all=over_all)
    for user in range(20):
        x = (w[user] @ h.T).cpu().numpy()
        listed = np.ones(60, dtype=bool)
        if not over_all:
            listed[train.row(user)] = False
        expected = formulas.summarise(x[listed], np.ones(listed.sum(), dtype=int), ranks)
        known = ranks <= listed.sum()
        length = float(w[user].norm())
        np.testing.assert_allclose(knots[user].cpu().numpy()[known], expected[known] / length, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_a_pool_counts_for_the_items_left_out(device):
    """The top of the list is exact where the pool holds it; the ranks below are near."""
    rng = np.random.default_rng(1)
    train = random_interactions(rng, 30, 4000, most=0.01)
    ranks = knot_ranks(4000)
    w, h = vectors(rng, train, device)
    knots = summaries_of(train, device, ranks).refresh(
        torch.arange(30, device=device), (w, h), 1, moved=0.1, pool=1000, over_all=True
    )
    x = ((w @ h.T) / w.norm(dim=1, keepdim=True)).sort(dim=1, descending=True).values
    found = items_above(knots, torch.from_numpy(ranks).to(device), x[:, [9, 99, 999]])
    assert (
        (found - torch.tensor([9.0, 99.0, 999.0], device=device)).abs().mean(dim=0).cpu() < torch.tensor([5, 25, 120])
    ).all()


@pytest.mark.parametrize("device", DEVICES)
def test_a_summary_is_recomputed_each_epoch_and_when_the_embedding_has_moved(device):
    rng = np.random.default_rng(2)
    train = random_interactions(rng, 5, 30)
    summaries = summaries_of(train, device, knot_ranks(30))
    w, h = vectors(rng, train, device)
    settings = {"moved": 0.1, "pool": 100, "over_all": False}
    which = torch.tensor([0, 1, 1, 2], device=device)
    first = summaries.refresh(which, (w, h), 1, **settings).clone()
    assert first[:3].any(dim=1).all()
    assert not first[3:].any()
    assert torch.equal(summaries.refresh(which, (w, h * 2), 1, **settings), first)  # nobody is due
    w[0] *= 1.05  # has grown, but not far
    w[1] += w[1].norm() * 0.2
    second = summaries.refresh(which, (w, h * 2), 1, **settings).clone()
    assert torch.equal(second[[0, 2]], first[[0, 2]])
    assert not torch.equal(second[1], first[1])
    third = summaries.refresh(which, (w, h * 2), 2, **settings)
    assert not (third[:3] == first[:3]).all(dim=1).any()


def test_items_above_is_the_specification_s():
    rng = np.random.default_rng(3)
    ranks = knot_ranks(500)
    knots = -np.sort(-rng.normal(size=(40, len(ranks))).astype(np.float32), axis=1)
    z = np.concatenate([rng.normal(size=(40, 8)) * 2, knots[:, [0, 5, -1]]], axis=1).astype(np.float32)
    found = items_above(*(torch.from_numpy(array) for array in (knots, ranks, z))).numpy()
    expected = np.stack([formulas.items_above(knots[b], ranks, z[b]) for b in range(40)])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("n_items", [100, 6000])
def test_a_gpu_trains_as_the_cpu_does(n_items):
    split = bn.split(bn.synthetic(80, n_items, n_interactions=800, seed=3), test=0.2, seed=0)
    vectors = []
    for device in ("cpu", "cuda"):
        model = bn.LightGCN(dim=8, learning_rate=0.02, batch_size=100, device=device)
        run = bn.fit(model, split, bn.BNS(cdf="refreshed"), epochs=3, progress=False, select="last")
        vectors.append(run.scorer.items)
    near = np.isclose(*vectors, atol=0.02).all(axis=1)  # the CPU's summaries are counted in bins
    assert near.mean() > 0.9


@pytest.mark.gpu
def test_the_vectors_of_a_large_catalogue_stay_on_the_gpu():
    rng = np.random.default_rng(0)
    n_users, n_items = 2_000, 300_000
    train = bn.Interactions.from_numbers(
        rng.integers(0, n_users, 40_000), rng.integers(0, n_items, 40_000),
        user_ids=np.arange(n_users), item_ids=np.arange(n_items),
    )  # fmt: skip
    learner = bn.LightGCN(device="cuda", batch_size=1024).start(train, rng=rng)
    sampler = bn.BNS(cdf="refreshed").prepare(train, rng=rng)
    for _ in learner.train_epoch(sampler, epoch=1, order=np.arange(8192), rng=stream(0, "sampler", 1)):
        pass
    assert learner._summaries.knots.device.type == "cuda"
    assert torch.cuda.max_memory_allocated() < 4 * 2**30


@pytest.mark.parametrize("similarity", ["inner", "cosine"])
def test_a_model_summarises_the_scores_that_it_is_trained_by(similarity):
    train = random_interactions(np.random.default_rng(0), 20, 60, most=0.5)
    learner = bn.TorchMF(dim=4, device="cpu", similarity=similarity).start(train, rng=np.random.default_rng(0))
    learner.start_from(
        bn.interfaces.Embeddings(*(5 * v for v in learner.trained_embeddings())), (np.ones(20), np.ones(60))
    )
    everyone, ranks = np.arange(20), knot_ranks(60)
    batch = bn.Batch(everyone, np.zeros(20, np.int32), everyone, 1, train, learner, stream(0, "any"), 1)
    knots = learner._knots_on_device(batch, ranks, moved=0.1, pool=100, over_all=True).numpy()
    w, h = learner.embeddings()  # of norm 1 under the cosine
    for user in everyone:
        expected = formulas.summarise(w[user] @ h.T, np.ones(60, dtype=int), ranks) / np.linalg.norm(w[user])
        np.testing.assert_allclose(knots[user][ranks <= 60], expected[ranks <= 60], rtol=1e-4, atol=1e-6)
