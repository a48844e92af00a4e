"""Synthetic negatives in training: layers of LightGCN, refusals, any loop."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.seeding import stream

torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

import bayesneg.torch as bnt  # noqa: E402
from bayesneg.models.torch.graph import SmoothedEmbeddings  # noqa: E402

SPLIT = bn.split(bn.synthetic(60, 50, seed=0), test=0.2, seed=0)
TRAIN = SPLIT.train
MIXED = bn.samplers.MixGCF(candidates=4)


def smoothed(layers, ensemble_size=1):
    first = np.random.default_rng(0).normal(size=(110, 6 * ensemble_size)).astype(np.float32)
    return SmoothedEmbeddings(first, TRAIN, layers, ensemble_size=ensemble_size)


@pytest.mark.parametrize(("layers", "ensemble_size"), [(0, 1), (1, 1), (3, 1), (2, 2)])
def test_the_mean_of_the_layers_is_the_embedding_and_has_its_gradient(layers, ensemble_size):
    one, two = smoothed(layers, ensemble_size), smoothed(layers, ensemble_size)
    found = [torch.stack(part).mean(dim=0) for part in one.layer_embeddings()]
    assert len(one.layer_embeddings()[0]) == layers + 1
    for mean, wanted in zip(found, two(), strict=True):
        torch.testing.assert_close(mean, wanted, rtol=1e-5, atol=1e-6)
    for module, (users, items) in ((one, found), (two, two())):
        (users.square().sum() + items.pow(3).sum()).backward()
        assert module.first.grad is not None
    torch.testing.assert_close(one.first.grad, two.first.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (bn.TorchMF(dim=8, learning_rate=0.03, device="cpu"), "bpr"),
        (bn.LightGCN(dim=8, layers=2, learning_rate=0.03, device="cpu"), bn.losses.Softmax(temperature=0.5)),
        (bn.LightGCN(dim=8, learning_rate=0.03, similarity="cosine", penalty="first_layer", device="cpu"), "bpr"),
    ],
    ids=["mf", "lightgcn, softmax", "cosine"],
)
def test_models_learn_from_mixed_negatives(model, loss):
    run = bn.fit(model, SPLIT, bn.samplers.MixGCF(candidates=3, negatives=2), loss=loss, epochs=10, progress=False)
    scores = run.scorer.score_all(np.arange(60))
    chosen = TRAIN.contains(np.repeat(np.arange(60), 50), np.tile(np.arange(50), 60)).reshape(60, 50)
    wins = [np.mean(x[row][:, None] > x[~row][None, :]) for x, row in zip(scores, chosen, strict=True) if row.any()]
    assert np.mean(wins) > 0.7
    assert 0 < run.record.epochs[-1]["tnr"] <= 1


def test_a_step_is_the_gradient_of_the_loss_through_the_vectors():
    """One batch of a LightGCN by ``fit``'s learner, and the same written down with autograd."""
    model = bn.LightGCN(dim=6, layers=2, batch_size=len(TRAIN), regularization=0.0, device="cpu")
    learner = model.start(TRAIN, rng=stream(0, "init"))
    before = learner.module.first.detach().clone()
    order = np.arange(len(TRAIN))
    list(learner.train_epoch(MIXED, epoch=1, order=order, rng=np.random.default_rng(5)))
    found = learner.module.first.grad.clone()

    module = SmoothedEmbeddings(before.numpy(), TRAIN, 2)
    users, items = module.layer_embeddings()
    U, V = torch.stack(users).mean(dim=0), torch.stack(items).mean(dim=0)
    rows, positives = (torch.from_numpy(part.astype(np.int64)) for part in (TRAIN.users, TRAIN.indices))
    scorer = bn.LightGCN(dim=6, layers=2, device="cpu").start(TRAIN, rng=stream(0, "init"))
    drawn = MIXED.draws(bn.Batch(TRAIN.users, TRAIN.indices, order, 1, TRAIN, scorer, np.random.default_rng(5)))
    candidates, a = torch.from_numpy(drawn.candidates).long(), torch.from_numpy(drawn.uniforms).float().view(-1, 3, 4)
    negative = torch.zeros_like(U[rows])
    for layer, e in enumerate(items):
        mixed = a[:, layer, :, None] * e[positives][:, None] + (1 - a[:, layer, :, None]) * e[candidates]
        best = (mixed * U[rows][:, None]).sum(dim=2).argmax(dim=1)
        negative = negative + mixed[torch.arange(len(rows)), best] / 3
    gap = (U[rows] * (V[positives] - negative)).sum(dim=1)
    torch.nn.functional.softplus(-gap).mean().backward()
    torch.testing.assert_close(found, module.first.grad, rtol=1e-4, atol=1e-7)


def test_a_custom_module_may_declare_layers():
    class Two(torch.nn.Module):
        def __init__(self, train):
            super().__init__()
            self.users, self.items = (torch.nn.Parameter(0.1 * torch.randn(2, n, 6)) for n in (60, 50))

        def layer_embeddings(self):
            return list(self.users), list(self.items)

        def forward(self):
            return self.users.mean(dim=0), self.items.mean(dim=0)

    learner = bn.TorchModel(build=Two, device="cpu").start(TRAIN, rng=stream(0, "init"))
    assert learner.n_layers == 2
    before = [part.detach().clone() for part in learner.module.parameters()]
    list(learner.train_epoch(MIXED, epoch=1, order=np.arange(len(TRAIN)), rng=np.random.default_rng(0)))
    for old, new in zip(before, learner.module.parameters(), strict=True):
        assert all((old[layer] != new[layer]).any() for layer in range(2))


def test_a_warm_start_may_go_over_to_mixed_negatives():
    run = bn.fit(
        bn.LightGCN(dim=4, device="cpu"), SPLIT, bn.WarmStart("rns", MIXED, warmup=1), epochs=2, progress=False
    )
    assert len(run.record.epochs) == 2


def test_models_that_learn_from_items_or_give_scores_refuse_vectors():
    with pytest.raises(bn.BayesnegError, match=r"MixGCF makes synthetic vectors as negatives, .* bn.LightGCN\(\)"):
        bn.fit(bn.MF(dim=4), SPLIT, MIXED, epochs=1, progress=False)

    class Scores(torch.nn.Module):
        def __init__(self, train):
            super().__init__()
            self.table = torch.nn.Parameter(torch.zeros(60, 50))

        def scores(self, users):
            return self.table[users]

    model = bn.TorchModel(build=Scores, gives="scores", device="cpu")
    with pytest.raises(bn.BayesnegError, match="gives scores and no vectors"):
        bn.fit(model, SPLIT, MIXED, epochs=1, progress=False)


# ------------------------------------------------------------------------------------------------------------ any loop


def test_a_loop_passes_lists_of_layers():
    module, sampler = smoothed(2), bnt.Sampler(MIXED, TRAIN, seed=0)
    users, positives = (torch.from_numpy(part[:32].astype(np.int64)) for part in (TRAIN.users, TRAIN.indices))
    layers = module.layer_embeddings()
    negatives = sampler(users, positives, *layers)
    assert negatives.vectors.shape == (32, 1, 6)
    assert negatives.vectors.requires_grad
    U, V = (torch.stack(part).mean(dim=0) for part in layers)
    bnt.losses.bpr(U[users], V[positives], V, negatives).backward()
    assert torch.isfinite(module.first.grad).all()
    again = bnt.Sampler(MIXED, TRAIN, seed=0)(users, positives, *smoothed(2).layer_embeddings())
    torch.testing.assert_close(again.vectors, negatives.vectors, rtol=0, atol=0)
    sampler.end_epoch(*(list(part) for part in layers))
    one = bnt.Sampler(MIXED, TRAIN, seed=0)(users, positives, U.detach(), V.detach())
    assert not one.vectors.requires_grad


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda U, V: (U, V[:1]), "one tensor for each layer, of one length, got 2 and 1"),
        (lambda U, V: ([], []), "of one length, got 0 and 0"),
        (lambda U, V: ([U[0], U[1][:, :3]], V), "must have one width, got 3 and 6"),
        (lambda U, V: ([U[0], U[1][:9]], V), r"user_vectors must be the embeddings \(60, d\)"),
    ],
)
def test_layers_that_do_not_fit_are_refused(change, said):
    layers = smoothed(1).layer_embeddings()
    users, positives = (torch.from_numpy(part[:4].astype(np.int64)) for part in (TRAIN.users, TRAIN.indices))
    with pytest.raises(bn.BayesnegError, match=said):
        bnt.Sampler(MIXED, TRAIN)(users, positives, *change(*layers))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_mixing_on_a_gpu_waits_for_nothing_and_makes_what_a_cpu_makes(nothing_waits):
    sampler, module = bnt.Sampler(MIXED, TRAIN, seed=0), smoothed(2).cuda()
    users, positives = (torch.from_numpy(part[:32].astype(np.int64)).cuda() for part in (TRAIN.users, TRAIN.indices))
    sampler(users, positives, *module.layer_embeddings())
    with nothing_waits():
        negatives = sampler(users, positives, *module.layer_embeddings())
        negatives.vectors.sum().backward()
    assert torch.isfinite(module.first.grad).all()
