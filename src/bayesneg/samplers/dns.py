"""Dynamic negative sampling: the highest-scored of a few candidates.

W. Zhang et al., "Optimizing Top-N Collaborative Filtering via Dynamic Negative Item Sampling", SIGIR 2013;
DNS(M, N): W. Shi et al., "On the Theories Behind Hard Negative Sampling for Recommendation", WWW 2023.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from bayesneg.checks import known_settings, whole
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, CandidateDraw, Preset, RuleSampler
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.take import TakeHighest
from bayesneg.kernels.reference.plans import CandidatePlan
from bayesneg.kernels.reference.selections import TakeSeveralHighest
from bayesneg.samplers.candidates import UniformDraw, candidate_count, check_candidates, drawn_by, no_numbers


@known_settings()
@dataclass(frozen=True)
class DNS(RuleSampler):
    """Dynamic negative sampling: j = argmax x_uj over a few uniform candidates.

    With two candidates the probability of an item is linear in its relative rank, which is how the BNS paper
    describes DNS. ``DNS(candidates=N, top=M)`` is DNS(M, N): uniform among the M highest-scored of N.

    Args:
        candidates: Number of candidates drawn per example, or ``"all"`` for every unobserved item.
        top: Number of highest-scored candidates among which the negative is drawn uniformly.
        draw: Distribution from which the candidates are drawn, uniform by default.
        negatives: Number of negatives for each example, drawn without replacement from the ``top``.

    Example:
        >>> DNS(candidates=5).top
        1

    Reference:
        W. Zhang et al., "Optimizing Top-N Collaborative Filtering via Dynamic Negative Item Sampling", SIGIR 2013.
        W. Shi et al., "On the Theories Behind Hard Negative Sampling for Recommendation", WWW 2023.
    """

    NAMES: ClassVar = {"dns": Preset("the highest-scored of a few candidates")}

    candidates: int | Literal["all"] = 2
    top: int = 1
    draw: CandidateDraw = field(default_factory=UniformDraw)
    negatives: int = 1

    def __post_init__(self) -> None:
        check_candidates(self.candidates)
        whole("top", self.top)
        if self.candidates != "all" and self.top > self.candidates:
            raise InputError(f"top must be between 1 and candidates ({self.candidates}), got {self.top}")
        whole("negatives", self.negatives)
        if self.negatives > self.top:
            raise InputError(
                f"negatives must be at most top ({self.top}), among which they are drawn, got {self.negatives}; "
                f"set top={self.negatives} with it"
            )

    def rule(self, batch: Batch) -> TakeHighest | TakeSeveralHighest:
        return TakeHighest(self.top) if self.negatives == 1 else TakeSeveralHighest(self.top, self.negatives)

    @property
    def gives_weights(self) -> bool:
        return self.negatives > 1

    def width(self, n_items: int) -> int:
        return candidate_count(self.candidates, n_items)

    def wanted(self, n_items: int) -> int:
        return 1 if self.candidates == "all" else candidate_count(self.candidates, n_items)

    def plan(self, batch: Batch) -> CandidatePlan | None:
        if not isinstance(self.draw, UniformDraw):
            return None
        return CandidatePlan(self.width(batch.train.n_items), uniforms=self.negatives)

    def draws(self, batch: Batch) -> Draws:
        candidates, sizes = drawn_by(self.draw, batch, self.width(batch.train.n_items))
        return Draws(candidates, sizes, no_numbers(len(sizes)), batch.uniforms(self.negatives))
