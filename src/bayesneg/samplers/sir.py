"""Sampling importance resampling: a few candidates of a simple proposal, resampled towards the softmax of the scores.

It is the draw of AdaSIR: J. Chen et al., "Learning Recommenders for Implicit Feedback with Importance Resampling",
WWW 2022. AdaSIR keeps what it resampled for a whole epoch, to save scores; here each example has new candidates, so
that negatives follow the model at every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from bayesneg.checks import known_settings, number, one_of, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, Preset, RuleSampler
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.resampled import TakeResampled
from bayesneg.kernels.reference.plans import CandidatePlan
from bayesneg.kernels.reference.selections import TakeSeveralResampled
from bayesneg.samplers.candidates import (
    UniformDraw,
    candidate_count,
    check_candidates,
    drawn_by,
    no_numbers,
    prepared,
)
from bayesneg.samplers.static import PopularityTables, weighted_candidates


@known_settings()
@dataclass(frozen=True)
class SIR(RuleSampler):
    """Sampling importance resampling: candidates from a proposal q, resampled with P(l) ∝ exp(x_ul/τ − log q_l).

    As the number of candidates grows, the negatives become draws from the softmax of the scores; with
    ``candidates="all"`` they are. The negatives of an example are drawn with replacement.

    Args:
        candidates: Number of candidates drawn per example, or ``"all"`` for every unobserved item.
        temperature: Temperature τ of the softmax.
        negatives: Number of negatives for each example.
        proposal: Distribution of the candidates: ``"uniform"`` (without replacement) or ``"popularity"`` (∝ pop^power,
            with replacement).
        power: Exponent of the item popularity, for ``proposal="popularity"``.

    Example:
        >>> SIR(candidates=64, negatives=8).gives_weights
        True

    Reference:
        J. Chen et al., "Learning Recommenders for Implicit Feedback with Importance Resampling", WWW 2022.
    """

    NAMES: ClassVar = {"sir": Preset("a few candidates resampled towards the softmax of the scores (AdaSIR)")}

    candidates: int | Literal["all"] = 16
    temperature: float = 1.0
    negatives: int = 1
    proposal: Literal["uniform", "popularity"] = "uniform"
    power: float = 0.75
    tables: PopularityTables | None = field(default=None, repr=False, compare=False)
    log_proposal: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False, compare=False)  # empty: uniform

    def __post_init__(self) -> None:
        check_candidates(self.candidates)
        number("temperature", self.temperature, above=0)
        whole("negatives", self.negatives)
        one_of("proposal", self.proposal, ("uniform", "popularity"))
        number("power", self.power, least=0)
        if self.candidates == "all" and self.proposal != "uniform":
            raise InputError(
                "candidates='all' takes every unobserved item, and proposal='popularity' draws some; leave proposal at "
                "'uniform', or give the number of candidates"
            )

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> SIR:
        if self.proposal == "uniform":
            return self
        tables = PopularityTables.of(train, self.power)
        with np.errstate(divide="ignore"):
            return replace(self, tables=tables, log_proposal=np.log(tables.probabilities))

    def rule(self, batch: Batch) -> TakeResampled | TakeSeveralResampled:
        rule = TakeResampled(float(self.temperature), self.log_proposal)
        return rule if self.negatives == 1 else TakeSeveralResampled(*rule, self.negatives)

    @property
    def unused_settings(self) -> frozenset[str]:
        return frozenset({"power"}) if self.proposal == "uniform" else frozenset()

    @property
    def gives_weights(self) -> bool:
        return self.negatives > 1

    def width(self, n_items: int) -> int:
        return candidate_count(self.candidates, n_items) + self.negatives

    def wanted(self, n_items: int) -> int:
        return 1 if self.candidates == "all" else candidate_count(self.candidates, n_items)

    def plan(self, batch: Batch) -> CandidatePlan:
        size = candidate_count(self.candidates, batch.train.n_items)
        p = None if self.proposal == "uniform" else prepared(self.tables).probabilities
        return CandidatePlan(size, uniforms=self.negatives, probabilities=p)

    def draws(self, batch: Batch) -> Draws:
        size = candidate_count(self.candidates, batch.train.n_items)
        if self.proposal == "uniform":
            candidates, sizes = drawn_by(UniformDraw(), batch, size)
        else:
            candidates, sizes = weighted_candidates(prepared(self.tables), batch, size)
        return Draws(candidates, sizes, no_numbers(len(sizes)), batch.uniforms(self.negatives))
