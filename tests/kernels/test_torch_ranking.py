"""The k best items in torch: as compiled code lists them, ties, NaN and short catalogues included."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import bayesneg as bn  # noqa: E402
from bayesneg.evaluation._topk import top_k  # noqa: E402
from bayesneg.kernels.torch.ranking import top_items  # noqa: E402
from bayesneg.models.scorers import EmbeddingScorer  # noqa: E402
from bayesneg.models.torch.device import EmbeddingsRankedOnGPU, rows_on  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


def vectors(data: bn.Interactions, values: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of few whole numbers, whose products are exact and often equal."""
    rng = np.random.default_rng(seed)
    make = [rng.integers(-values, values + 1, (n, 3)).astype(np.float32) for n in (data.n_users, data.n_items)]
    return make[0], make[1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("values", [1, 50])
@pytest.mark.parametrize("k", [1, 7, 30])
def test_the_lists_are_those_of_compiled_code(k: int, values: int, device: str) -> None:
    data = bn.synthetic(60, 40, seed=k)
    users, items = vectors(data, values, seed=k)
    items[3], users[5] = np.nan, 0.0  # an item that ranks last, a user for whom all are equal
    which = np.random.default_rng(1).permutation(data.n_users)
    expected = top_k(users[which] @ items.T, which, data.indptr, data.indices, k)
    on = torch.device(device)
    tensors = [torch.from_numpy(part).to(on) for part in (users, items, which)]
    found = top_items(*tensors, rows_on(data, on), k, scores_at_once=7 * data.n_items)
    np.testing.assert_array_equal(found.cpu().numpy(), expected)


def test_fewer_than_k_are_left() -> None:
    data = bn.Interactions.from_pairs([0, 0, 0, 1], [0, 1, 2, 1])
    users, items = np.ones((2, 1), dtype=np.float32), np.array([[1], [2], [3]], dtype=np.float32)
    tensors = [torch.from_numpy(part) for part in (users, items, np.arange(2))]
    found = top_items(*tensors, rows_on(data, torch.device("cpu")), 3, scores_at_once=100)
    assert found.tolist() == [[-1, -1, -1], [2, 0, -1]]


def test_evaluation_asks_a_scorer_that_ranks_on_its_device() -> None:
    split = bn.split(bn.synthetic(80, 60, seed=0), seed=0)
    scorer = bn.fit(bn.MF(dim=8), split, bn.RNS(), epochs=2, progress=False).scorer
    ranked = EmbeddingsRankedOnGPU(scorer.users, scorer.items, torch.device("cpu"), 500, cold=scorer.cold)
    asked = []
    top = ranked.top_items
    ranked.top_items = lambda users, seen, k: asked.append(len(users)) or top(users, seen, k)
    options = {"k": (5, 20), "metrics": ("ndcg", "recall", "coverage")}
    expected, found = (bn.evaluate(one, split, **options) for one in (scorer, ranked))
    assert sum(asked) == len(found.user_ids)
    assert found.mean == expected.mean


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_run_on_a_gpu_is_ranked_there_like_on_the_host(tmp_path) -> None:
    split = bn.split(bn.synthetic(80, 60, seed=0), seed=0)
    run = bn.fit(bn.TorchMF(dim=8), split, bn.RNS(), epochs=2, progress=False)
    assert isinstance(run.scorer, EmbeddingsRankedOnGPU)
    same = EmbeddingScorer(run.scorer.users, run.scorer.items, cold=run.scorer.cold)
    on_host = bn.evaluate(same, split, k=20, metrics="ndcg").mean["ndcg@20"]
    assert run.record.epochs[-1]["ndcg@20"] == pytest.approx(on_host, abs=1e-6)
    run.save(tmp_path / "run")
