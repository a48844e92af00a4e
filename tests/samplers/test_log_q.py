"""log q: its scale, and that it reaches the losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bayesneg as bn

torch = pytest.importorskip("torch")

import bayesneg.torch as bnt  # noqa: E402
from bayesneg.torch import sampler as sampler_module  # noqa: E402

SPLIT = bn.split(bn.synthetic(80, 60, seed=0), test=0.2, seed=0)
TRAIN = SPLIT.train
TIMES = np.bincount(TRAIN.indices, minlength=TRAIN.n_items)
N_DRAWABLE = int((TIMES > 0).sum())
BATCH = bn.Batch(
    TRAIN.users[:30], TRAIN.indices[:30], np.arange(30), 1, TRAIN, None, np.random.default_rng(0)  # type: ignore[arg-type]
)  # fmt: skip


def prepared(sampler: Any) -> Any:
    return sampler.prepare(TRAIN, rng=np.random.default_rng(0))


def probabilities(power: float) -> np.ndarray:
    mass = np.array([float(times) ** power if times else 0.0 for times in TIMES])
    return mass / mass.sum()


def q_of(name: str, items: np.ndarray) -> np.ndarray:
    """How often items are drawn against a uniform draw of as many, by hand."""
    if name in ("pns, one", "pns, several"):
        return N_DRAWABLE * probabilities(0.75)[items]
    p, size = {"pns, shared": (probabilities(0.75), 40), "in-batch": (probabilities(1.0), 30)}[name]
    return (1 - (1 - p[items]) ** size) / (size / N_DRAWABLE)


SAMPLERS = {
    "pns, one": bn.PNS(),
    "pns, several": bn.PNS(negatives=4),
    "pns, shared": bn.PNS(negatives=40, shared=True),
    "in-batch": bn.samplers.InBatch(),
}


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "pns, one"])  # which answers with items alone
def test_log_q_is_how_often_an_item_is_drawn_against_a_uniform_draw(name: str) -> None:
    found = prepared(SAMPLERS[name]).sample(BATCH)
    np.testing.assert_allclose(np.exp(found.log_q), q_of(name, found.items))
    assert len(np.unique(found.log_q)) > 5


def test_a_warm_start_by_popularity_answers_with_log_q_before_it_gives_several() -> None:
    found = prepared(bn.WarmStart("pns", bn.RNS(negatives=3), warmup=1)).sample(BATCH)
    assert found.items.shape == (30, 1)
    np.testing.assert_allclose(np.exp(found.log_q), q_of("pns, one", found.items))
    later = prepared(bn.WarmStart("pns", bn.RNS(negatives=3), warmup=0)).sample(BATCH)
    assert later.log_q is None


@pytest.mark.parametrize("include_positive", [False, True])
@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_log_q_reaches_the_loss_of_a_torch_loop(
    name: str, where: str, include_positive: bool, monkeypatch: Any
) -> None:
    """All scores are 0, so the loss is log(Σ_k ω_k / q_k [+ 1])."""
    monkeypatch.setattr(sampler_module, "draws_itself", lambda device: where == "device")
    sampler = bnt.Sampler(SAMPLERS[name], TRAIN, seed=0)
    users, positives = (torch.from_numpy(part.astype(np.int64)) for part in (BATCH.users, BATCH.positives))
    w, h = torch.zeros(TRAIN.n_users, 2, requires_grad=True), torch.zeros(TRAIN.n_items, 2, requires_grad=True)
    negatives = sampler(users, positives, w, h)
    found = bnt.losses.softmax(
        w[users], h[positives], h, negatives, include_positive=include_positive, similarity="cosine", reduction="none"
    )
    q = q_of(name, np.maximum(negatives.items.numpy(), 0))
    weights = (negatives.items >= 0).float() if negatives.weights is None else negatives.weights
    wanted = np.log((weights.numpy() / q).sum(axis=1) + include_positive)
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "include_positive"), [("pns, one", True), ("pns, several", False), ("pns, several", True)]
)
def test_log_q_reaches_the_loss_of_mf(name: str, include_positive: bool) -> None:
    """Scores are next to 0 and stay there, so the gradient of a negative is (1 / q_k) / (Σ_k 1 / q_k [+ 1])."""
    model = bn.MF(dim=2, init_scale=1e-9, learning_rate=1e-9, sampling_batch=64)
    learner = model.start(TRAIN, rng=np.random.default_rng(0))
    loss = bn.losses.Softmax(temperature=1.0, include_positive=include_positive)
    block = next(
        iter(
            learner.train_epoch(
                prepared(SAMPLERS[name]),
                epoch=1,
                order=np.arange(len(TRAIN)),
                rng=np.random.default_rng(0),
                loss=loss,
                labels={},
            )
        )
    )
    share = 1 / q_of(name, block.negatives)
    wanted = share / (share.sum(axis=1, keepdims=True) + include_positive)
    np.testing.assert_allclose(block.gradient, wanted, rtol=1e-5)


def test_one_negative_by_popularity_is_corrected_in_fit() -> None:
    seen = []

    def loss(scores: Any) -> Any:
        seen.append(scores.log_q)
        return torch.nn.functional.softplus(scores.negatives[:, 0] - scores.positive)

    model = bn.TorchMF(dim=2, batch_size=30, device="cpu")
    bn.fit(model, SPLIT, bn.PNS(), loss=bn.losses.TorchLoss(loss), epochs=1, progress=False)
    expected = q_of("pns, one", np.flatnonzero(TIMES))
    assert all(np.isclose(q.exp().numpy(), expected, rtol=1e-5).any(axis=1).all() for q in seen)
    assert len({q.shape[1] for q in seen}) == 1


def test_a_warm_start_has_the_log_q_of_the_epoch() -> None:
    sampler = bnt.Sampler(bn.WarmStart(bn.PNS(), bn.RNS(), warmup=1), TRAIN, seed=0)
    users, positives = (torch.from_numpy(part.astype(np.int64)) for part in (BATCH.users, BATCH.positives))
    tables = torch.zeros(TRAIN.n_users, 2), torch.zeros(TRAIN.n_items, 2)
    first = sampler(users, positives, *tables)
    np.testing.assert_allclose(first.log_q.exp(), q_of("pns, one", first.items.numpy()), rtol=1e-5)
    sampler.end_epoch(*tables)
    assert sampler(users, positives, *tables).log_q is None


@pytest.mark.parametrize("corrected", [False, True])
def test_in_batch_negatives_are_corrected_only_if_asked(corrected: bool) -> None:
    sampler = bn.samplers.InBatch(corrected=corrected)
    assert (prepared(sampler).sample(BATCH).log_q is None) is not corrected
    seen = []

    def loss(scores: Any) -> Any:
        seen.append(scores.log_q)
        return scores.negatives.sum(dim=1) - scores.positive

    model = bn.TorchMF(dim=2, batch_size=30, device="cpu")
    bn.fit(model, SPLIT, sampler, loss=bn.losses.TorchLoss(loss), epochs=1, progress=False)
    assert all((log_q is None) is not corrected for log_q in seen)
    if corrected:
        expected = q_of("in-batch", np.flatnonzero(TIMES))
        full = [log_q.exp().numpy() for log_q in seen if len(log_q) == 30]  # the last batch is shorter
        assert all(np.isclose(q[:, None], expected, rtol=1e-5).any(axis=1).all() for q in full)
        assert np.ptp(full[0]) > 0.1


@pytest.mark.parametrize("where", ["host", "device"])
@pytest.mark.parametrize("corrected", [False, True])
def test_a_torch_loop_corrects_in_batch_negatives_only_if_asked(corrected: bool, where: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(sampler_module, "draws_itself", lambda device: where == "device")
    sampler = bnt.Sampler(bn.samplers.InBatch(corrected=corrected), TRAIN, seed=0)
    users, positives = (torch.from_numpy(part.astype(np.int64)) for part in (BATCH.users, BATCH.positives))
    found = sampler(users, positives, torch.zeros(TRAIN.n_users, 2), torch.zeros(TRAIN.n_items, 2))
    assert (found.log_q is None) is not corrected


@pytest.mark.parametrize("loss", [bn.losses.Softmax(0.5, include_positive=True), bn.losses.SoftmaxAtK(0.5)], ids=str)
def test_a_popularity_draw_of_power_0_has_the_loss_of_a_uniform_draw(loss: bn.losses.Loss) -> None:
    answer = prepared(bn.PNS(power=0, negatives=6)).sample(BATCH)
    rng = np.random.default_rng(0)
    given = bn.losses.Scores(
        rng.normal(size=30), rng.normal(size=TRAIN.n_items)[answer.items], np.ones((30, 6)), None, rng.normal(size=30)
    )
    assert prepared(bn.RNS(negatives=6)).sample(BATCH).log_q is None
    for found, wanted in zip(loss.evaluate(given._replace(log_q=answer.log_q)), loss.evaluate(given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize(
    "sampler",
    [
        bn.RNS(negatives=20, shared=True),
        bn.PNS(power=0, negatives=20, shared=True),
        bn.PNS(power=0.75, negatives=20, shared=True),
        bn.PNS(power=0, negatives=500, shared=True),
    ],
    ids=str,
)
def test_a_pool_stands_for_a_uniform_one_of_its_size(sampler: Any) -> None:
    """The mean of Σ_k exp(s_k) / q_k over many pools is N times the mean over the items."""
    power = np.where(TIMES > 0, np.exp(np.random.default_rng(1).normal(size=TRAIN.n_items)), 0.0)
    ready, sums = prepared(sampler), []
    for _ in range(2_000):
        pool = ready.pool(BATCH)
        items, first = np.unique(pool.items, return_index=True)
        q = np.ones(len(items)) if pool.log_q is None else np.exp(pool.log_q[first])
        sums.append((power[items] / q).sum())
    n = TRAIN.n_items if isinstance(sampler, bn.RNS) else N_DRAWABLE
    wanted = min(sampler.negatives, n) * power.sum() / n
    assert abs(np.mean(sums) - wanted) < 4 * np.std(sums) / np.sqrt(len(sums)) + 1e-3 * wanted
