"""Likelihoods: the step from the empirical score CDF M of the user's unobserved items to the F of the posterior.

BNS needs the density ratio r = h/g at the candidate's score, of false to true negatives, and writes it as F/(1−F). What
can be counted is M, the share of the user's unobserved items scored at or below the candidate: the CDF of the mixture
of both classes. A likelihood gives F as a non-decreasing function of M, so that everything proved about F holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from bayesneg.checks import number
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import FollowsTraining, Prior, Scorer
from bayesneg.kernels.rules import AsCounted, Draws, LikelihoodForm, OfMixture, Tabled
from bayesneg.samplers.candidates import evenly_spread, prepared
from bayesneg.samplers.held_out import Probes, Standing
from bayesneg.samplers.priors import probabilities_of

PAIRS = 1 << 16  # unobserved pairs over which the mean of a prior is taken
POINTS = 48  # of a learned table, at most
LEAST_PROBES = 25  # in a stretch of a learned table
LikelihoodName = Literal["paper", "mixture", "empirical", "uninformative"]
LEAST_TRUE = 0.05  # of the items in any stretch at least this share are taken to be true negatives


class Likelihood(FollowsTraining, ABC):
    """The step from the counted share M to F.

    ``NAME`` is the name of the likelihood on the command line; a built-in likelihood is registered by having one.
    """

    NAME: ClassVar[str] = ""

    @abstractmethod
    def form(self) -> LikelihoodForm:
        """The step as the kernels read it, as it stands now."""

    def fit(self, train: Interactions, prior: Prior, *, rng: np.random.Generator) -> Likelihood:
        """The likelihood bound to the training data and a prior fitted to it."""
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
class Fitted:
    """What an empirical likelihood knows."""

    probes: Probes
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
    learned: Fitted | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        number("held_out", self.held_out, above=0, most=0.5)
        check_false_share(self.false_share)
        if self.false_share == 1:
            raise InputError("false_share must be below 1: without true negatives there is no g to learn, got 1")

    def fit(self, train: Interactions, prior: Prior, *, rng: np.random.Generator) -> Empirical:
        probes = Probes.drawn(train, self.held_out, rng)
        share = false_share(self.false_share, train, prior)
        return replace(self, learned=Fitted(probes, share, Uninformative().form()))

    def form(self) -> Tabled:
        return prepared(self.learned).table

    def kept_out(self, draws: Draws, positions: np.ndarray) -> Draws:
        return prepared(self.learned).probes.kept_out(draws, positions)

    def end_epoch(self, scorer: Scorer) -> None:
        own = prepared(self.learned)
        if not own.probes.held.any():
            return
        at, h = rising_density(own.probes.standing(scorer), scorer.n_items)
        r = h * (1.0 - own.false_share) / np.maximum(1.0 - own.false_share * h, LEAST_TRUE)
        own.table = tabled(at, r / (1.0 + r))

    def state_dict(self) -> dict[str, np.ndarray]:
        own = prepared(self.learned)
        return {"held": own.probes.held, **own.table._asdict()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        own = prepared(self.learned)
        own.probes.held[:] = state["held"]
        own.table = Tabled(*(state[name].copy() for name in Tabled._fields))


def as_likelihood(likelihood: Likelihood | LikelihoodName) -> Likelihood:
    if isinstance(likelihood, Likelihood):
        return likelihood
    if isinstance(likelihood, str) and likelihood in BY_NAME:
        return BY_NAME[likelihood]
    raise InputError(
        f"likelihood must be one of {', '.join(BY_NAME)}, or an object such as bn.likelihoods.Mixture(0.02), "
        f"got {likelihood!r}"
    )


def check_false_share(value: float | None) -> None:
    if value is not None:
        number("false_share", value, least=0, most=1)


def false_share(given: float | None, train: Interactions, prior: Prior) -> float:
    """θ as given, or the mean of the prior over unobserved pairs, 65,536 of them at most."""
    if given is not None:
        return float(given)
    users, items = evenly_spread(train, PAIRS)
    return float(probabilities_of(prior, users, items[:, None]).mean()) if len(users) else 0.0


def tabled(at: np.ndarray, values: np.ndarray) -> Tabled:
    """A table of fixed size, so that a recorded step can read every one; what is beyond ``at`` lies above 1."""
    points, more = len(at), POINTS - len(at)
    slopes = np.diff(values, append=values[-1]) / np.maximum(np.diff(at, append=2.0), 1e-300)
    assert 1 <= points <= POINTS
    return Tabled(
        np.concatenate((at, np.full(more, 2.0))),
        np.concatenate((values, np.full(more, values[-1]))),
        np.concatenate((slopes, np.zeros(more))),
    )


def rising_density(standing: Standing, n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """The density h of the probes over M, relative to an even spread: points from 0 to 1, and h there, never falling.

    M of a probe is (n − above)/(n + 1). Stretches between fixed edges, geometric in 1−M, are joined from the top until
    each has enough probes; h is how many there are over how many an even spread over each list would put there.
    """
    from scipy.optimize import isotonic_regression

    edges = np.concatenate(([0.0], np.geomspace(1.5 / (n_items + 1), 1.0, POINTS - 1)))  # of 1−M
    tails = (standing.above + 1) / (standing.n + 1)
    counts = np.histogram(tails, edges)[0]
    ranks = np.clip(np.floor(edges[:, None] * (standing.n + 1) * (1 + 1e-12)), 0, standing.n)  # (E, P)
    evenly = (np.diff(ranks, axis=0) / standing.n).sum(axis=1)
    counts, evenly, edges = _joined(counts, evenly, edges)
    h = isotonic_regression(counts / evenly, weights=evenly, increasing=False).x
    middles = 1.0 - (edges[:-1] + edges[1:]) / 2.0
    return np.concatenate(([0.0], middles[::-1])), np.concatenate((h[-1:], h[::-1]))


def _joined(counts: np.ndarray, evenly: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Neighbours joined, from the first on, until each has enough probes and room; the last takes what is left."""
    ends, found, room = [0], 0, 0.0
    for place in range(len(counts)):
        found, room = found + counts[place], room + evenly[place]
        if found >= LEAST_PROBES and room > 0:
            ends.append(place + 1)
            found, room = 0, 0.0
    if len(ends) > 1:
        ends.pop()
    ends.append(len(counts))
    return np.add.reduceat(counts, ends[:-1]), np.add.reduceat(evenly, ends[:-1]), edges[ends]


BY_NAME: dict[str, Likelihood] = {
    "paper": Paper(),
    "mixture": Mixture(),
    "empirical": Empirical(),
    "uninformative": Uninformative(),
}
