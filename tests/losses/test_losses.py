"""Losses: gradients against finite differences and autograd, three executions, and the identities between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.numba import losses as compiled_losses
from bayesneg.kernels.reference.losses import LossValues, Scores

torch = pytest.importorskip("torch")

from bayesneg.kernels.torch import losses as torch_losses  # noqa: E402

LOSSES = {
    "bpr": bn.losses.BPR(),
    "logistic": bn.losses.Logistic(),
    "ccl": bn.losses.CCL(margin=0.1, negative_weight=3.0),
    "softmax": bn.losses.Softmax(temperature=0.3),
    "softmax, b": bn.losses.Softmax(temperature=0.2, negative_weight=1.3),
    "softmax with positive": bn.losses.Softmax(temperature=0.3, negative_weight=0.9, include_positive=True),
    "softmax at k": bn.losses.SoftmaxAtK(temperature=0.3, k=3, weight_temperature=0.7),
    "psl, relu": bn.losses.PSL(temperature=0.5, surrogate="relu"),
    "psl, tanh": bn.losses.PSL(temperature=0.5, surrogate="tanh"),
    "psl, atan": bn.losses.PSL(temperature=0.5, surrogate="atan"),
    "dcl": bn.losses.DCL(temperature=0.5, positive_rate=0.05),
    "hcl": bn.losses.HCL(temperature=0.5, positive_rate=0.05, hardness=0.6),
}


def scores(*, n: int = 6, k: int = 5, seed: int = 0, log_q: bool = True) -> Scores:
    """Random scores between −1 and 1; the last example has no negative that counts, others lack some."""
    rng = np.random.default_rng(seed)
    weights = rng.random((n, k)) * (rng.random((n, k)) > 0.2)
    weights[-1] = 0.0
    weights[0, 0] = 1.0
    return Scores(
        rng.uniform(-1, 1, n),
        rng.uniform(-1, 1, (n, k)),
        weights,
        np.log(rng.uniform(0.1, 1, k)) if log_q else None,
        rng.uniform(-1, 1, n),
    )


def by_differences(loss: bn.losses.Loss, given: Scores, step: float = 1e-6) -> LossValues:
    def value(positive: np.ndarray, negatives: np.ndarray) -> Any:
        return loss.evaluate(given._replace(positive=positive, negatives=negatives)).value

    by_positive = value(given.positive + step, given.negatives) - value(given.positive - step, given.negatives)
    by_negatives = np.empty(given.negatives.shape)
    for k in range(given.negatives.shape[1]):
        moved = np.zeros(given.negatives.shape)
        moved[:, k] = step
        by_negatives[:, k] = value(given.positive, given.negatives + moved) - value(
            given.positive, given.negatives - moved
        )
    return LossValues(None, by_positive / (2 * step), by_negatives / (2 * step))


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_agree_with_finite_differences(name: str) -> None:
    given = scores()
    found, wanted = LOSSES[name].evaluate(given), by_differences(LOSSES[name], given)
    np.testing.assert_allclose(found.by_positive, wanted.by_positive, atol=1e-7)
    np.testing.assert_allclose(found.by_negatives, wanted.by_negatives, atol=1e-7)


@pytest.mark.parametrize("name", LOSSES)
def test_an_example_without_negatives_has_no_loss_and_no_gradient(name: str) -> None:
    found = LOSSES[name].evaluate(scores())
    assert found.value[-1] == found.by_positive[-1] == 0
    assert not found.by_negatives[-1].any()
    assert np.isfinite(found.value).all()


@pytest.mark.parametrize("name", LOSSES)
def test_a_negative_of_weight_0_changes_nothing(name: str) -> None:
    given = scores()
    wild = given._replace(negatives=np.where(given.weights == 0, 50.0, given.negatives))
    for found, wanted in zip(LOSSES[name].evaluate(wild), LOSSES[name].evaluate(given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("log_q", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_torch_computes_the_same(name: str, log_q: bool) -> None:
    given, form = scores(log_q=log_q), LOSSES[name].form()
    assert form is not None
    found = torch_losses.evaluate(form, Scores(*(None if part is None else torch.from_numpy(part) for part in given)))
    for tensor, wanted in zip(found, LOSSES[name].evaluate(given), strict=True):
        np.testing.assert_allclose(tensor.numpy(), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("log_q", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_compiled_code_computes_the_same(name: str, log_q: bool) -> None:
    given, form = scores(log_q=log_q), LOSSES[name].form()
    assert form is not None
    found = LossValues(np.empty(6), np.empty(6), np.empty((6, 5)))
    draw = np.tile(given.log_q, (6, 1)) if log_q else np.empty((6, 0))
    compiled_losses.evaluate_block(
        compiled_losses.any_loss(form), given.positive, given.negatives, given.weights, draw, given.threshold, *found
    )
    for array, wanted in zip(found, LOSSES[name].evaluate(given), strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-10, atol=1e-12)


def test_softmax_with_one_negative_and_the_positive_is_bpr() -> None:
    given = scores(k=1, log_q=False)
    given = given._replace(weights=(given.weights > 0).astype(float))
    softmax = bn.losses.Softmax(temperature=1.0, include_positive=True).evaluate(given)
    for found, wanted in zip(softmax, bn.losses.BPR().evaluate(given), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_hcl_without_hardness_is_dcl() -> None:
    for found, wanted in zip(
        bn.losses.HCL(hardness=0.0).evaluate(scores()), bn.losses.DCL().evaluate(scores()), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_a_custom_torch_loss_is_differentiated() -> None:
    softplus = torch.nn.functional.softplus
    custom = bn.losses.TorchLoss(
        lambda s: (
            (s.weights * softplus(s.negatives - s.positive[:, None])).sum(dim=1) / s.weights.sum(dim=1).clamp(min=1e-9)
        )
    )
    for found, wanted in zip(custom.evaluate(scores()), bn.losses.BPR().evaluate(scores()), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_every_built_in_loss_is_found_by_its_name() -> None:
    assert set(bn.losses.losses()) == {"bpr", "logistic", "ccl", "softmax", "softmax-at-k", "psl", "dcl", "hcl"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: bn.losses.Softmax(temperature=0), "temperature must be a number above 0, got 0"),
        (lambda: bn.losses.PSL(surrogate="exp"), "surrogate must be one of relu, tanh, atan, got 'exp'"),
        (lambda: bn.losses.TorchLoss(3), "function must be a function of the scores, got 3"),
    ],
)
def test_wrong_settings_are_refused_with_a_sentence(make: Any, said: str) -> None:
    with pytest.raises(bn.BayesnegError, match=said):
        make()
