"""What the loss functions of a loop and the gradient meter take, and what they refuse with a sentence."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn

torch = pytest.importorskip("torch")

import bayesneg.torch as bnt  # noqa: E402
from tests.torch_loops.test_sampler import LOSSES, SPLIT, TRAIN  # noqa: E402


def given(n=2, d=3, n_items=5):
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(size, d, generator=generator).requires_grad_() for size in (n, n, n_items))


@pytest.mark.parametrize("with_log_q", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_no_item_counts_for_nothing_whatever_its_weight(name, with_log_q):
    loss = getattr(bnt.losses, name)
    w, h, table = given()
    log_q = torch.tensor([[0.1, float("nan")], [0.3, 0.2]]) if with_log_q else None
    found = loss(w, h, table, bnt.Negatives(torch.tensor([[3, -1], [4, 2]]), torch.ones(2, 2), log_q))
    slopes = torch.autograd.grad(found, (w, h, table))
    assert slopes[2][0].abs().sum() == 0  # item 0 is no negative
    masked, zero = torch.tensor([[1.0, 0.0], [1.0, 1.0]]), None if log_q is None else log_q.nan_to_num(0.7)
    wanted = loss(w, h, table, bnt.Negatives(torch.tensor([[3, 0], [4, 2]]), masked, zero))
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(slopes, torch.autograd.grad(wanted, (w, h, table)))


def test_the_meter_counts_no_item_for_nothing_whatever_its_weight():
    users, items = (torch.from_numpy(part[:50].astype(np.int64)) for part in (TRAIN.users, TRAIN.indices))
    U, V = (torch.randn(n, 4, generator=torch.Generator().manual_seed(n)) for n in (80, 60))
    sampled = bnt.Sampler(bn.RNS(negatives=6), TRAIN)(users, items, U, V)
    fewer = sampled.items.clone()
    fewer[:, 3:] = -1
    results = []
    for weights in (torch.ones(50, 6), (fewer >= 0).float()):
        meter = bnt.GradientShare(SPLIT.test, "softmax")
        meter.add(users, items, U, V, bnt.Negatives(fewer, weights))
        results.append(meter.result())
    assert results[0] == results[1]


def wrong(items=((0, 1), (2, 3)), *rest):
    """Negatives in place of correct ones."""
    return {"negatives": bnt.Negatives(torch.tensor(items) if isinstance(items, tuple) else items, *rest)}


NAN = float("nan")
ON_META = {"device": "meta"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (wrong(((0, -2), (1, 2))), "negatives.items must be item numbers from 0 to 4, or -1 for no item, got -2"),
        (wrong(((0.0, 1.0), (1.0, 2.0))), r"negatives.items must be item numbers .* torch.float32 of shape \(2, 2\)"),
        (wrong((((0,),), ((1,),))), r"must be item numbers of shape \(2, K\), or \(N,\) .* shape \(2, 1, 1\)"),
        (wrong(torch.empty(2, 0, dtype=torch.int64)), r"negatives.items must have at least one column, .*\(2, 0\)"),
        (wrong(torch.empty(0, dtype=torch.int64)), r"negatives.items must have at least one column, .*\(0,\)"),
        (wrong(np.zeros((2, 2), dtype=np.int64)), "negatives.items must be a tensor, got ndarray"),
        (wrong(((0, 1), (2, 3)), [[1.0, 1.0], [1.0, 1.0]]), "negatives.weights must be a tensor, got list"),
        (wrong(((0, 1), (2, 3)), None, torch.zeros(2)), r"log_q must have the shape .* \(2, 2\), got \(2,\)"),
        (wrong((0, 1, 2), None, torch.zeros(2)), r"log_q must have the shape .* \(3,\), got \(2,\)"),
        (wrong(((0, 1), (2, 3)), None, torch.tensor([[0.0, NAN], [0.0, 0.0]])), "negatives.log_q must be finite"),
        (wrong(((0, 1), (2, 3)), None, torch.zeros(2, 2, **ON_META)), "one device, got .* negatives.log_q on meta"),
        (wrong(((0, 1), (2, 3)), None, None, torch.ones(2, 2, 4)), r"vectors must be .*\(2, 2, 3\), got .*\(2, 2, 4\)"),
        (wrong(((0, 1), (2, 3)), None, None, torch.ones(2, 3)), r"negatives.vectors must be embeddings of shape"),
        (wrong(((0, 1), (2, 3)), None, None, torch.ones(2, 2, 3, **ON_META)), "negatives.vectors on meta"),
        ({"items": torch.ones(5, 4)}, r"items must be the embeddings \(n_items, 3\) of all items, got \(5, 4\)"),
        ({"users": [[1.0, 2.0, 3.0]] * 2}, "users must be a tensor, got list"),
    ],
)
def test_a_loss_refuses_wrong_input_with_a_sentence(change, said):
    names = ("users", "positives", "items")
    with pytest.raises(bn.BayesnegError, match=said):
        bnt.losses.softmax(**{**dict(zip(names, given(), strict=True)), **wrong(), **change})


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        ([0.1, 0.2], "threshold must be a tensor, got list"),
        (0.5, "threshold must be a tensor, got float"),
        (None, "threshold must be a tensor .*, got None"),
        (torch.zeros(3), r"threshold must have the shape \(2,\), .* got \(3,\)"),
        (torch.tensor([0.0, NAN]), "threshold must be finite"),
        (torch.zeros(2, device="meta"), "threshold on meta"),
    ],
)
def test_a_threshold_that_does_not_fit_is_refused(threshold, said):
    with pytest.raises(bn.BayesnegError, match=said):
        bnt.losses.softmax_at_k(*given(), wrong()["negatives"], threshold=threshold)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"negatives": torch.tensor([[0], [1]])}, "negatives must be Negatives, as a Sampler returns them, got Tensor"),
        (wrong(((60,), (1,))), "negatives.items must be item numbers from 0 to 59, or -1 for no item, got 60"),
        (wrong(((0,), (1,)), torch.tensor([[NAN], [1.0]])), "negatives.weights must be finite and at least 0, got nan"),
        (wrong(((0,), (1,), (2,))), "negatives.items must have a row for each of the 2 examples, got 3"),
        ({"users": [0, 1]}, "users must be a tensor, got list"),
        ({"positives": torch.tensor([0])}, "users and positives must be of one length, got 2 and 1"),
    ],
)
def test_the_meter_refuses_wrong_input_with_a_sentence(change, said):
    batch = {"users": torch.tensor([0, 1]), "positives": torch.tensor([0, 1])}
    vectors = {"user_vectors": torch.ones(80, 4), "item_vectors": torch.ones(60, 4)}
    with pytest.raises(bn.BayesnegError, match=said):
        bnt.GradientShare(SPLIT.test).add(**{**batch, **vectors, **wrong(((0,), (1,))), **change})


def test_a_sampler_refuses_lists_in_place_of_tensors():
    U, V = torch.ones(80, 4), torch.ones(60, 4)
    users, items = (torch.tensor(part[:2]).long() for part in (TRAIN.users, TRAIN.indices))
    with pytest.raises(bn.BayesnegError, match=r"users must be a tensor, got list; torch.as_tensor makes one"):
        bnt.Sampler("rns", TRAIN)(users.tolist(), items, U, V)
    with pytest.raises(bn.BayesnegError, match="positives must be a tensor, got ndarray"):
        bnt.Sampler("rns", TRAIN)(users, items.numpy(), U, V)


@pytest.mark.parametrize("likelihood", ["empirical", "bcl", bn.likelihoods.Empirical()])
def test_a_likelihood_that_is_learned_in_training_is_refused_outside_a_sampler(likelihood):
    with pytest.raises(bn.BayesnegError, match=r"likelihood must be one .* without a sampler: 'paper', 'mixture'"):
        bnt.log_unbias(torch.randn(3, 3), prior=0.1, likelihood=likelihood)


@pytest.mark.parametrize("likelihood", ["paper", "mixture", "uninformative", bn.likelihoods.BCL(auc=0.9)])
def test_the_likelihoods_that_the_sentence_names_work(likelihood):
    found = bnt.log_unbias(torch.eye(3), prior=0.1, likelihood=likelihood)
    assert (found <= 0).all()
