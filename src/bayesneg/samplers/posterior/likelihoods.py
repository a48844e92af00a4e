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
from bayesneg.interfaces import FollowsTraining, Prior, Scorer
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.formulas import AsCounted, LikelihoodForm, OfMixture, Tabled
from bayesneg.samplers.candidates import evenly_spread, prepared
from bayesneg.samplers.posterior.held_out import HeldOutPairs, Ranks
from bayesneg.samplers.priors.basic import probabilities_of

MAX_PAIRS = 1 << 16  # unobserved pairs over which the mean of a prior is taken
POINTS = 48  # of a learned table, at most
MIN_PER_BIN = 25  # held-out pairs in a bin of a learned table
MIN_TRUE_SHARE = 0.05  # of true negatives assumed in any bin

__all__ = ["Empirical", "Likelihood", "Mixture", "Paper", "Uninformative"]


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
        check_false_share(self.false_share)
        if self.false_share == 1:
            raise InputError("false_share must be below 1, since g is the density of true negatives, got 1")

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

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        ratio = prepared(self.learned)
        ratio.held_out.mask[:] = state["held"]
        ratio.table = Tabled(*(state[name].copy() for name in Tabled._fields))


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


def check_false_share(value: float | None) -> None:
    if value is not None:
        number("false_share", value, least=0, most=1)


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


def rising_density(ranks: Ranks, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """The density h of held-out pairs over M, relative to uniform: points from 0 to 1, and the non-decreasing h there.

    M of a pair is (n − above)/(n + 1). Bins with fixed edges, geometric in 1−M, are merged from the top until each has
    enough pairs; h is their number over the number expected if ranks were uniform.
    """
    from scipy.optimize import isotonic_regression

    edges = np.concatenate(([0.0], np.geomspace(1.5 / (n_items + 1), 1.0, POINTS - 1)))  # of 1−M
    tails = (ranks.above + 1) / (ranks.n + 1)
    counts = np.histogram(tails, edges)[0]
    last = np.clip(np.floor(edges[:, None] * (ranks.n + 1) * (1 + 1e-12)), 0, ranks.n)  # (E, P), last rank in each bin
    uniform = (np.diff(last, axis=0) / ranks.n).sum(axis=1)
    counts, uniform, edges = _merged(counts, uniform, edges)
    h = isotonic_regression(counts / uniform, weights=uniform, increasing=False).x
    middles = 1.0 - (edges[:-1] + edges[1:]) / 2.0
    return np.concatenate(([0.0], middles[::-1])), np.concatenate((h[-1:], h[::-1]))


def _merged(counts: np.ndarray, uniform: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bins merged with the next, from the first on, until each has enough pairs; the last takes the rest."""
    ends, found, expected = [0], 0, 0.0
    for bin_ in range(len(counts)):
        found, expected = found + counts[bin_], expected + uniform[bin_]
        if found >= MIN_PER_BIN and expected > 0:
            ends.append(bin_ + 1)
            found, expected = 0, 0.0
    if len(ends) > 1:
        ends.pop()
    ends.append(len(counts))
    return np.add.reduceat(counts, ends[:-1]), np.add.reduceat(uniform, ends[:-1]), edges[ends]
