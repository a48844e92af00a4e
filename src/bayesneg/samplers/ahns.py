"""Adaptive hardness: the higher the positive scores, the easier its negative.

R. Lai et al., "Adaptive Hardness Negative Sampling for Collaborative Filtering", AAAI 2024.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from bayesneg.checks import known_settings, number
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, CandidateDraw, Preset, RuleSampler
from bayesneg.kernels.reference.choices.ahns import NearestToTarget
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.plans import CandidatePlan
from bayesneg.samplers.candidates import UniformDraw, candidate_count, check_candidates, drawn_by, no_numbers


@known_settings()
@dataclass(frozen=True)
class AHNS(RuleSampler):
    """Adaptive hardness negative sampling: argmin |x_ul − β·(x_ui + α)^(p+1)| over a few uniform candidates.

    With p < −1 the target score falls as the positive's score rises. The paper assumes x_ui + α > 0. A positive at or
    below −α has the target at the limit x_ui + α → 0, which is infinite for p < −1: its negative is the highest-scored
    candidate. α and β are on the scale of the model's scores.

    Args:
        candidates: Number of candidates drawn per example, or ``"all"`` for every unobserved item.
        shift: Shift α of the positive's score.
        level: Target score β of a positive with x_ui + α = 1.
        exponent: Exponent p, below 0; at p = −1 the target is β for every positive.
        draw: Distribution from which the candidates are drawn, uniform by default.

    Example:
        >>> AHNS(candidates=32, exponent=-3.0).level
        0.5

    Reference:
        R. Lai et al., "Adaptive Hardness Negative Sampling for Collaborative Filtering", AAAI 2024.
    """

    NAMES: ClassVar = {"ahns": Preset("adaptive hardness: an easier negative for a higher-scored positive")}

    candidates: int | Literal["all"] = 16
    shift: float = 1.0
    level: float = 0.5
    exponent: float = -2.0
    draw: CandidateDraw = field(default_factory=UniformDraw)

    def __post_init__(self) -> None:
        check_candidates(self.candidates)
        number("shift", self.shift, least=0)
        number("level", self.level, above=0)
        number("exponent", self.exponent, most=0)
        if self.exponent == 0:
            raise InputError("exponent must be below 0, so that higher-scored positives get easier negatives, got 0")

    def rule(self, batch: Batch) -> NearestToTarget:
        return NearestToTarget(float(self.shift), float(self.level), float(self.exponent))

    def width(self, n_items: int) -> int:
        return candidate_count(self.candidates, n_items)

    def wanted(self, n_items: int) -> int:
        return 1 if self.candidates == "all" else candidate_count(self.candidates, n_items)

    def plan(self, batch: Batch) -> CandidatePlan | None:
        return CandidatePlan(self.width(batch.train.n_items)) if isinstance(self.draw, UniformDraw) else None

    def draws(self, batch: Batch) -> Draws:
        candidates, sizes = drawn_by(self.draw, batch, self.width(batch.train.n_items))
        return Draws(candidates, sizes, no_numbers(len(sizes)), no_numbers(len(sizes)))
