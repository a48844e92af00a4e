"""MF with several weighted negatives, any loss, inner product and cosine: what ``fit`` does with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.evaluation import ranking
from bayesneg.interfaces import Batch, Negatives, Sampled
from bayesneg.kernels.reference.selections import select_batch
from bayesneg.models.mf import MFLearner
from fits import without_seconds

COSINE = bn.MF(dim=8, similarity="cosine", learning_rate=0.05, regularization=1e-4, init_scale=0.1)
INNER = bn.MF(dim=8, learning_rate=0.05)
LOSSES = {
    "bpr": bn.losses.BPR(),
    "logistic": bn.losses.Logistic(),
    "ccl": bn.losses.CCL(margin=0.3, negative_weight=2.0),
    "softmax": bn.losses.Softmax(),
    "softmax at k": bn.losses.SoftmaxAtK(k=10, refresh=2),
    "psl": bn.losses.PSL(),
    "dcl": bn.losses.DCL(),
    "hcl": bn.losses.HCL(),
}


class Several(bn.NegativeSampler):
    """A custom sampler: the answer of a function of the batch."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    @property
    def gives_weights(self) -> bool:
        return True

    def sample(self, batch: Batch) -> Negatives:
        return self.answer(batch)


class BPRInNumPy(bn.losses.Loss):
    """A custom loss that equals a built-in one."""

    def evaluate(self, scores: bn.losses.Scores) -> bn.losses.LossValues:
        return bn.losses.BPR().evaluate(scores)


@pytest.fixture(scope="module")
def split() -> bn.Split:
    return bn.split(bn.synthetic(80, 100, seed=0), test=0.2, seed=0)


def fit(split: bn.Split, model: bn.MF, sampler: bn.NegativeSampler, loss: Any = None, **more: Any) -> bn.Run:
    return bn.fit(model, split, sampler, loss=loss, **{"epochs": 4, "progress": False} | more)


def started(split: bn.Split, model: bn.MF) -> MFLearner:
    return model.start(split.train, rng=np.random.default_rng(0))


def first_block(
    split: bn.Split, model: bn.MF, sampler: bn.NegativeSampler, loss: Any, *, seed: int = 5, **more: Any
) -> Sampled:
    """The first block of negatives of a fresh learner."""
    order = np.arange(len(split.train))
    rng = np.random.default_rng(seed)
    return next(started(split, model).train_epoch(sampler, epoch=1, order=order, rng=rng, loss=loss, labels={}, **more))


def ndcg(scorer: Any, split: bn.Split) -> float:
    return ranking.evaluate(scorer, split, k=20, metrics="ndcg").mean["ndcg@20"]


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_improves_the_ranking(split: bn.Split, name: str) -> None:
    run = fit(split, COSINE, bn.RNS(negatives=8), LOSSES[name], epochs=8)
    assert run.record.final["ndcg@20"] > ndcg(started(split, COSINE).frozen(), split) + 0.05
    assert all(0 < line["gradient_fn"] < 0.5 for line in run.record.epochs)


@pytest.mark.parametrize(
    "loss", [None, bn.losses.Logistic(), bn.losses.Softmax(temperature=1.0, include_positive=True)], ids=str
)
def test_the_inner_product_learns_with_several_negatives(split: bn.Split, loss: Any) -> None:
    run = fit(split, INNER, bn.RNS(negatives=8), loss, epochs=40, evaluate_every=40)
    assert run.record.final["ndcg@20"] > ndcg(started(split, INNER).frozen(), split) + 0.05


@pytest.mark.parametrize("similarity", ["inner", "cosine"])
@pytest.mark.parametrize(
    "sampler",
    [
        bn.BNS(candidates=6, weighting="posterior"),
        bn.BNS(candidates=6, weighting="risk", cdf="refreshed"),
    ],
    ids=["posterior", "risk, refreshed"],
)
def test_the_selection_is_that_of_the_reference(split: bn.Split, sampler: Any, similarity: Any) -> None:
    """Under the cosine too: F counts cosines, and summaries hold them. Others: kernels/test_selections.py."""
    model = bn.MF(dim=8, similarity=similarity, learning_rate=1e-12)
    prepared = sampler.prepare(split.train, rng=np.random.default_rng(0))
    found = first_block(split, model, prepared, bn.losses.Softmax())
    batch = Batch(
        split.train.users, split.train.indices, np.arange(len(split.train)), 1, split.train, started(split, model),
        np.random.default_rng(5),
    )  # fmt: skip
    items, weights = select_batch(prepared.rule(batch), prepared.draws(batch), batch)
    assert (found.negatives == items).mean() > 0.999  # rounding may swap two scores that are all but equal
    np.testing.assert_allclose(found.weights, weights, atol=0.02)
    assert np.abs(found.weights - weights).mean() < 1e-4


def test_negatives_that_are_all_items_give_the_full_softmax(split: bn.Split) -> None:
    loss, train = bn.losses.Softmax(temperature=0.2), split.train
    found = first_block(split, COSINE, bn.RNS(negatives=train.n_items), loss)
    learner = started(split, COSINE)
    x = learner.score_all(train.users[:1])[0] / 0.2
    unobserved = np.setdiff1d(np.arange(train.n_items), train.row(int(train.users[0])))
    softmax = np.zeros(train.n_items)
    softmax[unobserved] = np.exp(x[unobserved]) / np.exp(x[unobserved]).sum()
    counted = found.negatives[0] >= 0
    assert sorted(found.negatives[0][counted]) == unobserved.tolist()
    np.testing.assert_allclose(found.gradient[0][counted], softmax[found.negatives[0][counted]] / 0.2, rtol=1e-4)


def test_a_seed_gives_the_same_bytes(split: bn.Split) -> None:
    sampler, loss = bn.BNS(candidates=6, weighting="posterior"), bn.losses.Softmax()
    one, two = (fit(split, COSINE, sampler, loss) for _ in range(2))
    assert without_seconds(one.record.epochs) == without_seconds(two.record.epochs)
    np.testing.assert_array_equal(one.scorer.embeddings().items, two.scorer.embeddings().items)


def test_threads_train_too(split: bn.Split) -> None:
    model = bn.MF(dim=8, similarity="cosine", learning_rate=0.05, regularization=1e-4, init_scale=0.1, threads=2)
    run = fit(split, model, bn.BNS(candidates=6, weighting="posterior"), bn.losses.Softmax(), epochs=8)
    assert run.record.final["ndcg@20"] > ndcg(started(split, model).frozen(), split) + 0.05


def test_a_resumed_run_ends_in_the_same_bytes(split: bn.Split, tmp_path: Any) -> None:
    """The thresholds of SoftmaxAtK, computed every third epoch, are part of a checkpoint."""
    more = {"checkpoint_every": 1, "select": "last"}
    loss = bn.losses.SoftmaxAtK(k=10, refresh=3)
    whole = fit(split, COSINE, bn.RNS(negatives=4), loss, out=tmp_path / "whole", **more)
    fit(split, COSINE, bn.RNS(negatives=4), loss, out=tmp_path / "parts", epochs=2, **more)
    parts = fit(split, COSINE, bn.RNS(negatives=4), loss, out=tmp_path / "parts", resume=True, **more)
    np.testing.assert_array_equal(parts.scorer.embeddings().items, whole.scorer.embeddings().items)


def test_the_ensemble_learns_with_any_loss(split: bn.Split) -> None:
    model = bn.MF(dim=4, similarity="cosine", learning_rate=0.05, regularization=1e-4, init_scale=0.1, ensemble_size=2)
    run = fit(split, model, bn.RNS(negatives=8), bn.losses.Softmax(), epochs=8)
    assert run.record.final["ndcg@20"] > ndcg(started(split, model).frozen(), split) + 0.05
    scores = run.scorer.score_all(np.flatnonzero(split.train.counts)[:3])
    assert np.abs(scores).max() <= 1.0001


def test_what_items_are_ranked_by_can_differ_from_the_score_in_training(split: bn.Split) -> None:
    for similarity, ranked, longest in (
        ("cosine", "inner", False),
        ("cosine", "same", True),
        ("inner", "cosine", True),
    ):
        model = bn.MF(dim=8, learning_rate=0.05, similarity=similarity, ranking=ranked)
        run = fit(split, model, bn.RNS(negatives=4), bn.losses.Softmax(), epochs=1)
        norms = np.linalg.norm(run.scorer.embeddings().items, axis=1)
        assert np.allclose(norms, 1.0, atol=1e-5) == longest


# --------------------------------------------------------------------------------------------------- custom losses


@pytest.mark.parametrize("model", [INNER, COSINE], ids=["inner", "cosine"])
def test_a_custom_loss_takes_the_steps_of_the_built_in_one(split: bn.Split, model: bn.MF) -> None:
    custom, built_in = (
        fit(split, model, bn.RNS(negatives=4), loss, epochs=2) for loss in (BPRInNumPy(), bn.losses.BPR())
    )
    for found, wanted in zip(custom.scorer.embeddings(), built_in.scorer.embeddings(), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    for line, other in zip(custom.record.epochs, built_in.record.epochs, strict=True):
        assert line["gradient_fn"] == pytest.approx(other["gradient_fn"], rel=1e-3)


def test_a_custom_loss_is_called_for_many_pairs_at_once(split: bn.Split) -> None:
    sizes: list[int] = []

    class Counting(BPRInNumPy):
        def evaluate(self, scores: bn.losses.Scores) -> bn.losses.LossValues:
            sizes.append(len(scores.positive))
            return super().evaluate(scores)

    model = bn.MF(dim=8, learning_rate=0.05, sampling_batch=64)
    run = fit(split, model, bn.RNS(negatives=4), Counting(), epochs=40, evaluate_every=40)
    assert max(sizes) == 64
    assert run.record.final["ndcg@20"] > ndcg(started(split, model).frozen(), split) + 0.05


def test_a_torch_loss_trains_mf(split: bn.Split) -> None:
    torch = pytest.importorskip("torch")
    loss = bn.losses.TorchLoss(
        lambda s: (s.weights * torch.nn.functional.softplus(s.negatives - s.positive[:, None])).mean(dim=1)
    )
    model = bn.MF(dim=8, learning_rate=0.05, sampling_batch=64)
    run = fit(split, model, bn.RNS(negatives=4), loss, epochs=40, evaluate_every=40)
    assert run.record.final["ndcg@20"] > ndcg(started(split, model).frozen(), split) + 0.05


def test_a_custom_loss_of_the_wrong_shape_is_refused(split: bn.Split) -> None:
    class Wrong(bn.losses.Loss):
        def evaluate(self, scores: bn.losses.Scores) -> bn.losses.LossValues:
            return bn.losses.LossValues(scores.positive, scores.positive, scores.positive)

    with pytest.raises(
        bn.BayesnegError, match=r"Wrong.evaluate: by_negatives must have the shape \(1, 4\), got \(1,\)"
    ):
        fit(split, INNER, bn.RNS(negatives=4), Wrong())


# ------------------------------------------------------------------------------------------------- custom samplers


def unobserved(batch: Batch) -> np.ndarray:
    """Three unobserved items of each user, some of them twice."""
    rows = [np.setdiff1d(np.arange(batch.train.n_items), batch.train.row(user)) for user in batch.users]
    return np.array([batch.rng.choice(row, 3) for row in rows])


def test_a_custom_sampler_gives_weighted_negatives(split: bn.Split) -> None:
    weights = np.array([[1.0, 0.5, 0.0]])
    sampler = Several(lambda batch: Negatives(unobserved(batch), np.tile(weights, (len(batch.users), 1))))
    found = first_block(split, bn.MF(sampling_batch=32), sampler, bn.losses.Softmax())
    assert found.negatives.shape == (32, 3)
    np.testing.assert_array_equal(found.weights, np.tile(weights, (32, 1)))
    assert (found.gradient[:, 2] == 0).all()
    assert fit(split, COSINE, sampler, bn.losses.Softmax(), epochs=1).record.epochs[0]["skipped"] == 0


def test_log_q_of_a_custom_sampler_reaches_the_loss(split: bn.Split) -> None:
    logs = np.array([0.0, -30.0, 0.0])  # the second is all but impossible to draw, and counts for many
    sampler = Several(lambda batch: Negatives(unobserved(batch), None, np.tile(logs, (len(batch.users), 1))))
    found = first_block(split, bn.MF(sampling_batch=32), sampler, bn.losses.Softmax(temperature=1.0))
    np.testing.assert_allclose(found.gradient[:, 1], 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda b: Negatives(unobserved(b), np.full((len(b.users), 3), -1.0)), "weights must be finite and at least 0"),
        (lambda b: Negatives(unobserved(b), np.full((len(b.users), 3), np.nan)), "weights must be finite"),
        (lambda b: Negatives(unobserved(b) + 1000), "items must be item numbers from 0 to"),
        (lambda b: Negatives(np.arange(5)), "MF takes a step for each example by itself; train a torch model"),
    ],
    ids=["negative", "nan", "out of range", "shared"],
)
def test_negatives_that_cannot_be_used_are_refused(split: bn.Split, answer: Any, said: str) -> None:
    with pytest.raises(bn.BayesnegError, match=said):
        fit(split, INNER, Several(answer))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda split: fit(split, INNER, bn.RNS(negatives=20, shared=True)), "RNS shares one pool"),
        (lambda split: bn.MF(similarity="dot"), "similarity must be one of inner, cosine, got 'dot'"),
        (lambda split: bn.MF(ranking="dot"), "ranking must be one of same, inner, cosine, got 'dot'"),
    ],
    ids=["shared", "similarity", "ranking"],
)
def test_what_mf_cannot_do_is_said(split: bn.Split, make: Any, said: str) -> None:
    with pytest.raises(bn.BayesnegError, match=said):
        make(split)
