"""Priors built from priors: a mean of several, or one with scaled odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from bayesneg.checks import number, one_of
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Prior
from bayesneg.kernels.reference.formulas import mean_probability
from bayesneg.kernels.reference.pools import Computed, MeanOfForms, PriorForm, mapped
from bayesneg.samplers.priors.basic import PriorLike, component, component_probability, converted
from bayesneg.samplers.priors.calibration_curves import scale_odds


@dataclass(frozen=True)
class Combined(Prior):
    """The weighted mean of several priors: σ(Σ w_k·logit(p_k)) of their log odds, or Σ w_k·p_k of their probabilities.

    Priors with different information are better combined on the logit scale, where a confident one counts for more; the
    mean of probabilities stays calibrated if each of them is.

    Args:
        priors: Priors to combine, as objects or functions ``(users, items) → probability``.
        weights: One positive weight for each prior, normalised to sum to 1; equal by default.
        scale: Scale of the mean: ``"logit"`` or ``"probability"``.

    Example:
        >>> from bayesneg.samplers.priors.basic import Flat
        >>> prior = Combined([Flat(0.1), Flat(0.3)], scale="probability")
        >>> round(float(prior.probability(np.array(0), np.array(0))), 6)
        0.2
    """

    priors: Sequence[PriorLike]
    weights: Sequence[float] | None = None
    scale: Literal["logit", "probability"] = "logit"

    def __post_init__(self) -> None:
        one_of("scale", self.scale, ("logit", "probability"))
        if not isinstance(self.priors, Sequence) or isinstance(self.priors, str):
            raise InputError(f"priors must be a list of priors, got {self.priors!r}; write Combined([a, b])")
        if not self.priors:
            raise InputError("priors must name at least one prior, got none")
        object.__setattr__(self, "priors", tuple(component(prior, "Combined") for prior in self.priors))
        if self.weights is not None:
            if not isinstance(self.weights, (Sequence, np.ndarray)):
                raise InputError(f"weights must be a list of numbers, one for each prior, got {self.weights!r}")
            if len(self.weights) != len(self.priors):
                raise InputError(f"weights must be one for each of {len(self.priors)} priors, got {len(self.weights)}")
            for weight in self.weights:
                number("weights", weight, above=0)
            object.__setattr__(self, "weights", tuple(self.weights))

    def fit(self, train: Interactions) -> Combined:
        return replace(self, priors=[converted(prior).fit(train) for prior in self.priors])

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        parts = [component_probability(prior, users, items) for prior in self.priors]
        return np.asarray(mean_probability(parts, self._shares, self.scale == "logit"))

    @property
    def _shares(self) -> tuple[float, ...]:
        weights = np.ones(len(self.priors)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        return tuple((weights / weights.sum()).tolist())

    def form(self) -> PriorForm:
        return self._form

    @cached_property
    def _form(self) -> PriorForm:
        parts = tuple(converted(prior).form() for prior in self.priors)
        if any(isinstance(part, Computed) for part in parts):
            return Computed(self.probability)
        return MeanOfForms(parts, self._shares, self.scale == "logit")

    @property
    def uses_test_labels(self) -> bool:
        return any(converted(prior).uses_test_labels for prior in self.priors)


@dataclass(frozen=True)
class Scaled(Prior):
    """A prior with scaled odds: p/(1−p) · strength; above 1 BNS avoids false negatives more, below 1 less.

    Args:
        prior: Prior whose odds are scaled, as an object or a function ``(users, items) → probability``.
        strength: Factor on the odds.

    Example:
        >>> from bayesneg.samplers.priors.basic import Flat
        >>> round(float(Scaled(Flat(0.5), strength=3.0).probability(np.array(0), np.array(0))), 6)
        0.75
    """

    prior: PriorLike
    strength: float = 1.0

    def __post_init__(self) -> None:
        number("strength", self.strength, above=0)
        object.__setattr__(self, "prior", component(self.prior, "Scaled"))

    def fit(self, train: Interactions) -> Scaled:
        return replace(self, prior=converted(self.prior).fit(train))

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return scale_odds(component_probability(self.prior, users, items), self.strength)

    def form(self) -> PriorForm:
        return self._form

    @cached_property
    def _form(self) -> PriorForm:
        scaled = mapped(converted(self.prior).form(), lambda p: scale_odds(p, self.strength))
        return Computed(self.probability) if scaled is None else scaled

    @property
    def uses_test_labels(self) -> bool:
        return converted(self.prior).uses_test_labels
