"""The softmax over many negatives, compiled in single precision, against the specification."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.numba.pools.softmax import softmax_of_rows
from bayesneg.kernels.reference.losses import SampledSoftmax, Scores

torch = pytest.importorskip("torch")

from bayesneg.kernels.torch import losses  # noqa: E402

FORMS = {
    "plain": SampledSoftmax(0.08, 1.22, False),
    "with the positive": SampledSoftmax(0.3, 1.0, True),
}


def scores(log_q: bool, n: int = 9, k: int = 300) -> Scores:
    rng = np.random.default_rng(0)
    weights = np.where(rng.random((n, k)) < 0.2, 0.0, rng.random((n, k)))
    weights[-1] = 0.0
    x = rng.normal(0, 0.3, (n, k))
    x[0] *= 1e3  # most powers are 0
    x[1, weights[1] == 0] = 1e4  # these do not count, however high
    given = rng.normal(size=n), x, weights, np.log(rng.uniform(0.05, 1, k)) if log_q else None
    return Scores(*(None if part is None else part.astype(np.float32) for part in given))


@pytest.mark.parametrize("log_q", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_rows_have_the_loss_and_the_gradients_of_the_specification(name, log_q):
    given = scores(log_q)
    wanted = FORMS[name].evaluate(Scores(*(None if part is None else part.astype(np.float64) for part in given)))
    found = softmax_of_rows(FORMS[name], given, threads=2)
    np.testing.assert_allclose(found.value[1:], wanted.value[1:], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.by_positive, wanted.by_positive, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.by_negatives[1:], wanted.by_negatives[1:], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(found.by_negatives[0], wanted.by_negatives[0], rtol=1e-3, atol=1e-3)  # scores of 1,000


@pytest.mark.parametrize("log_q", [False, True])
def test_torch_takes_it_for_many_scores_on_the_cpu(log_q, monkeypatch):
    given = Scores(*(None if part is None else torch.from_numpy(part) for part in scores(log_q)))
    form = bn.losses.SoftmaxAtK(0.2).form()
    given = given._replace(threshold=torch.linspace(-1, 1, 9))
    by_torch = losses.evaluate(form, given)
    monkeypatch.setattr(losses, "MANY", 1)
    compiled = losses.evaluate(form, given)
    assert not torch.equal(by_torch.by_negatives, compiled.by_negatives)  # another order of sums
    for one, other in zip(by_torch, compiled, strict=True):
        torch.testing.assert_close(one[1:], other[1:], rtol=2e-5, atol=1e-5)


def test_doubles_and_a_draw_of_each_example_are_left_to_torch(monkeypatch):
    monkeypatch.setattr(losses, "MANY", 1)
    given = Scores(*(torch.from_numpy(part) for part in scores(True)[:4]))
    assert losses._suits_compiled_code(given)
    assert not losses._suits_compiled_code(given._replace(negatives=given.negatives.double()))
    assert not losses._suits_compiled_code(given._replace(log_q=given.log_q.expand(9, -1)))
    assert not losses._suits_compiled_code(given._replace(negatives=given.negatives.to("meta")))


@pytest.mark.parametrize("cosine", [False, True])
def test_the_gradient_of_a_pool_is_that_of_autograd(cosine):
    from bayesneg.models.torch.batch_scores import EmbeddingScores

    rng = np.random.default_rng(1)
    users, items = (torch.from_numpy(rng.normal(size=(n, 4))).float().requires_grad_() for n in (5, 12))
    which, positives, pool = torch.tensor([0, 3, 3]), torch.tensor([2, 2, 7]), torch.tensor([1, 2, 9, 11])
    weights, share = torch.from_numpy(rng.random((3, 4))).float(), torch.tensor([0.5, 0.0, 0.5])
    scored = EmbeddingScores(users, items, which, cosine=cosine).scored(positives, bn.Negatives(pool, weights))
    values = losses.evaluate(FORMS["plain"], Scores(scored.positive.detach(), scored.negatives, weights))
    torch.autograd.backward(*scored.pulled(values, share))
    found = users.grad.clone(), items.grad.clone()
    users.grad = items.grad = None
    w, h = (torch.nn.functional.normalize(part, dim=1) if cosine else part for part in (users, items))
    tau, b, _ = FORMS["plain"]
    negatives = (weights * (w[which] @ h[pool].T / tau).exp()).sum(dim=1).log()
    (share * (b * negatives - (w[which] * h[positives]).sum(dim=1) / tau)).sum().backward()
    for one, other in zip(found, (users.grad, items.grad), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
