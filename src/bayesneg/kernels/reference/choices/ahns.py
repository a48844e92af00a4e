"""The candidate whose score is nearest to a target that falls with the positive's score: the rule of AHNS."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesneg.kernels.reference.choices.base import Chooser, Draws

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch


class NearestToTarget(NamedTuple):
    """The candidate whose score is nearest to β · (x_i + α)^(p+1): AHNS."""

    shift: float  # α
    level: float  # β
    exponent: float  # p

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        items = np.column_stack((batch.positives, np.maximum(draws.candidates, 0)))  # (B, 1 + m)
        x = batch.score(items)

        def choose(b: int) -> int:
            return draws.candidates[b, choose_nearest(x[b, 1 : 1 + draws.sizes[b]], target_score(self, x[b, 0]))]

        return choose


def target_score(rule: NearestToTarget, x_positive: float) -> float:
    """β · (x_i + α)^(p+1), with its limit at 0 for a positive below −α: infinite where p < −1.

    >>> target_score(NearestToTarget(1.0, 0.5, -2.0), 3.0), target_score(NearestToTarget(1.0, 0.5, -2.0), -4.0)
    (0.125, inf)
    """
    base, exponent = max(float(x_positive) + rule.shift, 0.0), rule.exponent + 1.0
    if base == 0.0 and exponent < 0.0:
        return float("inf")
    return float(rule.level * base**exponent)


def choose_nearest(x: np.ndarray, target: float) -> int:
    """Position of the score nearest to the target, the highest for a target above all; the earlier one on ties."""
    return int(np.argmin(np.abs(x.astype(np.float64) - min(target, float(x.max())))))
