"""The rules of RNS, PNS and DNS, compiled."""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.choices.base import chooses
from bayesneg.kernels.numba.compiling import kernel
from bayesneg.kernels.numba.scoring import score_candidates
from bayesneg.kernels.reference.choices.take import TakeFirst, TakeHighest


@chooses(TakeFirst)
def _take_first(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    return draws.candidates[example.b, rule.position]


@chooses(TakeHighest)
def _take_highest(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    b, size = example.b, draws.sizes[example.b]
    first, _, _ = score_candidates(factors.users[example.user], factors.items, draws.candidates[b, :size], x)
    if rule.top == 1:
        return draws.candidates[b, first]
    return draws.candidates[b, choose_highest(x[:size], rule.top, draws.uniforms[b, 0])]


@kernel
def choose_highest(x: np.ndarray, top: int, uniform: float) -> int:
    wanted = int(uniform * min(top, len(x)))
    for k in range(len(x)):  # the position with exactly ``wanted`` positions ranked before it
        before = 0
        for other in range(len(x)):
            if x[other] > x[k] or (x[other] == x[k] and other < k):
                before += 1
        if before == wanted:
            return k
    return 0
