"""Users without a training interaction are ranked by popularity, whatever the model."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from tests.fits import feature_model

COLD = "newcomer"
MODELS = {
    "mf": lambda: bn.MF(dim=8),
    "mf by cosine": lambda: bn.MF(dim=8, similarity="cosine"),
    "torch mf": lambda: bn.TorchMF(dim=8, device="cpu"),
    "lightgcn": lambda: bn.LightGCN(dim=8, device="cpu"),
    "ease": bn.baselines.EASE,
    "item-knn": bn.baselines.ItemKNN,
    "rp3beta": bn.baselines.RP3Beta,
    "gfcf": lambda: bn.baselines.GFCF(rank=4),
    "als": lambda: bn.baselines.ALS(dim=8),
}


@pytest.fixture(scope="module")
def split() -> bn.Split:
    whole = bn.split(bn.synthetic(40, 30, seed=0), seed=0)
    users = np.array([f"u{number}" for number in range(40)] + [COLD])
    parts = []
    for part, extra in ((whole.train, []), (whole.test, [3, 7])):
        numbers = np.concatenate((part.users, np.full(len(extra), 40)))
        items = np.concatenate((part.indices, extra))
        parts.append(bn.Interactions.from_numbers(numbers, items, user_ids=users, item_ids=whole.train.item_ids))
    return bn.Split(train=parts[0], test=parts[1])


def trained(name: str, split: bn.Split) -> bn.Run:
    if name in ("torch mf", "lightgcn"):
        pytest.importorskip("torch")
    model = MODELS[name]()
    sampler = None if isinstance(model, bn.baselines.Baseline) else bn.RNS()
    return bn.fit(model, split, sampler, epochs=2, progress=False)


@pytest.mark.parametrize("name", MODELS)
def test_a_cold_user_gets_the_most_popular_items(name, split, tmp_path):
    run = trained(name, split)
    popular = split.train.popularity
    expected = np.lexsort((np.arange(len(popular)), -popular))
    expected = [item for item in expected if item not in (3, 7)][:5]  # held-out items are not recommended
    found = [item for item, _ in run.recommend(COLD, k=5)]
    assert found == split.train.item_ids[expected].tolist()
    known = split.train.user_ids[0]
    assert [item for item, _ in run.recommend(known, k=5)] != found
    items = np.arange(len(popular))[None, :]
    cold = np.array([40])
    np.testing.assert_array_equal(run.scorer.score(cold, items), run.scorer.score_all(cold))
    run.save(tmp_path / "run")
    loaded = bn.load_run(tmp_path / "run")
    assert loaded.recommend(COLD, k=5) == run.recommend(COLD, k=5)
    assert loaded.recommend(known, k=5) == run.recommend(known, k=5)


def test_a_model_with_features_scores_cold_users_itself(split):
    run = bn.fit(feature_model(), split, bn.RNS(), epochs=1, progress=False)
    vectors = run.scorer.embeddings()
    np.testing.assert_allclose(run.scorer.score_all(np.array([40]))[0], vectors.items @ vectors.users[40], rtol=1e-5)


def test_ranking_on_a_device_does_the_same(split):
    torch = pytest.importorskip("torch")
    from bayesneg.models.torch.device import EmbeddingsRankedOnGPU

    scorer = trained("mf", split).scorer
    ranked = EmbeddingsRankedOnGPU(scorer.users, scorer.items, torch.device("cpu"), 100, cold=scorer.cold)
    expected, found = (bn.evaluate(one, split, k=5, metrics="ndcg").values["ndcg@5"] for one in (scorer, ranked))
    np.testing.assert_array_equal(found, expected)


def test_without_cold_users_nothing_is_stored():
    users = np.repeat(np.arange(10), 4)
    data = bn.Interactions.from_numbers(users, np.arange(40) % 13, user_ids=np.arange(10), item_ids=np.arange(13))
    warm = bn.split(data, test=0.25, seed=0)
    assert warm.train.counts.min() > 0
    assert bn.fit(bn.MF(dim=8), warm, bn.RNS(), epochs=1, progress=False).scorer.cold is None
