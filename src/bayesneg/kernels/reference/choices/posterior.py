"""The candidate of least risk, or the one most probably a true negative: the rules of BNS and the posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from bayesneg.kernels.reference.choices.base import Chooser, Draws, Rule
from bayesneg.kernels.reference.formulas import (
    SHORTEST,
    LikelihoodForm,
    Population,
    counted_unbias,
    info,
    items_above,
    list_sizes,
    risk,
)

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch

Counts = tuple[np.ndarray, np.ndarray, np.ndarray]


class LeastRisk(NamedTuple):
    """The candidate of least sampling risk, F counted over the whole score list: BNS."""

    weight: float  # λ
    over: Population
    likelihood: LikelihoodForm

    def counts(self, batch: Batch, items: np.ndarray) -> Counts:
        return count_scores(self.over, batch, items)

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        return choose_by_posterior(self, draws, batch)

    def choose(self, x: np.ndarray, x_positive: float, true_negative: np.ndarray) -> int:
        return choose_least_risk(x, x_positive, true_negative, self.weight)


class LeastRiskBySummary(NamedTuple):
    """The candidate of least sampling risk, F read off a summary of the score list: BNS with a refreshed F."""

    weight: float  # λ
    over: Population
    likelihood: LikelihoodForm
    knots: np.ndarray  # (n_users, K) float32, the scores at ``ranks`` divided by the norm of the user's embedding
    ranks: np.ndarray  # (K,) int64, ascending from 1

    def counts(self, batch: Batch, items: np.ndarray) -> Counts:
        """The same counts as of the whole list, interpolated between the knots of the user's summary."""
        x, above, w = batch.score(items), np.empty(items.shape), batch.scorer.embeddings().users[batch.users]
        lengths = np.maximum(np.sqrt((w * w).sum(axis=1)), np.float32(SHORTEST))
        for b, user in enumerate(batch.users):
            above[b] = items_above(self.knots[user], self.ranks, x[b] / lengths[b])
        n_counted, n = list_sizes(self.over, batch.train.n_items, batch.train.counts[batch.users])
        return x, n_counted[:, None] - np.minimum(above, n_counted[:, None] - 1), n

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        return choose_by_posterior(self, draws, batch)

    def choose(self, x: np.ndarray, x_positive: float, true_negative: np.ndarray) -> int:
        return choose_least_risk(x, x_positive, true_negative, self.weight)


class MostUnbiased(NamedTuple):
    """The candidate most probably a true negative: the paper's posterior criterion."""

    over: Population
    likelihood: LikelihoodForm

    def counts(self, batch: Batch, items: np.ndarray) -> Counts:
        return count_scores(self.over, batch, items)

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        return choose_by_posterior(self, draws, batch)

    def choose(self, x: np.ndarray, x_positive: float, true_negative: np.ndarray) -> int:
        return choose_most_unbiased(true_negative)


class PosteriorRule(Rule, Protocol):
    """A rule that judges candidates by the posterior probability of a true negative."""

    @property
    def over(self) -> Population: ...

    @property
    def likelihood(self) -> LikelihoodForm: ...

    def counts(self, batch: Batch, items: np.ndarray) -> Counts:
        """Scores (B, m) of ``items`` (B, m), the counts (B, m) of scores at or below each, and n (B,)."""
        ...

    def choose(self, x: np.ndarray, x_positive: float, true_negative: np.ndarray) -> int:
        """Position of the chosen candidate given scores (m,), the positive's score and unbias (m,)."""
        ...


def choose_by_posterior(rule: PosteriorRule, draws: Draws, batch: Batch) -> Chooser:
    """The choice of a rule that judges candidates by their unbias."""
    items = np.column_stack((batch.positives, np.maximum(draws.candidates, 0)))  # (B, 1 + m)
    x, counts, n = rule.counts(batch, items)

    def choose(b: int) -> int:
        size = draws.sizes[b]
        true_negative = counted_unbias(rule.likelihood, counts[b, 1 : 1 + size], n[b], draws.priors[b, :size])
        return draws.candidates[b, rule.choose(x[b, 1 : 1 + size], x[b, 0], true_negative)]

    return choose


def count_scores(over: Population, batch: Batch, items: np.ndarray) -> Counts:
    """Scores (B, m) of ``items``, how many of the user's score list are at most each (B, m), and n (B,)."""
    x_all = batch.score_all()  # (B, n_items)
    x, counts = np.take_along_axis(x_all, items, axis=1), np.empty(items.shape, dtype=np.int64)
    for b, user in enumerate(batch.users):
        population = x_all[b] if over.with_observed else np.delete(x_all[b], batch.train.row(user))
        counts[b] = (population[None, :] <= x[b, :, None]).sum(axis=1)
    return x, counts, list_sizes(over, batch.train.n_items, batch.train.counts[batch.users])[1]


def choose_least_risk(x: np.ndarray, x_positive: float, true_negative: np.ndarray, weight: float) -> int:
    """Position of the candidate with the least risk, given its unbias; the lowest position wins a tie."""
    return int(np.argmin(risk(info(x_positive, x), true_negative, weight)))


def choose_most_unbiased(true_negative: np.ndarray) -> int:
    """Position of the candidate most probably a true negative; the lowest position wins a tie."""
    return int(np.argmax(true_negative))
