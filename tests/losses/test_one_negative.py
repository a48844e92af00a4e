"""One negative, inner products and a softmax without the positive: linear in the scores, refused at every door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError

torch = pytest.importorskip("torch")

import bayesneg.torch as bnt  # noqa: E402

SPLIT = bn.split(bn.synthetic(40, 30, seed=0), test=0.2, validation=0.1, seed=0)
SOFTMAX = bn.losses.Softmax()
TORCH_MF = bn.TorchMF(dim=2, batch_size=64, device="cpu")
SAID = "with one negative is linear in the scores and has no minimum"


class Custom(bn.NegativeSampler):
    """So many items without a training interaction, for each pair or as one pool."""

    def __init__(self, negatives: int, *, shared: bool = False) -> None:
        self.negatives, self.shared = negatives, shared

    @property
    def gives_weights(self) -> bool:
        return True

    def sample(self, batch: bn.Batch) -> bn.Negatives:
        free = [np.setdiff1d(np.arange(batch.train.n_items), batch.train.row(user)) for user in batch.users]
        if self.shared:
            return bn.Negatives(free[0][: self.negatives])
        return bn.Negatives(np.stack([items[: self.negatives] for items in free]))


POOLED = {
    "a pool of one": bn.RNS(negatives=1, shared=True),
    "a pool of one by popularity": bn.PNS(negatives=1, shared=True),
    "a weighted pool of one": bn.BNS(candidates=1, shared=True, weighting="posterior", cdf="pool"),
    "one candidate": bn.BNS(candidates=1, weighting="posterior"),
    "mixgcf": bn.samplers.MixGCF(candidates=4),
    "a warm start from one": bn.WarmStart(bn.RNS(), bn.RNS(negatives=4), warmup=1),
    "custom, one each": Custom(1),
    "custom, a pool of one": Custom(1, shared=True),
}
SEVERAL = {
    "a pool": bn.RNS(negatives=2, shared=True),
    "mixgcf": bn.samplers.MixGCF(candidates=4, negatives=2),
    "a warm start": bn.WarmStart(bn.RNS(negatives=2), bn.DNS(candidates=4, top=4, negatives=2), warmup=1),
    "custom, several each": Custom(2),
    "custom, a pool": Custom(2, shared=True),
    "in-batch": bn.samplers.InBatch(),
}


def fit(model: Any, sampler: bn.NegativeSampler, loss: Any = SOFTMAX) -> bn.Run:
    return bn.fit(model, SPLIT, sampler, loss=loss, epochs=1, progress=False)


@pytest.mark.parametrize("loss", [SOFTMAX, bn.losses.SoftmaxAtK()], ids=["softmax", "softmax at k"])
@pytest.mark.parametrize("name", POOLED)
def test_fit_refuses_one_negative(name: str, loss: Any) -> None:
    with pytest.raises(InputError, match=f"{SAID}.*set similarity=cosine, or take softmax:include_positive=true"):
        fit(TORCH_MF, POOLED[name], loss)


def test_compiled_mf_refuses_one_negative_of_a_custom_sampler() -> None:
    with pytest.raises(InputError, match=f"{SAID}, and Custom.sample returned one"):
        fit(bn.MF(dim=2), Custom(1))
    fit(bn.MF(dim=2), Custom(2))
    fit(bn.MF(dim=2, similarity="cosine"), Custom(1))
    fit(bn.MF(dim=2), Custom(1), bn.losses.Softmax(include_positive=True))


@pytest.mark.parametrize("name", POOLED)
def test_one_negative_learns_under_the_cosine(name: str) -> None:
    fit(bn.TorchMF(dim=2, batch_size=64, device="cpu", similarity="cosine"), POOLED[name])


@pytest.mark.parametrize("name", SEVERAL)
def test_several_negatives_are_not_refused(name: str) -> None:
    fit(TORCH_MF, SEVERAL[name])


def test_a_short_last_batch_is_not_refused() -> None:
    n = len(SPLIT.train)
    size = next(size for size in range(10, n) if n % size == 1)
    fit(bn.TorchMF(dim=2, batch_size=size, device="cpu"), bn.samplers.InBatch())


@pytest.mark.parametrize("sampler", ["mixgcf", "rns:negatives=1:shared=true", "bns-2"])
def test_tune_refuses_one_negative_before_the_search(sampler: str) -> None:
    pytest.importorskip("optuna")
    with pytest.raises(InputError, match=SAID):
        bn.tune(TORCH_MF, SPLIT, sampler, loss="softmax", trials=2, epochs=1, seeds=1, baselines=(), progress=False)


@pytest.mark.parametrize("items", [[[3], [4]], [3]], ids=["each", "pool"])
def test_a_loss_function_refuses_one_negative(items: list[Any]) -> None:
    w, h, table = (torch.ones(n, 3, requires_grad=True) for n in (2, 2, 5))
    negatives = bnt.Negatives(torch.tensor(items))
    with pytest.raises(InputError, match=f"{SAID}, and negatives.items has one"):
        bnt.losses.softmax(w, h, table, negatives)
    with pytest.raises(InputError, match=SAID):
        bnt.losses.softmax_at_k(w, h, table, negatives, threshold=torch.zeros(2))
    for way_out in ({"similarity": "cosine"}, {"include_positive": True}):
        assert bnt.losses.softmax(w, h, table, negatives, **way_out).isfinite()
    assert bnt.losses.softmax(w[:1], h[:1], table, bnt.Negatives(torch.tensor([3]))).isfinite()  # a short last batch
