"""Every built-in loss on one example, against values and derivatives written out in plain arithmetic.

s_i = 0.5. Negatives: s = 1 with ω = 1 and log q = log(1/2); s = 0 with ω = 1/2 and log q = log 2; s = 5 with ω = 0;
the last does not count. β = 0.2. So d = 1/2 and −1/2, ω/Σω = 2/3 and 1/3, and ω/q = 2 and 1/4.
"""

from __future__ import annotations

from math import atan, e, exp, log, tanh
from typing import NamedTuple

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.reference.losses import Scores


class ByHand(NamedTuple):
    """A loss with what it must be."""

    loss: bn.losses.Loss
    value: float
    by_positive: float
    by_negatives: tuple[float, float]  # of the two that count
    positive: float = 0.5


TOTAL = 2 * e**2 + 0.25  # Σ ω/q · exp(s/τ), τ = 1/2
WITH_POSITIVE = TOTAL + e
AT_K = 1 / (1 + exp(-0.3 / 0.6))  # σ((s_i − β)/τ_w)
TANH = 2 * (1 + tanh(0.5)) ** 2 + 0.25 * (1 - tanh(0.5)) ** 2
ATAN = 2 * (1 + atan(0.5)) ** 2 + 0.25 * (1 - atan(0.5)) ** 2
DCL = e + 2 * (TOTAL / 2.25 - 0.1 * e) / 0.9
TILTED = 2 * e**4 + 0.25  # Σ ω/q · exp(2 · s/τ)
HCL = e + 2 * (TILTED / TOTAL - 0.1 * e) / 0.9
FLOOR = e**4 + 2 * e**-2
LOSSES = {
    "bpr": ByHand(
        bn.losses.BPR(),
        2 / 3 * log(1 + exp(0.5)) + 1 / 3 * log(1 + exp(-0.5)),
        -2 / 3 / (1 + exp(-0.5)) - 1 / 3 / (1 + exp(0.5)),
        (2 / 3 / (1 + exp(-0.5)), 1 / 3 / (1 + exp(0.5))),
    ),
    "logistic": ByHand(
        bn.losses.Logistic(),
        log(1 + exp(-0.5)) + 2 / 3 * log(1 + e) + 1 / 3 * log(2),
        -1 / (1 + exp(0.5)),
        (2 / 3 * e / (1 + e), 1 / 6),
    ),
    "ccl": ByHand(bn.losses.CCL(margin=0.2, negative_weight=3.0), 0.5 + 3 * 2 / 3 * 0.8, -1.0, (2.0, 0.0)),
    "ccl, a positive above 1": ByHand(
        bn.losses.CCL(margin=0.2, negative_weight=3.0), 3 * 2 / 3 * 0.8, 0.0, (2.0, 0.0), positive=1.5
    ),
    "softmax": ByHand(
        bn.losses.Softmax(temperature=0.5, negative_weight=1.2),
        -1 + 1.2 * log(TOTAL),
        -2.0,
        (1.2 * 2 * 2 * e**2 / TOTAL, 1.2 * 2 * 0.25 / TOTAL),
    ),
    "softmax with positive": ByHand(
        bn.losses.Softmax(temperature=0.5, negative_weight=1.2, include_positive=True),
        -1 + 1.2 * log(WITH_POSITIVE),
        -2 + 1.2 * 2 * e / WITH_POSITIVE,
        (1.2 * 2 * 2 * e**2 / WITH_POSITIVE, 1.2 * 2 * 0.25 / WITH_POSITIVE),
    ),
    "softmax at k": ByHand(
        bn.losses.SoftmaxAtK(temperature=0.5, k=3, weight_temperature=0.6),
        AT_K * (-1 + log(TOTAL)),
        AT_K * -2 + AT_K * (1 - AT_K) / 0.6 * (-1 + log(TOTAL)),
        (AT_K * 4 * e**2 / TOTAL, AT_K * 0.5 / TOTAL),
    ),
    "psl, relu": ByHand(
        bn.losses.PSL(temperature=0.5, surrogate="relu"),
        log(2 * 1.5**2 + 0.25 * 0.5**2),
        -6.25 / 4.5625,
        (6 / 4.5625, 0.25 / 4.5625),
    ),
    "psl, tanh": ByHand(
        bn.losses.PSL(temperature=0.5, surrogate="tanh"),
        log(TANH),
        -(4 * (1 + tanh(0.5)) + 0.5 * (1 - tanh(0.5))) * (1 - tanh(0.5) ** 2) / TANH,
        (
            4 * (1 + tanh(0.5)) * (1 - tanh(0.5) ** 2) / TANH,
            0.5 * (1 - tanh(0.5)) * (1 - tanh(0.5) ** 2) / TANH,
        ),
    ),
    "psl, atan": ByHand(
        bn.losses.PSL(temperature=0.5, surrogate="atan"),
        log(ATAN),
        -(4 * (1 + atan(0.5)) + 0.5 * (1 - atan(0.5))) * 0.8 / ATAN,
        (4 * (1 + atan(0.5)) * 0.8 / ATAN, 0.5 * (1 - atan(0.5)) * 0.8 / ATAN),
    ),
    "dcl": ByHand(
        bn.losses.DCL(temperature=0.5, positive_rate=0.1),
        log(DCL) - 1,
        2 * (-1 + (e - 2 * 0.1 * e / 0.9) / DCL),
        (2 / 0.9 * 2 * 2 * e**2 / 2.25 / DCL, 2 / 0.9 * 2 * 0.25 / 2.25 / DCL),
    ),
    "dcl at its floor": ByHand(
        bn.losses.DCL(temperature=0.5, positive_rate=0.5), log(FLOOR) - 4, 2 * (-1 + e**4 / FLOOR), (0.0, 0.0), 2.0
    ),
    "hcl": ByHand(
        bn.losses.HCL(temperature=0.5, positive_rate=0.1, hardness=1.0),
        log(HCL) - 1,
        2 * (-1 + (e - 2 * 0.1 * e / 0.9) / HCL),
        (
            2 / 0.9 * 2 * (2 * 2 * e**4 * TOTAL - TILTED * 2 * e**2) / TOTAL**2 / HCL,
            2 / 0.9 * 2 * (2 * 0.25 * TOTAL - TILTED * 0.25) / TOTAL**2 / HCL,
        ),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_value_and_the_derivatives_are_those_of_the_formula(name: str) -> None:
    loss, value, by_positive, by_negatives, positive = LOSSES[name]
    found = loss.evaluate(
        Scores(
            np.array([positive]),
            np.array([[1.0, 0.0, 5.0]]),
            np.array([[1.0, 0.5, 0.0]]),
            np.array([log(0.5), log(2), log(3)]),
            np.array([0.2]),
        )
    )
    assert found.value[0] == pytest.approx(value, rel=1e-12)
    assert found.by_positive[0] == pytest.approx(by_positive, rel=1e-12)
    assert found.by_negatives[0] == pytest.approx([*by_negatives, 0.0], rel=1e-12)


def test_every_built_in_loss_is_computed_by_hand() -> None:
    assert {type(case.loss) for case in LOSSES.values()} == set(bn.losses.losses().values())
