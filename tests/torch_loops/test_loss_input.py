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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"negatives": bnt.Negatives(torch.tensor([[0, -2], [1, 2]]))},
            "negatives.items must be item numbers from 0 to 4, or -1 for no item, got -2",
        ),
    ],
)
def test_a_loss_refuses_wrong_input_with_a_sentence(change, said):
    names = ("users", "positives", "items")
    with pytest.raises(bn.BayesnegError, match=said):
        bnt.losses.softmax(**{**dict(zip(names, given(), strict=True)), **change})
