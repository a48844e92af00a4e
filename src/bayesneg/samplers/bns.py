"""Bayesian negative sampling.

B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023. A candidate l has an informativeness,
info = 1 − σ(x_ui − x_ul), and a posterior probability of being a true negative,

    unbias = (1 − F)(1 − p) / (1 − F − p + 2Fp),

with F the score CDF of the user's list at x_ul, as the likelihood gives it, and p the prior probability of a false
negative. BNS chooses the candidate of minimal sampling risk, info·(1 − (1+λ)·unbias). ``kernels/reference`` has the
formulas; this file says what is drawn and which rule chooses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayesneg.checks import known_settings, one_of, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.integrity.arrays import Specs, prefixed
from bayesneg.interfaces import Batch, CandidateDraw, Preset, Scorer
from bayesneg.kernels.reference.choices.base import Draws, Rule
from bayesneg.kernels.reference.choices.posterior import LeastRisk, LeastRiskBySummary, MostUnbiased
from bayesneg.kernels.reference.formulas import ALL, CATALOGUE, UNOBSERVED, Population
from bayesneg.kernels.reference.plans import CandidatePlan, DrawPlan, PoolPlan
from bayesneg.kernels.reference.pools import PoolRule, SharedPool, WeightsByList, WeightsByPoolRank
from bayesneg.kernels.reference.selections import LeastRisks, PosteriorWeights, Selection
from bayesneg.samplers.candidates import (
    UniformDraw,
    candidate_count,
    check_candidates,
    drawn_by,
    no_numbers,
    prepared,
)
from bayesneg.samplers.pools import check_shared, uniform_pool
from bayesneg.samplers.posterior.likelihoods import Likelihood, Paper
from bayesneg.samplers.posterior.refresh import Refresh, Summaries
from bayesneg.samplers.posterior.sampler import PosteriorSampler, Weighting, check_weighting, risk_weight
from bayesneg.samplers.priors.basic import Popularity, PriorLike, probabilities_of
from bayesneg.samplers.priors.learned import Learned
from bayesneg.samplers.schedules import Schedule, weight_at

POPULATIONS = {"unobserved": UNOBSERVED, "catalogue": CATALOGUE, "all": ALL}
EXACT_ITEMS = 4096  # cdf="auto" is exact up to here, which covers the paper's datasets
SUMMARIES = "summaries."  # before their keys in a state
POOL_ITEMS = 1000  # a shared pool of so many items is ranked in itself


@dataclass(frozen=True, kw_only=True)
class _CandidateJudge(PosteriorSampler):
    """What BNS and the posterior criterion share: candidates, a prior and a likelihood."""

    candidates: int | Literal["all"] = 5
    prior: PriorLike = field(default_factory=Popularity)
    likelihood: Likelihood | str = field(default_factory=Paper)
    cdf_over: Literal["unobserved", "catalogue", "all"] = "unobserved"
    draw: CandidateDraw = field(default_factory=UniformDraw)

    def __post_init__(self) -> None:
        check_candidates(self.candidates)
        one_of("cdf_over", self.cdf_over, tuple(POPULATIONS))
        self.convert_parts()
        likelihood = self.parts().likelihood
        if likelihood.counts_unobserved_only and self.cdf_over != "unobserved":
            raise InputError(
                f"the likelihood {type(likelihood).__name__} is estimated over the user's unobserved items; leave "
                f"cdf_over at 'unobserved', got {self.cdf_over!r}"
            )

    def width(self, n_items: int) -> int:
        return 2 * candidate_count(self.candidates, n_items)

    def wanted(self, n_items: int) -> int:
        return 1 if self.candidates == "all" else candidate_count(self.candidates, n_items)

    def draws(self, batch: Batch) -> Draws:
        size = candidate_count(self.candidates, batch.train.n_items)
        candidates, sizes = drawn_by(self.draw, batch, size)
        probabilities = probabilities_of(self.parts().prior, batch.users, candidates)
        return self.without_held_out(Draws(candidates, sizes, probabilities, no_numbers(len(sizes))), batch)

    def plan(self, batch: Batch) -> DrawPlan | None:
        size = candidate_count(self.candidates, batch.train.n_items)
        if self.is_shared:
            return PoolPlan(size)
        return CandidatePlan(size, prior=self.parts().prior.form()) if isinstance(self.draw, UniformDraw) else None

    @property
    def population(self) -> Population:
        """The items that F counts, as the rule reads it."""
        return POPULATIONS[self.cdf_over]


@known_settings()
@dataclass(frozen=True, kw_only=True)
class BNS(_CandidateJudge):
    """Bayesian negative sampling: argmin of info·(1 − (1+λ)·unbias) over a few candidates.

    info = 1 − σ(x_ui − x_ul) is the informativeness of candidate l, unbias = (1−F)(1−p) / (1−F−p+2Fp) its posterior
    probability of being a true negative.

    Args:
        candidates: Number of candidates drawn per example, or ``"all"`` for every unobserved item, the paper's h*.
        prior: Prior probability that an unobserved item is a false negative: a :class:`Prior` or a function
            ``(users, items) → probability``.
        likelihood: Step from the counted share of the score list to F: ``"paper"`` (F is that share), ``"mixture"``
            (inverts the mixture of both classes), ``"bcl"`` (flattened by the model's AUC), ``"empirical"``
            (learned during training), ``"uninformative"`` (F = ½), or an object with settings.
        cdf_over: Items that the score CDF counts: ``"unobserved"`` items, ``"catalogue"`` (unobserved items as a share
            of the whole catalogue) or ``"all"`` items.
        draw: Distribution from which the candidates are drawn, uniform by default.
        weight: Weight λ of the posterior in the sampling risk: a number, a function of the epoch (from 1), or the
            text ``linear/START/RATE/FLOOR`` for max(START − RATE·epoch, FLOOR).
        cdf: Computing the score CDF: ``"exact"`` (counted for every example), ``"refreshed"`` (read off a summary of
            the user's score list), ``"pool"`` (the rank in a shared pool) or ``"auto"`` (the rank in a shared pool of
            1,000 candidates or more; otherwise exact up to 4,096 items, refreshed above).
        refresh: Recomputing the summaries of a refreshed score CDF.
        negatives: Number of negatives for each example, the candidates of least risk; 1 is the paper's BNS.
        weighting: Weights of the candidates, which are then all negatives: ``"posterior"`` (unbias), ``"risk"`` (the
            ramp ((1+λ)·unbias − 1)/λ, at least 0) or ``"oracle"`` (0 for the labels of an oracle prior, 1 for the
            others: an upper bound). ``"none"`` chooses among the candidates.
        shared: Whether all examples of a batch share one pool of ``candidates`` items, which ``weighting`` weighs.

    Example:
        >>> BNS(candidates=10, likelihood="mixture").weight
        5.0
        >>> BNS(candidates=2048, shared=True, weighting="posterior").is_shared
        True

    Reference:
        B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
    """

    NAMES: ClassVar = {
        "bns": Preset("the candidate of minimal sampling risk"),
        "bns-1": Preset("BNS with λ decreasing over the epochs", {"weight": "linear"}),
        "bns-3": Preset("BNS with the flat prior", {"prior": "flat"}),
        "bns-4": Preset("BNS with the group prior", {"prior": "group"}),
        "bns-learned": Preset("BNS with a prior learned from the training data", {"prior": "learned"}),
        "bcl": Preset(
            "a shared pool weighted by the posterior of Bayesian contrastive learning",
            {"candidates": 2048, "shared": True, "weighting": "posterior", "likelihood": "bcl", "prior": "flat"},
        ),
        "oracle": Preset("BNS with a prior that uses the test labels: an upper bound", {"prior": "oracle"}),
        "optimal": Preset("h*, BNS over every unobserved item", {"candidates": "all"}),
    }

    weight: float | str | Schedule = 5.0
    cdf: Literal["exact", "refreshed", "pool", "auto"] = "auto"
    refresh: Refresh = field(default_factory=Refresh)
    negatives: int = 1
    weighting: Weighting = "none"
    shared: bool = False
    summaries: Summaries | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_weighting(self, self.weighting, self.weight)
        weight_at(self.weight, 1)
        one_of("cdf", self.cdf, ("exact", "refreshed", "pool", "auto"))
        self._check_negatives()
        if not isinstance(self.refresh, Refresh):
            raise InputError(f"refresh must be a Refresh, as in bn.samplers.Refresh(moved=0.1), got {self.refresh!r}")

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The settings of the BNS paper: the exact score CDF for any number of items.

        Args:
            **changes: Settings that differ from the paper's.

        Returns:
            The sampler with the paper's settings and these changes.

        >>> BNS.paper(candidates=10).cdf
        'exact'
        """
        return cls(**{"cdf": "exact", **changes})

    @classmethod
    def recommended(cls, **changes: Any) -> Self:
        """The settings that go with ``MF.recommended()``: a learned prior, ten candidates.

        Args:
            **changes: Settings that differ from the recommended ones.

        Returns:
            The sampler with the recommended settings and these changes.

        >>> BNS.recommended().candidates
        10
        """
        settings = {"candidates": 10, "prior": Learned(item_model="als"), "likelihood": "mixture", "cdf": "refreshed"}
        return cls(**{**settings, **changes})

    def _check_negatives(self) -> None:
        whole("negatives", self.negatives)
        check_shared(self.shared, self.draw)
        if self.candidates != "all" and self.negatives > self.candidates:
            raise InputError(f"negatives must be at most candidates ({self.candidates}), got {self.negatives}")
        if self.weighting != "none" and self.negatives > 1:
            raise InputError(
                f"weighting={self.weighting!r} takes all candidates as negatives; leave negatives at 1 and set their "
                f"number by candidates, got negatives={self.negatives}"
            )
        if self.shared and self.weighting == "none":
            raise InputError(
                "shared=True weighs a pool: set weighting='posterior' or 'risk', or use RNS(negatives=…, shared=True)"
            )
        if self.cdf == "pool" and not self.shared:
            raise InputError("cdf='pool' is the rank in a shared pool; set shared=True, or cdf='auto'")

    def resolved(self, train: Interactions) -> BNS:
        if self.cdf != "auto":
            return self
        if self.shared and candidate_count(self.candidates, train.n_items) >= min(POOL_ITEMS, train.n_items):
            return replace(self, cdf="pool")
        return replace(self, cdf="exact" if train.n_items <= EXACT_ITEMS else "refreshed")

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> BNS:
        ready = super().prepare(train, rng=rng).resolved(train)
        if ready.cdf != "refreshed":
            return ready
        return replace(ready, summaries=Summaries(self.refresh, train.n_users, train.n_items))

    def rule(self, batch: Batch) -> Rule | Selection | PoolRule:
        ramp, weight = self.weighting == "risk", risk_weight(self.weighting, self.weight, batch.epoch)
        if self.cdf == "pool":
            return WeightsByPoolRank(weight, ramp, self.form(), self.parts().prior.form())
        rule = self._judging_rule(batch)
        if self.shared:
            return WeightsByList(rule, ramp, self.parts().prior.form())
        if self.weighting != "none":
            return PosteriorWeights(rule, ramp)
        return rule if self.negatives == 1 else LeastRisks(rule, self.negatives)

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        super().end_epoch(epoch, scorer)
        if self.summaries is not None:
            self.summaries.ended = epoch

    def state_dict(self) -> dict[str, np.ndarray]:
        more = {} if self.summaries is None else self.summaries.state_dict()
        return {**super().state_dict(), **{f"{SUMMARIES}{key}": value for key, value in more.items()}}

    def state_specs(self, train: Interactions) -> Specs:
        more = {} if self.summaries is None else self.summaries.state_specs()
        return {**super().state_specs(train), **prefixed(more, SUMMARIES)}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        super().load_state_dict(state)
        if self.summaries is not None:
            found = {key.removeprefix(SUMMARIES): state[key] for key in state if key.startswith(SUMMARIES)}
            self.summaries.load_state_dict(found)

    @property
    def gives_weights(self) -> bool:
        return self.negatives > 1 or self.weighting != "none"

    @property
    def gives_several(self) -> bool:
        return self.gives_weights and self.candidates != 1

    @property
    def unused_settings(self) -> frozenset[str]:
        return frozenset() if self.weighting in ("none", "risk") else frozenset({"weight"})

    @property
    def is_shared(self) -> bool:
        return self.shared

    def pool(self, batch: Batch) -> SharedPool:
        return uniform_pool(candidate_count(self.candidates, batch.train.n_items), batch)

    def _judging_rule(self, batch: Batch) -> LeastRisk | LeastRiskBySummary:
        weight = weight_at(self.weight, batch.epoch)
        if self.cdf != "refreshed":
            return LeastRisk(weight, self.population, self.form())
        return prepared(self.summaries).up_to_date(batch, weight=weight, over=self.population, likelihood=self.form())


@known_settings()
@dataclass(frozen=True, kw_only=True)
class Posterior(_CandidateJudge):
    """The paper's posterior criterion: argmax of unbias = (1−F)(1−p) / (1−F−p+2Fp) over a few candidates.

    Args:
        candidates: Number of candidates drawn per example, or ``"all"`` for every unobserved item.
        prior: Prior probability that an unobserved item is a false negative: a :class:`Prior` or a function
            ``(users, items) → probability``.
        likelihood: Step from the counted share of the score list to F: ``"paper"`` (F is that share), ``"mixture"``
            (inverts the mixture of both classes), ``"bcl"`` (flattened by the model's AUC), ``"empirical"``
            (learned during training), ``"uninformative"`` (F = ½), or an object with settings.
        cdf_over: Items that the score CDF counts: ``"unobserved"`` items, ``"catalogue"`` (unobserved items as a share
            of the whole catalogue) or ``"all"`` items.
        draw: Distribution from which the candidates are drawn, uniform by default.

    Example:
        >>> Posterior(candidates=10).cdf_over
        'unobserved'

    Reference:
        B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
    """

    NAMES: ClassVar = {"posterior": Preset("the candidate with the highest posterior probability of a true negative")}

    def rule(self, batch: Batch) -> MostUnbiased:
        return self._judging_rule(batch)

    def _judging_rule(self, batch: Batch) -> MostUnbiased:
        return MostUnbiased(self.population, self.form())
