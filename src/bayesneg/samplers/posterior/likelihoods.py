"""Likelihoods: the step from the empirical score CDF M of the user's unobserved items to the F of the posterior.

BNS needs the density ratio r = h/g at the candidate's score, of false to true negatives, and writes it as F/(1−F). What
can be counted is M, the share of the user's unobserved items scored at or below the candidate: the CDF of the mixture
of both classes. A likelihood gives F as a non-decreasing function of M, so that everything proved about F holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from bayesneg.checks import number
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.integrity.arrays import ArraySpec, Specs
from bayesneg.interfaces import FollowsTraining, Prior, Scorer
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.formulas import AsCounted, LikelihoodForm, OfMixture, Tabled
from bayesneg.samplers.candidates import evenly_spread, prepared
from bayesneg.samplers.posterior.held_out import HeldOutPairs
from bayesneg.samplers.posterior.rank_density import POINTS, rising_density
from bayesneg.samplers.priors.basic import probabilities_of

MAX_PAIRS = 1 << 16  # unobserved pairs over which the mean of a prior is taken
MIN_TRUE_SHARE = 0.05  # of true negatives assumed in any bin

__all__ = ["BCL", "Empirical", "Likelihood", "Mixture", "Paper", "Uninformative"]


class Likelihood(FollowsTraining, ABC):
    """The step from the counted share M to F.

    ``NAME`` is the name of the likelihood on the command line; a built-in likelihood is registered by having one.
    """

    NAME: ClassVar[str] = ""

    @abstractmethod
    def form(self) -> LikelihoodForm:
        """The current form of the likelihood.

        Returns:
            The values that the kernels read.
        """

    @property
    def uses_scores(self) -> bool:
        """False for a likelihood that ignores the scores."""
        return True

    @property
    def counts_unobserved_only(self) -> bool:
        """True for a likelihood that is defined for the score CDF over unobserved items only."""
        return False

    def fit(self, train: Interactions, prior: Prior, *, rng: np.random.Generator) -> Likelihood:
        """Bind the likelihood to training data.

        Args:
            train: The training interactions.
            prior: The prior, fitted to them.
            rng: The source of randomness.

        Returns:
            The bound likelihood.
        """
        return self


@dataclass(frozen=True)
class Paper(Likelihood):
    """The paper's likelihood: F = M.

    Example:
        >>> Paper().form()
        AsCounted()

    Reference:
        B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
    """

    NAME: ClassVar = "paper"

    def form(self) -> AsCounted:
        return AsCounted()


@dataclass(frozen=True)
class Uninformative(Likelihood):
    """The uninformative likelihood: F = ½, so that unbias = 1 − p; for priors that already depend on the scores.

    Example:
        >>> float(Uninformative().form().values[0])
        0.5
    """

    NAME: ClassVar = "uninformative"

    def form(self) -> Tabled:
        return tabled(np.zeros(1), np.full(1, 0.5))

    @property
    def uses_scores(self) -> bool:
        return False


@dataclass(frozen=True)
class Mixture(Likelihood):
    """The inverted mixture: F solves M = (1−θ)(2F − F²) + θF², with the paper's densities g = 2f(1−F) and h = 2fF.

    Args:
        false_share: Share θ of false negatives among unobserved pairs, by default the mean of the prior over them.

    Example:
        >>> Mixture(false_share=0.02).form()
        OfMixture(share=0.02)

    Reference:
        B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
    """

    NAME: ClassVar = "mixture"
    false_share: float | None = None

    def __post_init__(self) -> None:
        check_false_share(self.false_share)

    def fit(self, train: Interactions, prior: Prior, *, rng: np.random.Generator) -> Mixture:
        return replace(self, false_share=false_share(self.false_share, train, prior))

    def form(self) -> OfMixture:
        return OfMixture(float(prepared(self.false_share)))


@dataclass
class DensityRatio:
    """The state of an empirical likelihood: the table of F, estimated from held-out pairs."""

    held_out: HeldOutPairs
    false_share: float  # θ
    table: Tabled


@dataclass(frozen=True)
class Empirical(Likelihood):
    """A density ratio r = h/g learned during training, without assumptions on the densities.

    The ranks of held-out training pairs in their users' score lists estimate h. Unobserved items are uniform over M by
    definition, so g = (1 − θh)/(1−θ). After each epoch h is recounted in bins that are narrow at the top of the list,
    and made non-decreasing in M by isotonic regression. In the first epoch, and with too few pairs to hold out, scores
    are uninformative: r = 1.

    Args:
        held_out: Share of the training pairs held out from training, at most 20,000 pairs.
        false_share: Share θ of false negatives among unobserved pairs, by default the mean of the prior over them.

    Example:
        >>> Empirical(held_out=0.1).false_share is None
        True
    """

    NAME: ClassVar = "empirical"
    held_out: float = 0.05
    false_share: float | None = None
    learned: DensityRatio | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        number("held_out", self.held_out, above=0, most=0.5)
        check_false_share(self.false_share, below=1)

    def fit(self, train: Interactions, prior: Prior, *, rng: np.random.Generator) -> Empirical:
        held_out = HeldOutPairs.drawn(train, self.held_out, rng)
        share = false_share(self.false_share, train, prior)
        return replace(self, learned=DensityRatio(held_out, share, Uninformative().form()))

    def form(self) -> Tabled:
        return prepared(self.learned).table

    @property
    def follows_training(self) -> bool:
        return True

    @property
    def counts_unobserved_only(self) -> bool:
        return True

    def without_held_out(self, draws: Draws, positions: np.ndarray) -> Draws:
        return prepared(self.learned).held_out.removed_from(draws, positions)

    def end_epoch(self, scorer: Scorer) -> None:
        ratio = prepared(self.learned)
        if not ratio.held_out.mask.any():
            return
        at, h = rising_density(ratio.held_out.ranks(scorer), scorer.n_items)
        r = h * (1.0 - ratio.false_share) / np.maximum(1.0 - ratio.false_share * h, MIN_TRUE_SHARE)
        ratio.table = tabled(at, r / (1.0 + r))

    def state_dict(self) -> dict[str, np.ndarray]:
        ratio = prepared(self.learned)
        return {"held": ratio.held_out.mask, **ratio.table._asdict()}

    def state_specs(self, train: Interactions) -> Specs:
        return {
            "held": ArraySpec((len(train),), "bool"),
            "at": ArraySpec((POINTS,), "float64", least=0, most=2),
            "values": ArraySpec((POINTS,), "float64", least=0, most=1),
            "slopes": ArraySpec((POINTS,), "float64"),
        }

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        ratio = prepared(self.learned)
        ratio.held_out.mask[:] = state["held"]
        ratio.table = Tabled(*(state[name].copy() for name in Tabled._fields))


@dataclass
class MeasuredAUC:
    """The state of the likelihood of BCL: the AUC of the model on held-out pairs."""

    held_out: HeldOutPairs
    false_share: float  # θ
    auc: float  # ½ until an epoch has ended


@dataclass(frozen=True)
class BCL(Likelihood):
    """The likelihood of Bayesian contrastive learning: F = (1−α) + (2α−1)·M, with α the AUC of the model.

    A false negative scores above a true one with probability α only. The densities are those of the BNS paper, mixed:
    g = 2f·(α(1−M) + (1−α)M) and h = 2f·(αM + (1−α)(1−M)), so that with the prior τ⁺ of a false negative and τ⁻ = 1 − τ⁺

        unbias = (α + (1−2α)M)·τ⁻ / ((α + (1−2α)M)·τ⁻ + ((1−α) − (1−2α)M)·τ⁺).

    α = 1 is the likelihood of the BNS paper, α = ½ an uninformative one. BCL has one class prior: ``Flat(τ⁺)``. Its
    concentration on hard negatives is the tilt of the loss ``HCL(positive_rate=0, hardness=β)``.

    Args:
        auc: The AUC α, from ½ to 1; unless given it is measured after each epoch on held-out training pairs.
        held_out: Share of the training pairs held out from training to measure the AUC, at most 20,000 pairs.
        false_share: Share θ of false negatives among the unobserved items that the AUC is measured against, by default
            the mean of the prior over them.

    Example:
        >>> BCL(auc=0.9).follows_training, BCL().follows_training
        (False, True)

    Reference:
        B. Liu, B. Wang and T. Li, "Bayesian Self-Supervised Contrastive Learning", arXiv:2301.11673, 2023.
    """

    NAME: ClassVar = "bcl"
    auc: float | None = None
    held_out: float = 0.05
    false_share: float | None = None
    measured: MeasuredAUC | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.auc is not None:
            number("auc", self.auc, least=0.5, most=1)
        number("held_out", self.held_out, above=0, most=0.5)
        check_false_share(self.false_share, below=1)

    def fit(self, train: Interactions, prior: Prior, *, rng: np.random.Generator) -> BCL:
        if self.auc is not None:
            return self
        held_out = HeldOutPairs.drawn(train, self.held_out, rng)
        return replace(self, measured=MeasuredAUC(held_out, false_share(self.false_share, train, prior), 0.5))

    def form(self) -> Tabled:
        auc = float(prepared(self.measured).auc if self.auc is None else self.auc)
        return tabled(np.array([0.0, 1.0]), np.array([1.0 - auc, auc]))

    @property
    def follows_training(self) -> bool:
        return self.auc is None

    @property
    def counts_unobserved_only(self) -> bool:
        return self.auc is None

    def without_held_out(self, draws: Draws, positions: np.ndarray) -> Draws:
        return draws if self.measured is None else self.measured.held_out.removed_from(draws, positions)

    def end_epoch(self, scorer: Scorer) -> None:
        state = self.measured
        if state is None or not state.held_out.mask.any():
            return
        above, n = state.held_out.ranks(scorer)
        against = np.mean(1.0 - above / np.maximum(n - 1, 1))  # all unobserved items: (1−θ)α + θ/2
        state.auc = float(np.clip((against - state.false_share / 2) / max(1.0 - state.false_share, 1e-9), 0.5, 1.0))

    def state_dict(self) -> dict[str, np.ndarray]:
        if self.measured is None:
            return {}
        return {"held": self.measured.held_out.mask, "auc": np.array(self.measured.auc)}

    def state_specs(self, train: Interactions) -> Specs:
        if self.measured is None:
            return {}
        return {"held": ArraySpec((len(train),), "bool"), "auc": ArraySpec((), least=0.5, most=1)}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        if self.measured is not None:
            self.measured.held_out.mask[:], self.measured.auc = state["held"], float(state["auc"])


def as_likelihood(likelihood: Likelihood | str) -> Likelihood:
    """A likelihood as it is, a name as the likelihood with its default settings."""
    from bayesneg.samplers.registry import likelihoods

    if isinstance(likelihood, Likelihood):
        return likelihood
    if isinstance(likelihood, str) and likelihood in likelihoods():
        return likelihoods()[likelihood]()
    raise InputError(
        f"likelihood must be one of {', '.join(likelihoods())}, or an object such as bn.likelihoods.Mixture(0.02), "
        f"got {likelihood!r}"
    )


def check_false_share(value: float | None, *, below: float = np.inf) -> None:
    if value is not None:
        number("false_share", value, least=0, most=1)
        if value >= below:
            raise InputError("false_share must be below 1, since g is the density of true negatives, got 1")


def false_share(given: float | None, train: Interactions, prior: Prior) -> float:
    """θ as given, or the mean of the prior over at most 65,536 unobserved pairs."""
    if given is not None:
        return float(given)
    users, items = evenly_spread(train, MAX_PAIRS)
    return float(probabilities_of(prior, users, items[:, None]).mean()) if len(users) else 0.0


def tabled(at: np.ndarray, values: np.ndarray) -> Tabled:
    """A table of fixed size, as recorded GPU steps require; the points beyond ``at`` are padding above 1."""
    points, more = len(at), POINTS - len(at)
    slopes = np.diff(values, append=values[-1]) / np.maximum(np.diff(at, append=2.0), 1e-300)
    assert 1 <= points <= POINTS
    return Tabled(
        np.concatenate((at, np.full(more, 2.0))),
        np.concatenate((values, np.full(more, values[-1]))),
        np.concatenate((slopes, np.zeros(more))),
    )
