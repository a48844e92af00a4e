"""The softmax loss of ``kernels/reference/losses.py`` for many negatives at once, compiled in single precision.

A row of scores is read once and its gradient written once, by an exponential that a compiler turns into vector
instructions. Torch takes a pass over memory for each operation.
"""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.compiling import entry_point, in_parts, kernel, reordering_kernel
from bayesneg.kernels.reference.losses import LossValues, SampledSoftmax, Scores

NOTHING = np.empty(0, dtype=np.float32)
f = np.float32
PER_LOG2, LOG2_HIGH, LOG2_LOW = f(1.44269504), f(0.693359375), f(-2.12194440e-4)
LEAST_POWER = f(-87.0)  # its exponential is the least normal number


def softmax_of_rows(form: SampledSoftmax, scores: Scores, *, threads: int) -> LossValues:
    """The loss (B,) and its derivatives by positive (B,) and negatives (B, K), float32.

    Args:
        form: The loss.
        scores: The scores as float32 arrays; ``log_q`` is None or (K,).
        threads: The number of threads at most, which changes no number.
    """
    x = scores.negatives
    log_q = NOTHING if scores.log_q is None else scores.log_q
    found = LossValues(np.empty(len(x), dtype=f), np.empty(len(x), dtype=f), np.empty_like(x))
    numbers = f(1.0 / form.temperature), f(form.negative_weight), bool(form.include_positive)

    def fill(first: int, last: int) -> None:
        write_softmax(*numbers, scores.positive, x, scores.weights, log_q, first, last, *found)

    in_parts(fill, len(x), x.shape[1], threads)
    return found


@entry_point
def write_softmax(  # type: ignore[no-untyped-def]
    per_tau, b, include_positive, positive, x, weights, log_q, first, last, value, by_positive, by_negatives
):
    for row in range(first, last):
        slopes = by_negatives[row]
        highest = logits(x[row], weights[row], log_q, per_tau, slopes)
        if highest == -np.inf:
            slopes[:] = 0.0
            value[row], by_positive[row] = 0.0, 0.0
            continue
        z, own = positive[row] * per_tau, 0.0
        if include_positive:
            highest = max(highest, z)
            own = np.exp(np.float64(z - highest))
        total = own + np.float64(powers(weights[row], highest, slopes))
        slope = b * per_tau / total
        scale(f(slope), slopes)
        value[row] = b * (np.log(total) + highest) - z
        by_positive[row] = own * slope - per_tau


@reordering_kernel
def logits(x, weights, log_q, per_tau, found):  # type: ignore[no-untyped-def]
    """Write s_k/τ − log q_k; returns the highest of those that count."""
    for k in range(len(x)):
        found[k] = x[k] * per_tau
    if len(log_q) > 0:
        for k in range(len(x)):
            found[k] -= log_q[k]
    highest = f(-np.inf)
    for k in range(len(x)):
        highest = max(highest, found[k] if weights[k] > 0 else f(-np.inf))
    return highest


@reordering_kernel
def powers(weights, highest, found):  # type: ignore[no-untyped-def]
    """Replace each logit z_k by ω_k · exp(z_k − highest); returns their sum."""
    total = f(0.0)
    for k in range(len(found)):
        found[k] = weights[k] * exponential(min(found[k] - highest, f(0.0)))  # one of weight 0 may be higher
        total += found[k]
    return total


@kernel
def scale(factor, found):  # type: ignore[no-untyped-def]
    for k in range(len(found)):
        found[k] *= factor


@kernel  # log 2 in two parts is exact only as written
def exponential(z):  # type: ignore[no-untyped-def]
    """exp(z) of z ≤ 0 in single precision, exp(−87) below −87: 2^n · exp(r), |r| ≤ ½ log 2, by a polynomial."""
    z = max(z, LEAST_POWER)
    n = np.floor(z * PER_LOG2 + f(0.5))
    r = z - n * LOG2_HIGH - n * LOG2_LOW
    y = f(1.9875691500e-4)
    y = y * r + f(1.3981999507e-3)
    y = y * r + f(8.3334519073e-3)
    y = y * r + f(4.1665795894e-2)
    y = y * r + f(1.6666665459e-1)
    y = y * r + f(5.0000001201e-1)
    y = y * (r * r) + r + f(1.0)
    return y * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
