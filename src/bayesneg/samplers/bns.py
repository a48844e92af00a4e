"""Bayesian negative sampling.

B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023. A candidate l is judged by two things:
how much the model would learn from it, info = 1 − σ(x_ui − x_ul), and how probably it is a true negative,

    unbias = (1 − F)(1 − p) / (1 − F − p + 2Fp),

with F from the share of the user's list scored at or below it (the likelihood: that share itself, unless another is
chosen) and p the prior that it is a false negative. BNS picks the candidate of least sampling risk,
info·(1 − (1+λ)·unbias). The formulas stand in ``kernels/reference``; this file says what
is drawn and which rule judges it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np

from bayesneg.checks import one_of
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, CandidateDraw, FollowsTraining, Prior, RuleSampler, Scorer
from bayesneg.kernels.rules import (
    ALL,
    CATALOGUE,
    UNOBSERVED,
    Draws,
    LeastRisk,
    LeastRiskBySummary,
    LikelihoodForm,
    MostUnbiased,
    Population,
)
from bayesneg.samplers.candidates import (
    UniformDraw,
    candidate_count,
    check_candidates,
    drawn_by,
    no_numbers,
    prepared,
)
from bayesneg.samplers.likelihoods import (
    Empirical,
    Likelihood,
    LikelihoodName,
    Paper,
    Uninformative,
    as_likelihood,
)
from bayesneg.samplers.priors import Popularity, as_prior, probabilities_of
from bayesneg.samplers.refresh import Refresh, Summaries
from bayesneg.samplers.schedules import Schedule, weight_at
from bayesneg.samplers.unbias import believed_unbias

PriorFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]
POPULATIONS = {"unobserved": UNOBSERVED, "catalogue": CATALOGUE, "all": ALL}
EXACT_ITEMS = 4096  # cdf="auto" is exact up to here: the paper's datasets; with more items that soon costs too much


@dataclass(frozen=True, kw_only=True)
class _PosteriorSampler(RuleSampler):
    """What BNS and the posterior criterion share: candidates, a prior for each, and the exact F."""

    candidates: int | Literal["all"] = 5
    prior: Prior | PriorFunction = field(default_factory=Popularity)
    likelihood: Likelihood | LikelihoodName = field(default_factory=Paper)
    cdf_over: Literal["unobserved", "catalogue", "all"] = "unobserved"
    draw: CandidateDraw = field(default_factory=UniformDraw)

    def __post_init__(self) -> None:
        check_candidates(self.candidates)
        one_of("cdf_over", self.cdf_over, tuple(POPULATIONS))
        object.__setattr__(self, "prior", as_prior(self.prior))
        object.__setattr__(self, "likelihood", as_likelihood(self.likelihood))
        if isinstance(self.likelihood, Empirical) and self.cdf_over != "unobserved":
            raise InputError(
                "an empirical likelihood is learned over the user's unobserved items; leave cdf_over at 'unobserved', "
                f"got {self.cdf_over!r}"
            )

        if as_prior(self.prior).weighs_scores and not isinstance(self.likelihood, Uninformative):
            raise InputError(
                f"{type(self.prior).__name__} has the scores in it, and a likelihood would count them again; "
                "set likelihood='uninformative' with it"
            )

    @abstractmethod
    def rule(self, batch: Batch) -> LeastRisk | LeastRiskBySummary | MostUnbiased: ...

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> Self:
        prior = as_prior(self.prior).fit(train)
        return replace(self, prior=prior, likelihood=as_likelihood(self.likelihood).fit(train, prior, rng=rng))

    def width(self, n_items: int) -> int:
        return 2 * candidate_count(self.candidates, n_items)

    def wanted(self, n_items: int) -> int:
        return 1 if self.candidates == "all" else candidate_count(self.candidates, n_items)

    def draws(self, batch: Batch) -> Draws:
        size = candidate_count(self.candidates, batch.train.n_items)
        candidates, sizes = drawn_by(self.draw, batch, size)
        probabilities = probabilities_of(as_prior(self.prior), batch.users, candidates)
        return self.kept_out(Draws(candidates, sizes, probabilities, no_numbers(len(sizes))), batch)

    def kept_out(self, draws: Draws, batch: Batch) -> Draws:
        for part in self._parts().values():
            draws = part.kept_out(draws, batch.positions)
        return draws

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        for part in self._parts().values():
            part.end_epoch(scorer)

    def state_dict(self) -> dict[str, np.ndarray]:
        own = ((name, part.state_dict()) for name, part in self._parts().items())
        return {f"{name}.{key}": value for name, state in own for key, value in state.items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        for name, part in self._parts().items():
            prefix = f"{name}."
            part.load_state_dict({key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)})

    def _parts(self) -> dict[str, FollowsTraining]:
        return {"prior": as_prior(self.prior), "likelihood": as_likelihood(self.likelihood)}

    def form(self) -> LikelihoodForm:
        """The step from what is counted to F, as a rule has it."""
        return as_likelihood(self.likelihood).form()

    def unbias(self, batch: Batch, items: np.ndarray) -> np.ndarray:
        probabilities = probabilities_of(as_prior(self.prior), batch.users, items)
        return believed_unbias(self.rule(batch), batch, items, probabilities)

    @property
    def population(self) -> Population:
        """The items that F counts, as a rule has it."""
        return POPULATIONS[self.cdf_over]

    @property
    def uses_test_labels(self) -> bool:
        return as_prior(self.prior).uses_test_labels


@dataclass(frozen=True, kw_only=True)
class BNS(_PosteriorSampler):
    """The candidate of least sampling risk.

    ``candidates`` m uniform candidates without replacement (``"all"`` is the paper's optimal sampler h*);
    ``weight`` λ, a number or a function of the epoch; ``prior`` a :class:`Prior` or a function
    ``(users, items) → probability``; ``likelihood`` how F follows from what is counted: ``"paper"`` (as it is),
    ``"mixture"`` (inverted), ``"empirical"`` (learned while the model trains), ``"uninformative"`` (scores say
    nothing), or one
    of these with its settings, such as ``Mixture(0.02)``; ``cdf_over`` whether F is counted over the user's
    unobserved items or over all, or over the unobserved ones as a share of the whole catalogue.
    ``cdf="exact"`` counts F anew for every example; ``"refreshed"`` reads it off a summary of the user's list, made by
    the rule that ``refresh`` states; ``"auto"`` is exact up to 4,096 items and refreshed above.
    """

    weight: float | Schedule = 5.0
    cdf: Literal["exact", "refreshed", "auto"] = "exact"
    refresh: Refresh = field(default_factory=Refresh)
    summaries: Summaries | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        weight_at(self.weight, 1)
        one_of("cdf", self.cdf, ("exact", "refreshed", "auto"))
        if not isinstance(self.refresh, Refresh):
            raise InputError(f"refresh must be a Refresh, as in bn.samplers.Refresh(moved=0.1), got {self.refresh!r}")

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
    """The candidate most probably a true negative: the paper's first criterion, hard or not."""

    def rule(self, batch: Batch) -> MostUnbiased:
        return MostUnbiased(self.population, self.form())
