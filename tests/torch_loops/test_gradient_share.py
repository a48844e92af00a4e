"""The share of the gradient on false negatives outside ``fit``: the figure that ``fit`` records."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn

torch = pytest.importorskip("torch")

import bayesneg.torch as bnt  # noqa: E402
from tests.torch_loops.test_sampler import SPLIT, TRAIN  # noqa: E402


def world(similarity="inner", seed=0):
    generator = torch.Generator().manual_seed(seed)
    U, V = torch.randn(80, 6, generator=generator), torch.randn(60, 6, generator=generator)
    users, items = (torch.from_numpy(part[:100].astype(np.int64)) for part in (TRAIN.users, TRAIN.indices))
    return users, items, U, V


@pytest.mark.parametrize("sampler", [bn.RNS(negatives=7), bn.BNS(candidates=40, shared=True, weighting="posterior")])
@pytest.mark.parametrize("similarity", ["inner", "cosine"])
@pytest.mark.parametrize("loss", [bn.losses.Softmax(0.5), bn.losses.CCL(0.1, 2.0), bn.losses.SoftmaxAtK(0.5, k=3)])
def test_it_is_the_share_of_the_derivatives_by_score(loss, similarity, sampler):
    users, items, U, V = world()
    negatives = bnt.Sampler(sampler, TRAIN, similarity=similarity)(users, items, U, V)
    meter = bnt.GradientShare(SPLIT.test, loss, similarity=similarity)
    meter.add(users, items, U, V, negatives)
    w, h = (torch.nn.functional.normalize(x) if similarity == "cosine" else x for x in (U, V))
    lists = (w[users] @ h.T).numpy()
    wide = np.broadcast_to(negatives.items.numpy(), negatives.weights.shape)
    threshold = np.sort(lists, axis=1)[:, -3]
    scores = bn.losses.Scores(
        lists[np.arange(100), items],
        np.take_along_axis(lists, wide, axis=1),
        negatives.weights.numpy(),
        None,
        threshold,
    )
    slopes = np.abs(loss.evaluate(scores).by_negatives)
    false = SPLIT.test.contains(users.numpy()[:, None], wide)
    found = meter.result()
    assert found["gradient_fn"] == pytest.approx(slopes[false].sum() / slopes.sum(), rel=1e-4)
    shares = scores.weights / scores.weights.sum(axis=1, keepdims=True)
    assert found["tnr"] == pytest.approx(1 - shares[false].sum() / len(shares), rel=1e-5)
    assert 0 < found["gradient_fn"] < 1


def test_a_result_begins_anew_and_nothing_is_nan_without_batches():
    users, items, U, V = world()
    meter = bnt.GradientShare(SPLIT.test)
    assert np.isnan(meter.result()["gradient_fn"])
    one, two = (bnt.Sampler(bn.RNS(negatives=20), TRAIN, seed=seed)(users, items, U, V) for seed in (0, 1))
    results = []
    for negatives in (one, two, one):
        meter.add(users, items, U, V, negatives)
        results.append(meter.result())
    assert results[0] == results[2] != results[1]
    for negatives in (one, two):
        meter.add(users, items, U, V, negatives)
    both = meter.result()["tnr"]
    assert both == pytest.approx((results[0]["tnr"] + results[1]["tnr"]) / 2)


def test_the_loop_measures_what_fit_records():
    """One epoch without learning: fit and a loop see the same model, and uniform negatives in expectation."""
    model = bn.TorchMF(dim=6, device="cpu", batch_size=64, learning_rate=1e-12)
    sampler, loss = bn.RNS(negatives=59, shared=True), bn.losses.Softmax(0.5)
    run = bn.fit(model, SPLIT, sampler, loss=loss, epochs=1, seed=0, progress=False)
    U, V = (torch.from_numpy(part) for part in run.scorer.embeddings())
    bound, meter = bnt.Sampler(sampler, TRAIN), bnt.GradientShare(SPLIT.held_out, loss)
    users, items = (torch.from_numpy(part.astype(np.int64)) for part in (TRAIN.users, TRAIN.indices))
    for batch in torch.arange(len(users)).split(64):
        meter.add(users[batch], items[batch], U, V, bound(users[batch], items[batch], U, V))
    found = meter.result()
    for name in ("gradient_fn", "tnr", "inf"):
        assert found[name] == pytest.approx(run.record.epochs[-1][name], rel=0.05)


def test_wrong_input_is_refused_with_a_sentence():
    users, items, U, V = world()
    with pytest.raises(bn.BayesnegError, match="labels must be interactions"):
        bnt.GradientShare([[0, 1]])
    with pytest.raises(bn.BayesnegError, match="is not a loss; valid"):
        bnt.GradientShare(SPLIT.test, "hinge")
    with pytest.raises(bn.BayesnegError, match=r"item_vectors must be the embeddings \(60, d\)"):
        bnt.GradientShare(SPLIT.test).add(users, items, U, V[:50], bnt.Negatives(items[:, None]))
