"""The rule of SIR, compiled."""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.choices.base import chooses
from bayesneg.kernels.numba.compiling import kernel
from bayesneg.kernels.numba.scoring import score_candidates
from bayesneg.kernels.reference.choices.resampled import TakeResampled


@chooses(TakeResampled)
def _take_resampled(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    b = example.b
    candidates = draws.candidates[b, : draws.sizes[b]]
    score_candidates(factors.users[example.user], factors.items, candidates, x)
    return candidates[resample(resampling_mass(rule, x, candidates), draws.uniforms[b, 0])]


@kernel
def resampling_mass(rule, x, candidates):  # type: ignore[no-untyped-def]
    mass = np.empty(len(candidates), dtype=np.float64)
    highest = -np.inf
    for k in range(len(candidates)):
        mass[k] = np.float64(x[k]) / rule.temperature
        if len(rule.log_q) > 0:
            mass[k] -= rule.log_q[candidates[k]]
        highest = max(highest, mass[k])
    total = 0.0
    for k in range(len(candidates)):
        total += np.exp(mass[k] - highest)
        mass[k] = total
    return mass


@kernel
def resample(mass: np.ndarray, uniform: float) -> int:
    return min(np.searchsorted(mass, uniform * mass[-1], side="right"), len(mass) - 1)
