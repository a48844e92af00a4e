"""Thresholds and normalised embeddings have one definition, whichever model and whichever shape of negatives."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.numba.sgd_several import normalised
from bayesneg.kernels.reference import ranks
from bayesneg.models.scorers import unit_rows

torch = pytest.importorskip("torch")

from bayesneg.kernels.torch import formulas  # noqa: E402
from bayesneg.kernels.torch.pair_scores import scores_of  # noqa: E402
from bayesneg.models.torch.batch_scores import EmbeddingScores  # noqa: E402

SPLIT = bn.split(bn.synthetic(40, 30, seed=0), test=0.2, seed=0)


@pytest.mark.parametrize("length", [1.0, 1e-9, 1e-14, 0.0])
def test_a_cosine_is_the_same_wherever_it_is_computed(length: float) -> None:
    """Also for embeddings so short that the bound on their norm counts."""
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(2, 4)).astype(np.float32), rng.normal(size=(3, 4))
    items = (length * items / np.linalg.norm(items, axis=1, keepdims=True)).astype(np.float32)
    w, h = torch.from_numpy(users), torch.from_numpy(items)
    wanted = unit_rows(users) @ unit_rows(items).T  # (2, 3)
    each, pool = torch.arange(3).expand(2, 3), torch.arange(3)
    batch = EmbeddingScores(w, h, torch.arange(2), cosine=True)
    found = {
        "each": scores_of(w, w, h, each, None, cosine=True)[1],
        "pool": scores_of(w, w, h, pool, None, cosine=True)[1],
        "vectors": scores_of(w, w, None, each, h[each], cosine=True)[1],
        "of": batch.of(each),
        "of pool": batch.of_pool(pool),
        "compiled": normalised(users) @ normalised(items).T,
    }
    assert abs(wanted).max() == pytest.approx(min(1.0, length / 1e-12), rel=0.6)
    for values in found.values():
        np.testing.assert_allclose(values, wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_kth_highest_of_a_list_is_the_same_in_both_executions(k: int) -> None:
    x = np.random.default_rng(0).integers(4, size=(20, 7)).astype(np.float32)  # with ties
    found = ranks.kth_highest(x, k)
    np.testing.assert_array_equal(found, np.sort(x, axis=1)[:, -k])
    np.testing.assert_array_equal(formulas.kth_highest(torch.from_numpy(x), k), found)


@pytest.mark.parametrize("rank", [3, 100])
def test_the_thresholds_of_both_models_are_those_of_their_scores(rank: int) -> None:
    loss, rng = bn.losses.SoftmaxAtK(k=rank), np.random.default_rng(0)
    sampler = bn.RNS(negatives=2).prepare(SPLIT.train, rng=rng)
    for model in (bn.MF(dim=3), bn.TorchMF(dim=3, device="cpu", batch_size=64, chunk=100)):  # chunk: parts of 3 users
        learner = model.start(SPLIT.train, rng=np.random.default_rng(0))
        scores = learner.score_all(np.arange(SPLIT.train.n_users))
        blocks = learner.train_epoch(sampler, epoch=1, order=np.arange(50), rng=rng, loss=loss, labels={})
        for _ in blocks:
            pass
        found = next(value for key, value in learner.state_dict().items() if key.endswith("thresholds"))
        wanted = np.sort(scores, axis=1)[:, max(0, SPLIT.train.n_items - rank)]
        assert found.dtype == (np.float64 if isinstance(model, bn.MF) else np.float32)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
