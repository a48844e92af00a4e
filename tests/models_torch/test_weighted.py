"""Training with several weighted negatives, shared pools and any loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.interfaces import weighted_pairs

torch = pytest.importorskip("torch")

SPLIT = bn.split(bn.synthetic(120, 90, seed=0), test=0.2, seed=0)
MODEL = bn.TorchMF(dim=8, batch_size=64, device="cpu")
COSINE = bn.TorchMF(dim=8, batch_size=64, device="cpu", similarity="cosine")
SAMPLERS = {
    "rns": bn.RNS(),
    "rns, several": bn.RNS(negatives=5),
    "rns, shared": bn.RNS(negatives=60, shared=True),
    "pns, several": bn.PNS(negatives=5),
    "pns, shared": bn.PNS(negatives=60, shared=True),
    "dns, several": bn.DNS(candidates=8, top=4, negatives=3),
    "srns": bn.SRNS(memory=4, fresh=4),
    "aobpr": bn.AOBPR(),
    "bns": bn.BNS(),
    "bns, several": bn.BNS(candidates=8, negatives=3),
    "bns, posterior": bn.BNS(candidates=8, weighting="posterior"),
    "bns, risk, refreshed": bn.BNS(candidates=8, weighting="risk", cdf="refreshed"),
    "bns, shared, pool": bn.BNS(candidates=60, weighting="posterior", shared=True, cdf="pool", likelihood="mixture"),
    "bns, shared, exact": bn.BNS(candidates=60, weighting="posterior", shared=True, cdf="exact", prior="learned"),
    "bns, shared, refreshed": bn.BNS(candidates=60, weighting="risk", shared=True, cdf="refreshed"),
    "bns, shared, empirical": bn.BNS(candidates=60, weighting="posterior", shared=True, likelihood="empirical"),
    "oracle": bn.BNS(candidates=60, weighting="oracle", shared=True, prior=bn.priors.Oracle(SPLIT.test)),
    "in-batch": bn.samplers.InBatch(),
    "in-batch, posterior": bn.samplers.InBatch(weighting="posterior", likelihood="mixture"),
}
LOSSES = ["bpr", "logistic", "ccl", "softmax", "softmax-at-k", "psl", "dcl", "hcl"]


def trained(sampler, loss=None, model=MODEL, **options):
    return bn.fit(model, SPLIT, sampler, loss=loss, **{"epochs": 2, "progress": False, **options})


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_trains_with_a_softmax_and_again_to_the_same_bytes(name):
    one, two = (trained(SAMPLERS[name], bn.losses.Softmax(0.3), COSINE) for _ in range(2))
    for before, after in zip(one.scorer.embeddings(), two.scorer.embeddings(), strict=True):
        np.testing.assert_array_equal(before, after)
    line = one.record.epochs[-1]
    assert 0 < line["tnr"] <= 1
    assert 0 <= line["gradient_fn"] < 1
    assert line["skipped"] == 0 or name == "bns, shared, empirical"  # which holds some pairs out


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_learns(loss):
    model = bn.TorchMF(dim=8, batch_size=64, device="cpu", similarity="cosine", learning_rate=0.02)
    lines = trained(bn.RNS(negatives=20), loss, model, epochs=12).record.epochs
    assert lines[-1]["ndcg@20"] > lines[0]["ndcg@20"]


def test_one_negative_in_a_selection_learns_like_the_kernels_of_one_negative():
    """BNS over one candidate with weight 1 is RNS; the two ways of learning differ by rounding only."""
    model = bn.TorchMF(dim=8, batch_size=len(SPLIT.train), device="cpu")  # one batch, so that both draw at once
    plain, weighted = (
        trained(bn.BNS(candidates=1, prior=bn.priors.Flat(0.0), weighting=weighting), model=model)
        for weighting in ("none", "posterior")
    )
    for one, other in zip(plain.scorer.embeddings(), weighted.scorer.embeddings(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    for key in ("tnr", "inf", "gradient_fn"):  # of 128 examples in one case, of all in the other
        assert plain.record.epochs[0][key] == pytest.approx(weighted.record.epochs[0][key], abs=0.05)


def test_a_shared_pool_of_all_items_is_the_full_softmax():
    """The gradient of one step against autograd over the whole catalogue."""
    n_items, train = SPLIT.train.n_items, SPLIT.train
    learner = bn.TorchMF(dim=8, batch_size=len(train), device="cpu").start(train, rng=np.random.default_rng(0))
    first = learner.module.first.detach().clone().requires_grad_()
    users, items = first.split([train.n_users, n_items])
    scores = users @ items.T / 0.5
    mask = torch.zeros_like(scores)
    u, i = (torch.from_numpy(part.astype(np.int64)) for part in (train.users, train.indices))
    mask[u, i] = -torch.inf
    loss = (torch.logsumexp(scores + mask, dim=1)[u] - scores[u, i]).mean()
    loss.backward()
    moved = []
    learner.trainable.optimizer.step = lambda: moved.append(learner.module.first.grad.clone())
    sampler = bn.RNS(negatives=n_items, shared=True).prepare(train, rng=np.random.default_rng(0))
    list(
        learner.train_epoch(
            sampler, epoch=1, order=np.arange(len(train)), rng=np.random.default_rng(0), loss=bn.losses.Softmax(0.5)
        )
    )
    torch.testing.assert_close(moved[0], first.grad, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("penalty", ["batch", "first_layer"])
def test_a_penalty_on_the_embeddings_of_a_batch_shrinks_them(penalty):
    free, held = (
        trained(
            bn.RNS(negatives=30, shared=True), "softmax",
            bn.LightGCN(dim=8, batch_size=64, device="cpu", penalty=penalty, regularization=strength), epochs=3,
        )
        for strength in (0.0, 0.5)
    )  # fmt: skip
    assert np.abs(held.scorer.embeddings().items).mean() < np.abs(free.scorer.embeddings().items).mean()


def test_cosine_ranks_by_cosine_unless_told_otherwise():
    cosine = trained(bn.RNS(negatives=5), "softmax", COSINE).scorer.embeddings()
    np.testing.assert_allclose(np.linalg.norm(cosine.items, axis=1), 1.0, rtol=1e-5)
    inner = bn.TorchMF(dim=8, batch_size=64, device="cpu", similarity="cosine", ranking="inner")
    items = trained(bn.RNS(negatives=5), "softmax", inner).scorer.embeddings().items
    np.testing.assert_allclose(items / np.linalg.norm(items, axis=1, keepdims=True), cosine.items, rtol=1e-4)
    assert np.linalg.norm(items, axis=1).std() > 1e-3


def test_an_oracle_puts_no_gradient_on_its_labels():
    line = trained(SAMPLERS["oracle"], bn.losses.Softmax(0.3), COSINE).record
    assert line.epochs[-1]["gradient_fn"] == 0
    assert line.uses_test_labels


class Weighted(bn.NegativeSampler):
    """Three uniform items, the last with half the weight; ``spoil`` changes the answer."""

    gives_weights = True

    def __init__(self, spoil=lambda negatives: negatives):
        self.spoil = spoil

    def sample(self, batch):
        items = batch.rng.integers(0, batch.train.n_items, (len(batch.users), 3))
        return self.spoil(bn.Negatives(items, np.tile([1.0, 1.0, 0.5], (len(items), 1))))


def test_a_custom_sampler_gives_several_weighted_negatives():
    record = trained(Weighted(), "softmax", COSINE).record
    assert 0 < record.epochs[-1]["tnr"] < 1


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda n: n._replace(weights=-n.weights), "weights must be finite and at least 0, got -1; a weight of 0"),
        (lambda n: n._replace(weights=n.weights * np.nan), "weights must be finite and at least 0"),
        (lambda n: n._replace(weights=n.weights[:, :2]), r"weights must have the shape \(64, 3\), got \(64, 2\)"),
        (lambda n: n._replace(items=n.items + 90), r"items must be item numbers from 0 to 89, got \d+"),
        (lambda n: n._replace(items=n.items[:5]), r"items must be item numbers of shape \(64, K\), or \(N,\)"),
        (lambda n: n._replace(log_q=np.zeros(3)), "log_q must be finite numbers of the shape of items"),
    ],
)
def test_a_wrong_answer_is_refused_with_a_sentence(spoil, said):
    with pytest.raises(bn.BayesnegError, match=said):
        trained(Weighted(spoil))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: bn.BNS(weighting="posterior", negatives=3), "leave negatives at 1"),
        (lambda: bn.BNS(shared=True), "set weighting='posterior' or 'risk'"),
        (lambda: bn.BNS(cdf="pool"), "cdf='pool' is the rank in a shared pool"),
        (lambda: bn.BNS(candidates=2, negatives=3), r"negatives must be at most candidates \(2\), got 3"),
        (lambda: bn.BNS(weighting="oracle"), "give prior=bn.priors.Oracle"),
        (lambda: bn.BNS(weighting="half"), "weighting must be one of none, posterior, risk, oracle"),
        (lambda: bn.DNS(candidates=5, negatives=3), "set top=3 with it"),
        (lambda: bn.RNS(negatives=0), "negatives must be a whole number of at least 1"),
        (
            lambda: trained(bn.samplers.InBatch(), model=bn.TorchMF(batch_size=1, device="cpu")),
            "batch_size to 2 or more",
        ),
        (lambda: trained(bn.RNS(), loss="hinge"), "'hinge' is not a loss; valid: bpr, ccl"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(make, said):
    with pytest.raises(bn.BayesnegError, match=said):
        make()


def test_the_loss_is_recorded_and_a_run_is_resumed_with_the_same_one(tmp_path):
    whole = trained(SAMPLERS["bns, shared, pool"], bn.losses.Softmax(0.3), COSINE, epochs=3)
    trained(SAMPLERS["bns, shared, pool"], bn.losses.Softmax(0.3), COSINE, epochs=1, out=tmp_path / "run")
    with pytest.raises(bn.BayesnegError, match="other settings"):
        trained(SAMPLERS["bns, shared, pool"], "bpr", COSINE, epochs=3, out=tmp_path / "run", resume=True)
    resumed = trained(
        SAMPLERS["bns, shared, pool"], bn.losses.Softmax(0.3), COSINE, epochs=3, out=tmp_path / "run", resume=True
    )
    np.testing.assert_array_equal(whole.scorer.embeddings().items, resumed.scorer.embeddings().items)
    assert resumed.record.spec["loss"]["temperature"] == 0.3


def test_the_thresholds_of_softmax_at_k_are_part_of_a_checkpoint(tmp_path):
    """They are computed every third epoch: the second and the third one read those of the first."""
    loss, more = bn.losses.SoftmaxAtK(k=10, refresh=3), {"checkpoint_every": 1, "select": "last"}
    whole = trained(bn.RNS(negatives=5), loss, COSINE, epochs=4, **more)
    trained(bn.RNS(negatives=5), loss, COSINE, epochs=2, out=tmp_path / "run", **more)
    resumed = trained(bn.RNS(negatives=5), loss, COSINE, epochs=4, out=tmp_path / "run", resume=True, **more)
    for one, two in zip(whole.scorer.embeddings(), resumed.scorer.embeddings(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_in_batch_negatives_are_the_positives_of_other_examples():
    train = SPLIT.train
    sampler = bn.samplers.InBatch().prepare(train, rng=np.random.default_rng(0))
    positions = np.arange(30)
    scorer = MODEL.start(train, rng=np.random.default_rng(0))
    batch = bn.Batch(train.users[:30], train.indices[:30], positions, 1, train, scorer, np.random.default_rng(0))
    answer = sampler.sample(batch)
    items, weights = weighted_pairs(answer, 30)
    np.testing.assert_array_equal(items[0], train.indices[:30])
    own = train.contains(np.broadcast_to(batch.users[:, None], items.shape), items)
    assert not weights[own].any()
    assert (weights.sum(axis=1) <= len(set(train.indices[:30].tolist()))).all()
    p = train.popularity[items[0]] / len(train)
    n = np.count_nonzero(train.popularity)
    np.testing.assert_allclose(np.exp(answer.log_q), (1 - (1 - p) ** 30) / (30 / n))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("name", [name for name in SAMPLERS if "shared" in name or name.startswith(("in-", "oracle"))])
@pytest.mark.parametrize("loss", [bn.losses.Softmax(0.3), bn.losses.SoftmaxAtK(0.3, refresh=1)], ids=["one", "at k"])
def test_a_recorded_step_learns_like_an_eager_one(name, loss, monkeypatch):
    from bayesneg.models.torch.weighted import WeightedSteps

    model = bn.TorchMF(dim=8, batch_size=256, device="cuda", similarity="cosine")
    replayed, replay = [], WeightedSteps._replay

    def counted(*args, measured):
        replayed.append(measured)
        replay(*args, measured=measured)

    monkeypatch.setattr(WeightedSteps, "_replay", counted)
    recorded = trained(SAMPLERS[name], loss, model, epochs=3)
    assert set(replayed) == (set() if name in NOT_RECORDED else {True, False})  # one in two batches is measured
    monkeypatch.setattr(WeightedSteps, "_recordable", lambda *args: False)
    eager = trained(SAMPLERS[name], loss, model, epochs=3)
    for one, two in zip(recorded.scorer.embeddings(), eager.scorer.embeddings(), strict=True):
        np.testing.assert_allclose(one, two, atol=2e-3)
    for one, two in zip(recorded.record.epochs, eager.record.epochs, strict=True):
        assert one["skipped"] == two["skipped"]
        assert one["gradient_fn"] == pytest.approx(two["gradient_fn"], rel=0.02)


NOT_RECORDED = {"oracle", "bns, shared, exact", "bns, shared, refreshed", "bns, shared, empirical"}


def test_the_tnr_of_a_uniform_pool_is_that_of_uniform_negatives():
    everything = bn.RNS(negatives=SPLIT.train.n_items, shared=True)
    line = trained(everything, "softmax", COSINE, epochs=1).record.epochs[0]
    assert line["tnr"] == pytest.approx(line["tnr_uniform"], abs=1e-6)  # batches of 64 are measured whole


@pytest.mark.parametrize(("size", "every"), [(64, 1), (300, 2), (512, 4), (1000, 4)])
def test_large_batches_are_measured_one_in_a_few_with_more_examples(monkeypatch, size, every):
    from bayesneg.models.torch.weighted import SampledSums

    whole, added = SampledSums.add, []

    def add(self, users, *given):
        added.append(min(len(users), self.examples))
        whole(self, users, *given)

    monkeypatch.setattr(SampledSums, "add", add)
    run = trained(bn.RNS(negatives=20, shared=True), "softmax", replace(COSINE, batch_size=size), epochs=1)
    n_batches = -(-len(SPLIT.train) // size)
    assert len(added) == -(-n_batches // every)
    assert added[0] == min(size, 128 * every)
    assert 0 < run.record.epochs[0]["tnr"] < 1


@pytest.mark.parametrize("model", [COSINE, bn.MF(dim=4)], ids=["torch", "compiled"])
def test_a_sampler_without_one_usable_negative_is_refused(model):
    class Observed(bn.NegativeSampler):
        gives_weights = True

        def sample(self, batch):
            return bn.Negatives(np.repeat(batch.positives[:, None], 2, axis=1))

    with pytest.raises(bn.BayesnegError, match="Observed gave no training pair a negative that counts"):
        trained(Observed(), "softmax", model)


@pytest.mark.parametrize("shared", [True, False])
def test_a_risk_whose_weight_falls_to_0_is_refused(shared):
    sampler = bn.BNS(candidates=20, shared=shared, weighting="risk", weight="linear/2/1/0")
    with pytest.raises(bn.BayesnegError, match="weight must be above 0 with weighting='risk', got 0 in epoch 2"):
        trained(sampler, "softmax", COSINE)
