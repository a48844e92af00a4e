"""Losses at low temperatures and high scores, in single precision: finite, and the values of plain arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.numba import losses as compiled_losses
from bayesneg.kernels.reference.losses import LossValues, Scores

torch = pytest.importorskip("torch")

from bayesneg.kernels.torch import losses as torch_losses  # noqa: E402

# temperature, s_i, s_k
CASES = {
    "cosines near 1": (0.01, 0.98, [0.99, 0.5, 0.97]),
    "cosines near -1": (0.01, -0.98, [-0.99, -0.5, -0.97]),
    "high inner products": (0.1, 50.0, [49.9, 50.1, 3.0]),
    "low inner products": (0.1, -50.0, [-49.9, -50.1, -60.0]),
    "a positive far above": (0.1, 50.0, [-50.0, -3.0, 0.0]),
    "a positive far below": (0.1, -50.0, [50.0, 3.0, 0.0]),
}
LOSSES: dict[str, Any] = {
    "dcl": lambda tau: bn.losses.DCL(temperature=tau, positive_rate=0.05),
    "hcl": lambda tau: bn.losses.HCL(temperature=tau, positive_rate=0.05, hardness=0.6),
}


def by_specification(loss: Any, given: Scores) -> LossValues:
    return loss.evaluate(given)


def by_compiled_code(loss: Any, given: Scores) -> LossValues:
    found = LossValues(np.empty(2), np.empty(2), np.empty((2, 3)))
    parts = [part.astype(np.float64) for part in given[:3]]
    compiled_losses.evaluate_block(
        compiled_losses.any_loss(loss.form()), *parts, np.empty((2, 0)), np.zeros(2), *found
    )  # fmt: skip
    return found


def by_torch(loss: Any, given: Scores) -> LossValues:
    parts = Scores(*(None if part is None else torch.from_numpy(part) for part in given))
    return LossValues(*(part.numpy() for part in torch_losses.evaluate(loss.form(), parts)))


def by_hand(loss: Any, s_i: float, s_k: list[float]) -> float:
    """The value with all powers divided by exp(m), m the highest logit, for weights of 1."""
    tau, rate, beta = loss.form()
    m = max([s_i, *s_k, -1.0]) / tau
    tilt = [math.exp(beta * (s - max(s_k)) / tau) for s in s_k]
    mean = sum(t * math.exp(s / tau - m) for t, s in zip(tilt, s_k, strict=True)) / sum(tilt)
    own = math.exp(s_i / tau - m)
    rest = max((mean - rate * own) / (1 - rate), math.exp(-1 / tau - m))
    total = own + 3 * rest
    return math.log(total) + m - s_i / tau


@pytest.mark.parametrize("execute", [by_specification, by_compiled_code, by_torch])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", LOSSES)
def test_debiased_losses_do_not_overflow(name: str, case: str, execute: Any) -> None:
    tau, s_i, s_k = CASES[case]
    loss = LOSSES[name](tau)
    weights = np.array([[1, 1, 1], [0, 0, 0]], dtype=np.float32)  # the second example has no negative that counts
    given = Scores(np.array([s_i, s_i], np.float32), np.array([s_k, s_k], np.float32), weights)
    with np.errstate(over="raise", invalid="raise"):
        value, by_positive, by_negatives = execute(loss, given)
    assert value[0] == pytest.approx(by_hand(loss, s_i, s_k), rel=1e-4, abs=1e-4)
    assert np.isfinite(by_positive).all()
    assert np.isfinite(by_negatives).all()
    step = 1e-5 * tau
    rise = by_hand(loss, s_i + step, s_k) - by_hand(loss, s_i - step, s_k)
    assert by_positive[0] == pytest.approx(rise / (2 * step), rel=2e-3, abs=1e-3)
    for k in range(3):
        up, down = ([s + sign * step * (j == k) for j, s in enumerate(s_k)] for sign in (1, -1))
        rise = by_hand(loss, s_i, up) - by_hand(loss, s_i, down)
        assert by_negatives[0, k] == pytest.approx(rise / (2 * step), rel=2e-3, abs=1e-3)
    assert value[1] == by_positive[1] == 0
    assert not by_negatives[1].any()
