"""The choices a built-in sampler can make, as plain tuples that NumPy and compiled code both read.

A rule holds its numbers and, where it remembers, its state. ``reference`` says what each one does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Draws(NamedTuple):
    """All that is random or model-independent about B choices."""

    candidates: np.ndarray  # (B, m) int32, valid up to sizes
    sizes: np.ndarray  # (B,) int32; 0 means the user has no negative left
    priors: np.ndarray  # (B, m) float64 probabilities of a false negative, or (B, 0)
    uniforms: np.ndarray  # (B, r) float64 in [0, 1), or (B, 0)


class Population(NamedTuple):
    """The items that F counts, and of how many the count is a share."""

    with_observed: bool  # the user's own items are counted too
    of_catalogue: bool  # it is a share of all items, counted or not


UNOBSERVED = Population(with_observed=False, of_catalogue=False)  # as the paper states
CATALOGUE = Population(with_observed=False, of_catalogue=True)
ALL = Population(with_observed=True, of_catalogue=True)


class AsCounted(NamedTuple):
    """F is the share that was counted: the paper's likelihood."""


class OfMixture(NamedTuple):
    """F is the distribution behind both classes where what was counted is that of their mixture."""

    share: float  # θ, of false negatives in the mixture


class Tabled(NamedTuple):
    """F is read off a table, straight lines between its points and constant above the last."""

    at: np.ndarray  # (K,) float64 ascending from 0, the counted shares
    values: np.ndarray  # (K,) float64, F there; never falls
    slopes: np.ndarray  # (K,) float64, of the line that begins there


LikelihoodForm = AsCounted | OfMixture | Tabled


class TakeFirst(NamedTuple):
    """The candidate that was drawn: RNS and PNS."""

    position: int = 0


class TakeHighest(NamedTuple):
    """One of the ``top`` highest-scored candidates, uniformly: DNS (top=1) and DNS(M, N)."""

    top: int


class LeastRisk(NamedTuple):
    """The candidate of least sampling risk: BNS."""

    weight: float  # λ
    over: Population
    likelihood: LikelihoodForm


class LeastRiskBySummary(NamedTuple):
    """The same with F read off a summary of the user's list: BNS with a refreshed F."""

    weight: float  # λ
    over: Population
    likelihood: LikelihoodForm
    knots: np.ndarray  # (n_users, K) float32, the scores at ``ranks`` in units of the length of the user's vector
    ranks: np.ndarray  # (K,) int64, ascending from 1


class MostUnbiased(NamedTuple):
    """The candidate most probably a true negative: the paper's posterior criterion."""

    over: Population
    likelihood: LikelihoodForm


class AtScoreRank(NamedTuple):
    """The unobserved item at an exponentially drawn rank of the user's score list: AOBPR as the BNS paper reads it."""

    scale: float  # λ in ranks


class AtFactorRank(NamedTuple):
    """The item at an exponentially drawn rank of one factor's list: AOBPR's original fast reading."""

    scale: float  # λ in ranks
    orders: np.ndarray  # (d, n_items) int32, items by factor value, descending
    spreads: np.ndarray  # (d,) float64, standard deviation of each factor over the items
    clock: np.ndarray  # (1,) int64, choices made so far
    period: int  # re-sort after this many choices


class FromMemory(NamedTuple):
    """The memory item of greatest score and variance: SRNS. ``memory`` is changed in place."""

    memory: np.ndarray  # (n_users, S1) int32, −1 where a user has fewer negatives
    past_users: np.ndarray  # (5, n_users, d) float32, the vectors at the last epoch ends
    past_items: np.ndarray  # (5, n_items, d) float32
    n_past: int  # how many of these are there yet
    variance_weight: float  # α_t
    temperature: float  # τ


PosteriorRule = LeastRisk | LeastRiskBySummary | MostUnbiased  # the rules that judge by unbias
Rule = TakeFirst | TakeHighest | LeastRisk | LeastRiskBySummary | MostUnbiased | AtScoreRank | AtFactorRank | FromMemory

FACTOR_TRIES = 8  # rejected draws before AtFactorRank takes the next unobserved item of the list
SNAPSHOTS = 5  # epoch ends that FromMemory looks back on
SHORTEST = 1e-30  # where scores are in units of a vector's length, the vector is taken to be at least this long
