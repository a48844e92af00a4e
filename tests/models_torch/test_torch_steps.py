"""One step of the torch learner is the step on paper, and both ways to choose train the same factors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.seeding import stream
from worlds import interactions, random_interactions

torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

from bayesneg.kernels.torch import gradients  # noqa: E402
from bayesneg.models.torch import learner  # noqa: E402
from bayesneg.models.torch.learner import TorchLearner  # noqa: E402


@dataclass(frozen=True)
class Given(bn.NegativeSampler):
    """For each user one negative, known beforehand; −1 skips."""

    negatives: tuple[int, ...]

    def sample(self, batch):
        return np.array(self.negatives)[batch.users]


TRAIN = interactions([[0], [1, 2], [0, 3]], 5)
NEGATIVES = (4, 0, 1)


def started(model, train=TRAIN):
    return model.start(train, rng=np.random.default_rng(0))


def trained(model, sampler, *, epochs=1, train=TRAIN, seed=0):
    """The learner after some epochs, and everything that was sampled."""
    learner = started(model, train)
    ready = sampler.prepare(train, rng=stream(seed, "sampler"))
    sampled = []
    for epoch in range(1, epochs + 1):
        order = stream(seed, "order", epoch).permutation(len(train))
        rng = stream(seed, "sampler", epoch)
        sampled += list(learner.train_epoch(ready, epoch=epoch, order=order, rng=rng))
        ready.end_epoch(epoch, learner)
    return learner, sampled


def by_hand(model, *, batches, epochs=1, train=TRAIN, negatives=NEGATIVES):
    """Adam on the BPR loss, written out in NumPy; the vectors (n_users + n_items, d) after the steps."""
    E = started(model, train).module.first.detach().numpy().astype(np.float64)
    m, v, t = np.zeros_like(E), np.zeros_like(E), 0
    for epoch in range(1, epochs + 1):
        order = stream(0, "order", epoch).permutation(len(train))
        for batch in np.split(order, batches):
            gradient = np.zeros_like(E)
            kept = [p for p in batch if negatives[train.users[p]] >= 0]
            for position in kept:
                user = train.users[position]
                i, j = (train.n_users + item for item in (train.indices[position], negatives[user]))
                size = 1 / (1 + np.exp(E[user] @ (E[i] - E[j])))  # 1 − σ(x_i − x_j)
                for row, by in ((user, E[i] - E[j]), (i, E[user]), (j, -E[user])):
                    gradient[row] -= size * by / len(kept)
                    if model.penalty != "weight_decay":
                        gradient[row] += model.strength * E[row] / len(kept)
            if model.penalty == "weight_decay":
                gradient += model.strength * E
            t += 1
            m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
            rate = model.learning_rate * model.decay ** ((epoch - 1) // model.decay_every)
            E = E - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return E


PENALTIES = {
    "none": {"regularization": 0.0},
    "weight decay": {"regularization": 0.3},
    "batch": {"regularization": 0.3, "penalty": "batch"},
    "first layer": {"regularization": 0.3, "penalty": "first_layer"},
    "weight decay, scaled": {"regularization": 0.3, "scale_regularization": True},
    "batch, scaled": {"regularization": 0.3, "penalty": "batch", "scale_regularization": True},
}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("batch_size", [64, 5])
def test_one_step_is_adam_written_out_by_hand(penalty, batch_size):
    model = bn.TorchMF(dim=3, learning_rate=0.1, batch_size=batch_size, device="cpu", **PENALTIES[penalty])
    learner, _ = trained(model, Given(NEGATIVES))
    np.testing.assert_allclose(learner.module.first.detach().numpy(), by_hand(model, batches=1), atol=2e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_many_steps_with_a_falling_rate_and_a_smaller_last_batch_are_those_by_hand(penalty):
    model = bn.TorchMF(
        dim=3, learning_rate=0.1, decay=0.5, decay_every=2, batch_size=2, device="cpu", **PENALTIES[penalty]
    )
    learner, _ = trained(model, Given(NEGATIVES), epochs=5)
    expected = by_hand(model, batches=[2, 4], epochs=5)
    np.testing.assert_allclose(learner.module.first.detach().numpy(), expected, atol=2e-5)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_skipped_example_leaves_no_trace(penalty):
    """User 1 is skipped: it counts neither in the mean loss nor in the penalty of the batch."""
    negatives = (4, -1, 1)
    model = bn.TorchMF(dim=3, learning_rate=0.1, batch_size=5, device="cpu", **PENALTIES[penalty])
    learner, sampled = trained(model, Given(negatives))
    expected = by_hand(model, batches=1, negatives=negatives)
    np.testing.assert_allclose(learner.module.first.detach().numpy(), expected, atol=2e-6)
    assert (sampled[0].info[sampled[0].users == 1] == 0).all()


def test_weight_decay_moves_what_no_batch_touched_and_the_batch_penalty_does_not():
    untouched = TRAIN.n_users + 2  # item 2 is in no batch below
    first = started(bn.TorchMF(dim=3, device="cpu")).module.first.detach().numpy()[untouched]
    for penalty, moved in (("weight_decay", True), ("batch", False)):
        model = bn.TorchMF(dim=3, regularization=0.1, penalty=penalty, device="cpu")
        learner = started(model)
        list(learner.train_epoch(Given(NEGATIVES), epoch=1, order=np.array([0]), rng=stream(0, "draws")))
        now = learner.module.first.detach().numpy()[untouched]
        assert (np.abs(now) < np.abs(first)).all() if moved else np.array_equal(now, first)


@pytest.mark.parametrize("ensemble_size", [1, 2])
@pytest.mark.parametrize("penalty", ["weight_decay", "batch", "first_layer"])
def test_a_step_of_lightgcn_is_that_of_autograd_on_a_dense_matrix(penalty, ensemble_size):
    """Two layers, each model of the ensemble with its own loss; user 1 has no negative."""
    negatives = torch.tensor((4, -1, 1))
    model = bn.LightGCN(
        dim=3, layers=2, learning_rate=0.1, regularization=0.2, penalty=penalty, ensemble_size=ensemble_size,
        device="cpu",
    )  # fmt: skip
    learner, _ = trained(model, Given(tuple(negatives.tolist())))
    start = started(model)
    E = start.module.first.detach().clone().requires_grad_()
    A = start.module.adjacency.to_dense()
    adam = torch.optim.Adam([E], lr=0.1, weight_decay=0.2 if penalty == "weight_decay" else 0.0)
    kept = negatives[TRAIN.users] >= 0
    users = torch.from_numpy(TRAIN.users.astype(np.int64))[kept]
    positives, negatives = torch.from_numpy(TRAIN.indices.astype(np.int64))[kept] + 3, negatives[users] + 3
    loss = torch.zeros(())
    for first in E.chunk(ensemble_size, dim=1):
        vectors = (first + A @ first + A @ A @ first) / 3
        gap = (vectors[users] * (vectors[positives] - vectors[negatives])).sum(dim=1)
        shrunk = {"weight_decay": 0 * first, "batch": vectors, "first_layer": first}[penalty]
        squares = sum(shrunk[rows].square().sum(dim=1) for rows in (users, positives, negatives))
        loss = loss + (0.5 * 0.2 * squares - torch.nn.functional.logsigmoid(gap)).mean()
    loss.backward()
    adam.step()
    np.testing.assert_allclose(learner.module.first.detach().numpy(), E.detach().numpy(), atol=1e-5)


def test_info_is_that_of_the_scores_before_the_step():
    model = bn.TorchMF(dim=3, learning_rate=0.1, device="cpu", batch_size=5)
    start = started(model)
    _, (sampled,) = trained(model, Given(NEGATIVES))
    order = stream(0, "order", 1).permutation(len(TRAIN))
    users = TRAIN.users[order]
    x = start.score(users, np.stack([TRAIN.indices[order], np.array(NEGATIVES)[users]], axis=1))
    np.testing.assert_allclose(sampled.info, 1 / (1 + np.exp(x[:, 0] - x[:, 1])), rtol=1e-5)


# ------------------------------------------------------------------------------------- compiled and torch, one result

SAMPLERS = {
    "rns": bn.RNS(),
    "pns": bn.PNS(),
    "dns": bn.DNS(candidates=4),
    "dns of all": bn.DNS(candidates="all"),
    "dns(m,n)": bn.DNS(candidates=6, top=3),
    "bns": bn.BNS(),
    "bns, many candidates": bn.BNS(candidates=20),
    "bns of all": bn.BNS(candidates="all"),
    "bns, share of the catalogue": bn.BNS(cdf_over="catalogue", prior=bn.priors.Flat(0.2)),
    "bns, mixture": bn.BNS(likelihood="mixture", prior=bn.priors.Flat(0.1)),
    "bns, empirical": bn.BNS(likelihood="empirical", prior=bn.priors.Flat(0.1)),
    "bns over all items": bn.BNS(cdf_over="all"),
    "bns with a schedule": bn.BNS(weight=bn.samplers.LinearDecay(5.0, 2.0, 0.5)),
    "bns after rns": bn.WarmStart(bn.RNS(), bn.BNS(), warmup=1),
    "posterior": bn.Posterior(),
    "aobpr": bn.AOBPR(scale=5.0),
    "srns": bn.SRNS(memory=3, fresh=4, warmup=2),
}


def force_torch(monkeypatch):
    """Torch chooses on the CPU as well."""
    monkeypatch.setattr(TorchLearner, "_compiled_chooses", property(lambda self: False))


@pytest.mark.parametrize(
    ("numbers", "penalty"), [(1 << 20, "weight_decay"), (2000, "first_layer")], ids=["one block", "many blocks"]
)
@pytest.mark.parametrize("name", SAMPLERS)
def test_compiled_and_torch_choices_train_the_same_factors(monkeypatch, name, numbers, penalty):
    """With users who have no unobserved item, and a smaller last batch."""
    monkeypatch.setattr(learner, "NUMBERS", numbers)
    train = random_interactions(np.random.default_rng(5), 25, 30)
    model = bn.LightGCN(dim=4, batch_size=23, regularization=1e-3, penalty=penalty, learning_rate=0.05, device="cpu")
    compiled, picked = trained(model, SAMPLERS[name], epochs=3, train=train)
    assert compiled._compiled_steps is not None
    force_torch(monkeypatch)
    batched, picked_too = trained(model, SAMPLERS[name], epochs=3, train=train)
    assert batched._torch_steps is not None
    one, two = (np.concatenate([part.negatives for part in parts]) for parts in (picked, picked_too))
    np.testing.assert_array_equal(one, two)
    for one, two in zip(compiled.embeddings(), batched.embeddings(), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-4)


def test_aobpr_by_factor_picks_the_same_until_its_lists_are_sorted_again(monkeypatch):
    """Compiled code sorts again at a choice, torch before a batch; until then both read the first lists."""
    train = random_interactions(np.random.default_rng(5), 12, 30, most=0.5)
    assert len(train) < int(30 * np.log(30))  # fewer choices than until the second sorting
    model = bn.TorchMF(dim=4, batch_size=16, learning_rate=0.05, device="cpu")
    sampler = bn.AOBPR(scale=4.0, rank="factor")
    _, compiled = trained(model, sampler, train=train)
    force_torch(monkeypatch)
    _, batched = trained(model, sampler, train=train)
    one, two = (np.concatenate([part.negatives for part in parts]) for parts in (compiled, batched))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("chunk", [1, 200, 1 << 24])
@pytest.mark.parametrize("name", ["bns", "posterior", "aobpr"])
def test_the_chunk_changes_no_choice(monkeypatch, name, chunk):
    force_torch(monkeypatch)
    train = random_interactions(np.random.default_rng(5), 25, 30)
    model = bn.TorchMF(dim=4, batch_size=23, chunk=chunk, device="cpu")
    _, picked = trained(model, SAMPLERS[name], train=train)
    _, expected = trained(bn.TorchMF(dim=4, batch_size=23, device="cpu"), SAMPLERS[name], train=train)
    for one, two in zip(picked, expected, strict=True):
        np.testing.assert_array_equal(one.negatives, two.negatives)


@pytest.mark.parametrize("layers", [0, 2])
@pytest.mark.parametrize("penalty", ["weight_decay", "batch", "first_layer"])
def test_every_model_of_an_ensemble_learns_as_one_alone_that_is_given_the_same_negatives(penalty, layers):
    model = bn.LightGCN(
        dim=2,
        ensemble_size=3,
        layers=layers,
        batch_size=2,
        penalty=penalty,
        regularization=0.1,
        learning_rate=0.1,
        device="cpu",
    )
    together = started(model)
    alone = [started(replace(model, ensemble_size=1)) for _ in range(3)]
    with torch.no_grad():
        for one, first in zip(alone, together.module.first.chunk(3, dim=1), strict=True):
            one.module.first.copy_(first)
    for trained in (together, *alone):
        for epoch in (1, 2):
            order = stream(0, "order", epoch).permutation(len(TRAIN))
            list(trained.train_epoch(Given(NEGATIVES), epoch=epoch, order=order, rng=stream(0, "sampler", epoch)))
    apart = torch.cat([one.module.first for one in alone], dim=1)
    torch.testing.assert_close(together.module.first, apart, rtol=1e-4, atol=1e-6)
    users, items = np.arange(3), np.tile(np.arange(5), (3, 1))
    mean = np.mean([one.score(users, items) for one in alone], axis=0)
    np.testing.assert_allclose(together.score(users, items), mean, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("ensemble_size", [1, 3])
@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_gradients_of_the_loss_are_autograd_s(strength, ensemble_size):
    """Of the models' embeddings, which are given divided by the square root of the ensemble size."""
    random = torch.Generator().manual_seed(0)
    own_users, own_items = (torch.randn(n, ensemble_size, 5, generator=random, requires_grad=True) for n in (7, 9))
    users, items = (vectors.flatten(1) * ensemble_size**-0.5 for vectors in (own_users, own_items))
    which, positives = (torch.randint(0, 7, (50,), generator=random) for _ in range(2))
    negatives = torch.randint(-1, 9, (50,), generator=random)
    *found, infos = gradients.bpr_gradients(
        users.detach(), items.detach(), which, positives, negatives, strength, ensemble_size
    )
    keep = negatives >= 0
    w, h_i, h_j = own_users[which][keep], own_items[positives][keep], own_items[negatives][keep]
    gaps = (w * (h_i - h_j)).sum(dim=2)
    penalty = (w.square() + h_i.square() + h_j.square()).sum(dim=2)
    (torch.nn.functional.softplus(-gaps) + 0.5 * strength * penalty).sum(dim=1).mean().backward()
    expected = own_users.grad, own_items.grad
    for vectors, gradient, own in zip((users, items), found, expected, strict=True):
        (through,) = torch.autograd.grad(vectors, own_users if own is expected[0] else own_items, gradient)
        torch.testing.assert_close(through, own)
    torch.testing.assert_close(infos[keep], torch.sigmoid(-gaps.mean(dim=1)).detach())
    assert not infos[~keep].any()
