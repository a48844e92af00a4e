"""Dynamic negative sampling: the hardest of a few.

W. Zhang et al., "Optimizing Top-N Collaborative Filtering via Dynamic Negative Item Sampling", SIGIR 2013;
DNS(M, N): W. Shi et al., "On the Theories Behind Hard Negative Sampling for Recommendation", WWW 2023.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bayesneg.checks import whole
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, CandidateDraw, RuleSampler
from bayesneg.kernels.rules import Draws, TakeHighest
from bayesneg.samplers.candidates import UniformDraw, candidate_count, check_candidates, drawn_by, no_numbers


@dataclass(frozen=True)
class DNS(RuleSampler):
    """One of the ``top`` highest-scored of ``candidates`` uniform candidates, uniformly.

    ``DNS(candidates=2)`` is the paper's row: the probability of an item is linear in its relative rank.
    ``DNS(candidates=N, top=M)`` is DNS(M, N).
    """

    candidates: int | Literal["all"] = 2
    top: int = 1
    draw: CandidateDraw = field(default_factory=UniformDraw)

    def __post_init__(self) -> None:
        check_candidates(self.candidates)
        whole("top", self.top)
        if self.candidates != "all" and self.top > self.candidates:
            raise InputError(f"top must be between 1 and candidates ({self.candidates}), got {self.top}")

    def rule(self, batch: Batch) -> TakeHighest:
        return TakeHighest(self.top)

    def width(self, n_items: int) -> int:
        return candidate_count(self.candidates, n_items)

    def wanted(self, n_items: int) -> int:
        return 1 if self.candidates == "all" else candidate_count(self.candidates, n_items)

    def draws(self, batch: Batch) -> Draws:
        candidates, sizes = drawn_by(self.draw, batch, self.width(batch.train.n_items))
        return Draws(candidates, sizes, no_numbers(len(sizes)), batch.rng.random((len(sizes), 1)))
