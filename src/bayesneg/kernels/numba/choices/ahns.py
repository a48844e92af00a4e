"""The rule of AHNS, compiled."""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.choices.base import chooses
from bayesneg.kernels.numba.compiling import kernel
from bayesneg.kernels.numba.scoring import dot, score_candidates
from bayesneg.kernels.reference.choices.ahns import NearestToTarget


@chooses(NearestToTarget)
def _nearest_to_target(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    b, size, w = example.b, draws.sizes[example.b], factors.users[example.user]
    _, highest, _ = score_candidates(w, factors.items, draws.candidates[b, :size], x)
    target = min(target_score(rule, dot(w, factors.items[example.positive])), np.float64(highest))
    best, least = 0, np.inf
    for k in range(size):
        distance = abs(np.float64(x[k]) - target)
        if distance < least:
            best, least = k, distance
    return draws.candidates[b, best]


@kernel
def target_score(rule, x_positive):  # type: ignore[no-untyped-def]
    base, exponent = max(np.float64(x_positive) + rule.shift, 0.0), rule.exponent + 1.0
    if base == 0.0 and exponent < 0.0:
        return np.inf
    return rule.level * base**exponent
