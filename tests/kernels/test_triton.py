"""The Triton kernels against the torch ones, on a GPU, or in Triton's interpreter where it is installed."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

if find_spec("triton") is None:
    pytest.skip("Triton is not installed; it comes with torch for NVIDIA GPUs", allow_module_level=True)
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

from bayesneg.kernels import triton  # noqa: E402
from bayesneg.kernels.reference import formulas as reference  # noqa: E402
from bayesneg.kernels.reference.formulas import ALL, CATALOGUE, UNOBSERVED, AsCounted, OfMixture, list_sizes  # noqa: E402
from bayesneg.kernels.reference.selections import weight_of  # noqa: E402
from bayesneg.kernels.torch import formulas, gradients  # noqa: E402
from bayesneg.kernels.torch.choices import posterior  # noqa: E402
from rule_samplers import Bent  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("m", "n_items"), [(1, 2), (5, 40), (16, 2500)])
@pytest.mark.parametrize("over", [UNOBSERVED, CATALOGUE, ALL], ids=["unobserved", "catalogue", "all"])
@pytest.mark.parametrize("likelihood", [AsCounted(), OfMixture(0.03), Bent().form()], ids=["paper", "mixture", "table"])
@pytest.mark.parametrize("risky", [True, False], ids=["least risk", "most unbiased"])
@pytest.mark.parametrize("steps", [3, 10**6], ids=["tied", "distinct"])
def test_the_choice_by_posterior(m, n_items, over, likelihood, risky, steps):
    random = torch.Generator().manual_seed(m)
    B = 30
    scores = torch.randint(-steps, steps + 1, (B, n_items), generator=random).float() / steps * 3
    counts = torch.randint(0, n_items, (B,), generator=random)
    rows = torch.cat([torch.randperm(n_items, generator=random)[:count].sort().values for count in counts]).int()
    starts = counts.cumsum(0) - counts
    candidates = torch.randint(0, n_items, (B, m), generator=random)
    sizes = torch.randint(0, m + 1, (B,), generator=random)
    positives = torch.randint(0, n_items, (B,), generator=random)
    priors = torch.rand(B, m, generator=random, dtype=torch.float64) * 0.1
    weight = torch.tensor(5.0, dtype=torch.float64)

    x = scores.gather(1, candidates)
    at_most = torch.zeros(B, m)
    for b in range(B):
        listed = torch.ones(n_items, dtype=torch.bool)
        if not over.with_observed:
            listed[rows[starts[b] : starts[b] + counts[b]].long()] = False
        at_most[b] = (scores[b, listed, None] <= x[b]).sum(dim=0)
    _, n = list_sizes(over, n_items, counts)
    likelihood = type(likelihood)(*(torch.tensor(value, dtype=torch.float64) for value in likelihood))
    true_negative = formulas.counted_unbias(likelihood, at_most, n, priors)
    if risky:
        x_positive = scores.gather(1, positives[:, None])[:, 0]
        position = posterior.choose_least_risk(x, x_positive, true_negative, weight, sizes)
    else:
        position = posterior.choose_most_unbiased(true_negative, sizes)
    expected = torch.where(sizes > 0, candidates.gather(1, position[:, None])[:, 0], -1)
    assert true_negative.isfinite().all()

    def there(tensor):
        return tensor.to(DEVICE)

    wide = torch.full((B, m + 3), -7)  # columns of a wider tensor, as a step has them
    wide[:, 0], wide[:, 1], wide[:, 3:] = positives, sizes, candidates
    wide = there(wide)
    chosen = triton.choose_by_posterior(
        there(scores), wide[:, 0], there(starts), there(counts), there(rows), wide[:, 3:], wide[:, 1], there(priors),
        there(weight) if risky else None, over=over, likelihood=type(likelihood)(*map(there, likelihood)),
    )  # fmt: skip
    torch.testing.assert_close(chosen.cpu(), expected)


@pytest.mark.parametrize("n_pool", [3, 1500])
@pytest.mark.parametrize("likelihood", [AsCounted(), OfMixture(0.03), Bent().form()], ids=["paper", "mixture", "table"])
@pytest.mark.parametrize("ramp", [False, True], ids=["posterior", "risk"])
@pytest.mark.parametrize("shape", ["pairs", "items", "users"])
def test_the_weights_of_a_pool(n_pool, likelihood, ramp, shape):
    random, B = torch.Generator().manual_seed(n_pool), 20
    at_most = torch.randint(0, n_pool + 1, (B, n_pool), generator=random, dtype=torch.int32)
    totals = torch.full((B,), n_pool + 1.0, dtype=torch.float64)
    counts = torch.rand(B, n_pool, generator=random) < 0.8
    priors = torch.rand({"pairs": (B, n_pool), "items": (1, n_pool), "users": (B, 1)}[shape], generator=random)
    likelihood = type(likelihood)(*(torch.tensor(value, dtype=torch.float64) for value in likelihood))
    unbias = reference.unbias(formulas.base_cdf(likelihood, at_most.double() / totals[:, None]), priors.double())
    expected = torch.where(counts, weight_of(unbias, 2.5, ramp), 0.0).float()
    on_device = (part.to(DEVICE) for part in (at_most, totals, counts, priors))
    there = type(likelihood)(*(value.to(DEVICE) for value in likelihood))
    found = triton.weigh_pool(*on_device, likelihood=there, weight=2.5, ramp=ramp)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("strength", [0.0, 0.3])
@pytest.mark.parametrize("d", [1, 5, 32])
def test_gradients_of_the_loss(strength, d):
    random = torch.Generator().manual_seed(d)
    users, items = torch.randn(7, d, generator=random), torch.randn(9, d, generator=random)
    which, positives = (torch.randint(0, 7, (50,), generator=random) for _ in range(2))
    negatives = torch.randint(-1, 9, (50,), generator=random)
    given = (users, items, which, positives, negatives)
    expected = gradients.bpr_gradients(*given, strength)
    found = triton.bpr_gradients(*(tensor.to(DEVICE) for tensor in given), strength)
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one.cpu(), two, atol=1e-6, rtol=1e-5)


def test_a_batch_without_any_negative_has_no_gradient():
    vectors, nobody = torch.randn(4, 3, device=DEVICE), torch.zeros(5, dtype=torch.int64, device=DEVICE)
    for kernels in (gradients, triton):
        for tensor in kernels.bpr_gradients(vectors, vectors, nobody, nobody, nobody - 1, 0.1):
            assert not tensor.any()


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_a_step_of_adam_is_torch_s(decay):
    random = torch.Generator().manual_seed(0)
    expected = torch.nn.Parameter(torch.randn(3000, generator=random))
    parameter = expected.detach().clone().to(DEVICE)
    mean, square = torch.zeros_like(parameter), torch.zeros_like(parameter)
    adam = torch.optim.Adam([expected], lr=0.05, weight_decay=decay)
    for step in range(1, 6):
        expected.grad = torch.randn(3000, generator=random)
        adam.step()
        triton.adam_step(
            parameter, expected.grad.to(DEVICE), mean, square, torch.tensor(float(step), device=DEVICE),
            torch.tensor(0.05, device=DEVICE), betas=(0.9, 0.999), epsilon=1e-8, decay=decay,
        )  # fmt: skip
    torch.testing.assert_close(parameter.cpu(), expected.detach(), atol=1e-6, rtol=1e-5)
