"""What samplers that compute a posterior share: a prior and a likelihood, and how both follow training."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from bayesneg.checks import one_of
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.integrity.arrays import Specs, prefixed
from bayesneg.interfaces import Batch, Prior, RuleSampler, Scorer
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.posterior import LeastRisk, LeastRiskBySummary, MostUnbiased
from bayesneg.kernels.reference.formulas import LikelihoodForm
from bayesneg.samplers.posterior.likelihoods import Likelihood, as_likelihood
from bayesneg.samplers.posterior.unbias import posterior_unbias
from bayesneg.samplers.priors.basic import Oracle, PriorLike, as_prior, converted, probabilities_of
from bayesneg.samplers.schedules import Schedule, as_schedule, weight_at

Weighting = Literal["none", "posterior", "risk", "oracle"]
WEIGHTINGS = ("none", "posterior", "risk", "oracle")


class PosteriorParts(NamedTuple):
    """The two parts of the posterior."""

    prior: Prior
    likelihood: Likelihood


class PosteriorSampler(RuleSampler):
    """A sampler with a prior and a likelihood; a subclass is a dataclass with these two fields."""

    prior: PriorLike
    likelihood: Likelihood | str

    def convert_parts(self) -> None:
        """Convert the prior and the likelihood from what users may write, and check that they go together."""
        object.__setattr__(self, "prior", as_prior(self.prior))
        object.__setattr__(self, "likelihood", as_likelihood(self.likelihood))
        prior, likelihood = self.parts()
        if prior.uses_scores and likelihood.uses_scores:
            raise InputError(
                f"the prior {type(prior).__name__} depends on the scores, which the likelihood "
                f"{type(likelihood).__name__} would count twice; set likelihood='uninformative'"
            )

    def parts(self) -> PosteriorParts:
        """The prior and the likelihood, which were converted at construction."""
        assert isinstance(self.likelihood, Likelihood)
        return PosteriorParts(converted(self.prior), self.likelihood)

    def form(self) -> LikelihoodForm:
        """The step from the counted share to F, as the rule reads it."""
        return self.parts().likelihood.form()

    @abstractmethod
    def _judging_rule(self, batch: Batch) -> LeastRisk | LeastRiskBySummary | MostUnbiased:
        """The rule by whose posterior items are judged one by one, as an audit does."""

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> Self:
        prior, likelihood = self.parts()
        prior = prior.fit(train)
        changes: Any = {"prior": prior, "likelihood": likelihood.fit(train, prior, rng=rng)}
        return replace(self, **changes)  # type: ignore[type-var]

    def without_held_out(self, draws: Draws, batch: Batch) -> Draws:
        for part in self.parts():
            draws = part.without_held_out(draws, batch.positions)
        return draws

    @property
    def holds_out(self) -> bool:
        return any(part.follows_training for part in self.parts())

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        for part in self.parts():
            part.end_epoch(scorer)

    def state_dict(self) -> dict[str, np.ndarray]:
        states = {name: part.state_dict() for name, part in self.parts()._asdict().items()}
        return {f"{name}.{key}": value for name, state in states.items() for key, value in state.items()}

    def state_specs(self, train: Interactions) -> Specs:
        specs = (prefixed(part.state_specs(train), f"{name}.") for name, part in self.parts()._asdict().items())
        return {name: spec for each in specs for name, spec in each.items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        for name, part in self.parts()._asdict().items():
            prefix = f"{name}."
            part.load_state_dict({key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)})

    def prior_probability(self, batch: Batch, items: np.ndarray) -> np.ndarray:
        return probabilities_of(self.parts().prior, batch.users, items)

    def unbias(self, batch: Batch, items: np.ndarray) -> np.ndarray:
        return posterior_unbias(self._judging_rule(batch), batch, items, self.prior_probability(batch, items))

    @property
    def uses_test_labels(self) -> bool:
        return self.parts().prior.uses_test_labels


def risk_weight(weighting: str, weight: float | str | Schedule, epoch: int) -> float:
    """λ at an epoch; the ramp of the sampling risk divides by it."""
    value = weight_at(weight, epoch)
    if weighting == "risk" and not value > 0:
        raise InputError(
            f"weight must be above 0 with weighting='risk', got {value:g} in epoch {epoch}; give a schedule that stays "
            "above 0, such as linear/10/0.1/2, or weighting='posterior'"
        )
    return value


def check_weighting(sampler: PosteriorSampler, weighting: str, weight: float | str | Schedule) -> None:
    """``weighting`` is a known name, and goes with the prior and with λ."""
    one_of("weighting", weighting, WEIGHTINGS)
    object.__setattr__(sampler, "weight", as_schedule(weight))
    risk_weight(weighting, as_schedule(weight), 1)
    if weighting != "oracle":
        return
    prior = sampler.parts().prior
    if not isinstance(prior, Oracle):
        raise InputError(
            "weighting='oracle' takes its weights from held-out labels, 0 for the pairs in them and 1 elsewhere; give "
            f"prior=bn.priors.Oracle(split.test), or prior=oracle on the command line, got {type(prior).__name__}"
        )
    object.__setattr__(sampler, "prior", Oracle(prior.labels, positive=1.0, negative=0.0))
