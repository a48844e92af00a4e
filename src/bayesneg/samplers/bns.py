"""Bayesian negative sampling.

B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023. A candidate l has an informativeness,
info = 1 − σ(x_ui − x_ul), and a posterior probability of being a true negative,

    unbias = (1 − F)(1 − p) / (1 − F − p + 2Fp),

with F the score CDF of the user's list at x_ul, as the likelihood gives it, and p the prior probability of a false
negative. BNS chooses the candidate of minimal sampling risk, info·(1 − (1+λ)·unbias). ``kernels/reference`` has the
formulas; this file says what is drawn and which rule chooses.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from bayesneg.checks import one_of
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, CandidateDraw, Preset, Prior, RuleSampler, Scorer
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.posterior import LeastRisk, LeastRiskBySummary, MostUnbiased
from bayesneg.kernels.reference.formulas import ALL, CATALOGUE, UNOBSERVED, LikelihoodForm, Population
from bayesneg.samplers.candidates import (
    UniformDraw,
    candidate_count,
    check_candidates,
    drawn_by,
    no_numbers,
    prepared,
)
from bayesneg.samplers.posterior.likelihoods import Likelihood, Paper, as_likelihood
from bayesneg.samplers.posterior.refresh import Refresh, Summaries
from bayesneg.samplers.posterior.unbias import posterior_unbias
from bayesneg.samplers.priors.basic import Popularity, PriorLike, as_prior, converted, probabilities_of
from bayesneg.samplers.schedules import Schedule, as_schedule, weight_at

POPULATIONS = {"unobserved": UNOBSERVED, "catalogue": CATALOGUE, "all": ALL}
EXACT_ITEMS = 4096  # cdf="auto" is exact up to here, which covers the paper's datasets


class PosteriorParts(NamedTuple):
    """The two parts of the posterior."""

    prior: Prior
    likelihood: Likelihood


@dataclass(frozen=True, kw_only=True)
class _PosteriorSampler(RuleSampler):
    """What BNS and the posterior criterion share: candidates, a prior and a likelihood."""

    candidates: int | Literal["all"] = 5
    prior: PriorLike = field(default_factory=Popularity)
    likelihood: Likelihood | str = field(default_factory=Paper)
    cdf_over: Literal["unobserved", "catalogue", "all"] = "unobserved"
    draw: CandidateDraw = field(default_factory=UniformDraw)

    def __post_init__(self) -> None:
        check_candidates(self.candidates)
        one_of("cdf_over", self.cdf_over, tuple(POPULATIONS))
        object.__setattr__(self, "prior", as_prior(self.prior))
        object.__setattr__(self, "likelihood", as_likelihood(self.likelihood))
        prior, likelihood = self._parts()
        if likelihood.counts_unobserved_only and self.cdf_over != "unobserved":
            raise InputError(
                f"the likelihood {type(likelihood).__name__} is estimated over the user's unobserved items; leave "
                f"cdf_over at 'unobserved', got {self.cdf_over!r}"
            )
        if prior.uses_scores and likelihood.uses_scores:
            raise InputError(
                f"the prior {type(prior).__name__} depends on the scores, which the likelihood "
                f"{type(likelihood).__name__} would count twice; set likelihood='uninformative'"
            )

    @abstractmethod
    def rule(self, batch: Batch) -> LeastRisk | LeastRiskBySummary | MostUnbiased: ...

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> Self:
        prior, likelihood = self._parts()
        prior = prior.fit(train)
        return replace(self, prior=prior, likelihood=likelihood.fit(train, prior, rng=rng))

    def width(self, n_items: int) -> int:
        return 2 * candidate_count(self.candidates, n_items)

    def wanted(self, n_items: int) -> int:
        return 1 if self.candidates == "all" else candidate_count(self.candidates, n_items)

    def draws(self, batch: Batch) -> Draws:
        size = candidate_count(self.candidates, batch.train.n_items)
        candidates, sizes = drawn_by(self.draw, batch, size)
        probabilities = probabilities_of(self._parts().prior, batch.users, candidates)
        return self.without_held_out(Draws(candidates, sizes, probabilities, no_numbers(len(sizes))), batch)

    def without_held_out(self, draws: Draws, batch: Batch) -> Draws:
        for part in self._parts():
            draws = part.without_held_out(draws, batch.positions)
        return draws

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        for part in self._parts():
            part.end_epoch(scorer)

    def state_dict(self) -> dict[str, np.ndarray]:
        states = {name: part.state_dict() for name, part in self._parts()._asdict().items()}
        return {f"{name}.{key}": value for name, state in states.items() for key, value in state.items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        for name, part in self._parts()._asdict().items():
            prefix = f"{name}."
            part.load_state_dict({key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)})

    def _parts(self) -> PosteriorParts:
        """The prior and the likelihood, which were converted at construction."""
        assert isinstance(self.likelihood, Likelihood)
        return PosteriorParts(converted(self.prior), self.likelihood)

    def form(self) -> LikelihoodForm:
        """The step from the counted share to F, as the rule reads it."""
        return self._parts().likelihood.form()

    def unbias(self, batch: Batch, items: np.ndarray) -> np.ndarray:
        probabilities = probabilities_of(self._parts().prior, batch.users, items)
        return posterior_unbias(self.rule(batch), batch, items, probabilities)

    @property
    def population(self) -> Population:
        """The items that F counts, as the rule reads it."""
        return POPULATIONS[self.cdf_over]

    @property
    def uses_test_labels(self) -> bool:
        return self._parts().prior.uses_test_labels


@dataclass(frozen=True, kw_only=True)
class BNS(_PosteriorSampler):
    """Bayesian negative sampling: argmin of info·(1 − (1+λ)·unbias) over a few candidates.

    info = 1 − σ(x_ui − x_ul) is the informativeness of candidate l, unbias = (1−F)(1−p) / (1−F−p+2Fp) its posterior
    probability of being a true negative.

    Args:
        candidates: Number of candidates drawn per example, or ``"all"`` for every unobserved item, the paper's h*.
        prior: Prior probability that an unobserved item is a false negative: a :class:`Prior` or a function
            ``(users, items) → probability``.
        likelihood: Step from the counted share of the score list to F: ``"paper"`` (F is that share), ``"mixture"``
            (inverts the mixture of both classes), ``"empirical"`` (learned during training), ``"uninformative"``
            (F = ½), or an object with settings.
        cdf_over: Items that the score CDF counts: ``"unobserved"`` items, ``"catalogue"`` (unobserved items as a share
            of the whole catalogue) or ``"all"`` items.
        draw: Distribution from which the candidates are drawn, uniform by default.
        weight: Weight λ of the posterior in the sampling risk: a number, a function of the epoch (from 1), or the
            text ``linear/START/RATE/FLOOR`` for max(START − RATE·epoch, FLOOR).
        cdf: Computing the score CDF: ``"exact"`` (counted for every example), ``"refreshed"`` (read off a summary of
            the user's score list) or ``"auto"`` (exact up to 4,096 items, refreshed above).
        refresh: Recomputing the summaries of a refreshed score CDF.

    Example:
        >>> BNS(candidates=10, likelihood="mixture").weight
        5.0

    Reference:
        B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
    """

    NAMES: ClassVar = {
        "bns": Preset("the candidate of minimal sampling risk"),
        "bns-1": Preset("BNS with λ decreasing over the epochs", {"weight": "linear"}),
        "bns-3": Preset("BNS with the flat prior", {"prior": "flat"}),
        "bns-4": Preset("BNS with the group prior", {"prior": "group"}),
        "bns-learned": Preset("BNS with a prior learned from the training data", {"prior": "learned"}),
        "oracle": Preset("BNS with a prior that uses the test labels: an upper bound", {"prior": "oracle"}),
        "optimal": Preset("h*, BNS over every unobserved item", {"candidates": "all"}),
    }

    weight: float | str | Schedule = 5.0
    cdf: Literal["exact", "refreshed", "auto"] = "auto"
    refresh: Refresh = field(default_factory=Refresh)
    summaries: Summaries | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weight", as_schedule(self.weight))
        weight_at(self.weight, 1)
        one_of("cdf", self.cdf, ("exact", "refreshed", "auto"))
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

    def resolved(self, train: Interactions) -> BNS:
        if self.cdf != "auto":
            return self
        return replace(self, cdf="exact" if train.n_items <= EXACT_ITEMS else "refreshed")

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> BNS:
        ready = super().prepare(train, rng=rng).resolved(train)
        if ready.cdf == "exact":
            return ready
        return replace(ready, summaries=Summaries(self.refresh, train.n_users, train.n_items))

    def rule(self, batch: Batch) -> LeastRisk | LeastRiskBySummary:
        weight = weight_at(self.weight, batch.epoch)
        if self.cdf == "exact":
            return LeastRisk(weight, self.population, self.form())
        return prepared(self.summaries).up_to_date(batch, weight=weight, over=self.population, likelihood=self.form())


@dataclass(frozen=True, kw_only=True)
class Posterior(_PosteriorSampler):
    """The paper's posterior criterion: argmax of unbias = (1−F)(1−p) / (1−F−p+2Fp) over a few candidates.

    Args:
        candidates: Number of candidates drawn per example, or ``"all"`` for every unobserved item.
        prior: Prior probability that an unobserved item is a false negative: a :class:`Prior` or a function
            ``(users, items) → probability``.
        likelihood: Step from the counted share of the score list to F: ``"paper"`` (F is that share), ``"mixture"``
            (inverts the mixture of both classes), ``"empirical"`` (learned during training), ``"uninformative"``
            (F = ½), or an object with settings.
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
        return MostUnbiased(self.population, self.form())
