"""A drawn candidate, the first or one of the highest-scored: the rules of RNS, PNS and DNS."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesneg.kernels.reference.choices.base import Chooser, Draws

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch


class TakeFirst(NamedTuple):
    """The candidate that was drawn: RNS and PNS."""

    position: int = 0

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        return lambda b: draws.candidates[b, self.position]


class TakeHighest(NamedTuple):
    """One of the ``top`` highest-scored candidates, uniformly: DNS (top=1) and DNS(M, N)."""

    top: int

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        x = batch.score(draws.candidates)  # (B, m)

        def choose(b: int) -> int:
            return draws.candidates[b, choose_highest(x[b, : draws.sizes[b]], self.top, draws.uniforms[b, 0])]

        return choose


def choose_highest(x: np.ndarray, top: int, uniform: float) -> int:
    """Position of one of the ``top`` highest scores, uniformly; the earlier position wins a tie."""
    best = np.argsort(-x, kind="stable")[:top]
    return int(best[int(uniform * len(best))])
