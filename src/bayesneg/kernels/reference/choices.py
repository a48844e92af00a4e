"""Every rule by which a built-in sampler chooses a negative, with its executable specification in NumPy.

A rule is a plain tuple of numbers and arrays that NumPy, numba and torch all read. :meth:`Rule.chooser` is its
specification: slow and short on purpose. ``kernels/numba/choices.py`` and ``kernels/torch/choices.py`` execute the
same rules and are tested equal to it, ties included. A new rule is one tuple here and one entry in each of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from bayesneg.kernels.reference.formulas import (
    SHORTEST,
    LikelihoodForm,
    Population,
    counted_unbias,
    info,
    items_above,
    list_sizes,
    risk,
    truncated_rank,
)

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch

FACTOR_TRIES = 8  # rejected draws before AtFactorRank takes the next unobserved item of the list
SNAPSHOTS = 5  # past epochs over which FromMemory takes the variance of scores

Chooser = Callable[[int], int]  # the item chosen for the b-th example of a batch
Counts = tuple[np.ndarray, np.ndarray, np.ndarray]


class Draws(NamedTuple):
    """Everything random or independent of the model about B choices, drawn before a score is computed."""

    candidates: np.ndarray  # (B, m) int32, valid up to sizes
    sizes: np.ndarray  # (B,) int32; 0 where the user has no unobserved item
    priors: np.ndarray  # (B, m) float64 probabilities of a false negative, or (B, 0)
    uniforms: np.ndarray  # (B, r) float64 in [0, 1), or (B, 0)


class Rule(Protocol):
    """How a negative is chosen from draws and scores; every implementation is a ``NamedTuple``."""

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        """The specification: a function from an example of the batch to the item chosen for it."""
        ...


def choose_batch(rule: Rule, draws: Draws, batch: Batch) -> np.ndarray:
    """The item (B,) that the rule chooses for each pair of the batch, −1 where the user has no unobserved item."""
    chosen = np.full(len(batch.users), -1, dtype=np.int32)
    choose = rule.chooser(draws, batch)
    for b in np.flatnonzero(draws.sizes):
        chosen[b] = choose(int(b))
    return chosen


# ------------------------------------------------------------------------------------------------- RNS, PNS and DNS


class TakeFirst(NamedTuple):
    """The candidate that was drawn: RNS and PNS."""

    position: int = 0

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        return lambda b: draws.candidates[b, self.position]


class TakeHighest(NamedTuple):
    """One of the ``top`` highest-scored candidates, uniformly: DNS (top=1) and DNS(M, N)."""

    top: int

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        x = batch.score(draws.candidates)  # (B, m)

        def choose(b: int) -> int:
            return draws.candidates[b, choose_highest(x[b, : draws.sizes[b]], self.top, draws.uniforms[b, 0])]

        return choose


def choose_highest(x: np.ndarray, top: int, uniform: float) -> int:
    """Position of one of the ``top`` highest scores, uniformly; the earlier position wins a tie."""
    best = np.argsort(-x, kind="stable")[:top]
    return int(best[int(uniform * len(best))])


# ---------------------------------------------------------------------------------------- BNS and the posterior


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


# ------------------------------------------------------------------------------------------------------------ AOBPR


class AtScoreRank(NamedTuple):
    """The unobserved item at an exponentially drawn rank of the user's score list: AOBPR as the BNS paper reads it."""

    scale: float  # λ in ranks

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        x_all = batch.score_all()

        def choose(b: int) -> int:
            row = batch.train.row(batch.users[b])
            rank = truncated_rank(draws.uniforms[b, 0], self.scale, x_all.shape[1] - len(row))
            return choose_at_rank(x_all[b], row, rank)

        return choose


class AtFactorRank(NamedTuple):
    """The item at an exponentially drawn rank of one factor's list: the fast sampler of the AOBPR paper."""

    scale: float  # λ in ranks
    orders: np.ndarray  # (d, n_items) int32, items by factor value, descending; changed in place
    spreads: np.ndarray  # (d,) float64, standard deviation of each factor over the items; changed in place
    clock: np.ndarray  # (1,) int64, choices made so far; changed in place
    period: int  # choices between two sorts

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        vectors = batch.scorer.embeddings()

        def choose(b: int) -> int:
            if self.clock[0] % self.period == 0:
                self.orders[:] = np.argsort(-vectors.items.T, axis=1, kind="stable")
                self.spreads[:] = vectors.items.astype(np.float64).std(axis=0)
            self.clock[0] += 1
            user = batch.users[b]
            return choose_at_factor_rank(vectors.users[user], self, batch.train.row(user), draws.uniforms[b])

        return choose


def choose_at_rank(x: np.ndarray, row: np.ndarray, rank: int) -> int:
    """The unobserved item at this rank (0 the highest score; the lower item number first on ties)."""
    unobserved = np.setdiff1d(np.arange(len(x)), row)
    return int(unobserved[np.argsort(-x[unobserved], kind="stable")[rank]])


def choose_at_factor_rank(w: np.ndarray, rule: AtFactorRank, row: np.ndarray, uniforms: np.ndarray) -> int:
    """Draw a rank and a factor ∝ |w_f|·std_f; take the item there unless it is observed; then the next below."""
    n_items = rule.orders.shape[1]
    mass = np.cumsum(np.abs(w.astype(np.float64)) * rule.spreads)
    observed = set(row.tolist())
    for attempt in range(FACTOR_TRIES):
        rank = truncated_rank(uniforms[2 * attempt], rule.scale, n_items)
        factor = int(np.searchsorted(mass, uniforms[2 * attempt + 1] * mass[-1], side="right"))
        factor = min(factor, len(w) - 1)
        order = rule.orders[factor] if w[factor] > 0 else rule.orders[factor][::-1]
        if order[rank] not in observed:
            return int(order[rank])
    while order[rank % n_items] in observed:
        rank += 1
    return int(order[rank % n_items])


# ------------------------------------------------------------------------------------------------------------- SRNS


class FromMemory(NamedTuple):
    """The memory item of greatest score and variance: SRNS."""

    memory: np.ndarray  # (n_users, S1) int32, −1 where a user has fewer unobserved items; changed in place
    past_users: np.ndarray  # (5, n_users, d) float32, the embeddings at the last epoch ends
    past_items: np.ndarray  # (5, n_items, d) float32
    n_past: int  # how many of the five are filled
    variance_weight: float  # α_t
    temperature: float  # τ

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        """Every choice reads the memory as it was before the batch; a user's first example refreshes it."""
        before = self.memory.copy()
        n_fresh = draws.candidates.shape[1] - self.memory.shape[1]
        refreshed: set[int] = set()

        def choose(b: int) -> int:
            user, positive = int(batch.users[b]), int(batch.positives[b])
            memory = before[user][before[user] >= 0]
            fresh = fresh_for_memory(draws.candidates[b, : draws.sizes[b]], memory, n_fresh)
            items = np.concatenate((memory, fresh, [positive]))
            x = batch.scorer.score(batch.users[b : b + 1], items[None, :])[0]
            if user not in refreshed:
                refreshed.add(user)
                after = refresh_memory(memory, fresh, x[:-1], self.temperature, draws.uniforms[b])
                self.memory[user, : len(memory)] = after
            return memory[choose_from_memory(self, user, positive, memory, x[: len(memory)], x[-1])]

        return choose


def choose_from_memory(
    rule: FromMemory, user: int, positive: int, memory: np.ndarray, x: np.ndarray, x_positive: float
) -> int:
    """Slot of greatest P_k + α_t · std(P_k over the last epoch ends), P_k = σ(x_k − x_i)."""
    w, h = rule.past_users[: rule.n_past, user], rule.past_items[: rule.n_past]  # (t, d), (t, n_items, d)
    past = [info(w[t] @ h[t, positive], h[t, memory] @ w[t]) for t in range(rule.n_past)]  # t times (S,)
    spread = np.std(past, axis=0) if past else np.zeros(len(x))
    return int(np.argmax(info(x_positive, x) + rule.variance_weight * spread))


def refresh_memory(
    memory: np.ndarray, fresh: np.ndarray, x: np.ndarray, temperature: float, uniforms: np.ndarray
) -> np.ndarray:
    """Keep as many of memory and fresh items as the memory has, without replacement ∝ softmax(x/τ).

    By the Gumbel-top-k trick. ``x`` are the scores of the memory, then of the fresh items; an item that stays keeps
    its slot, new items fill the free slots in order.
    """
    keys = x.astype(np.float64) / temperature - np.log(-np.log(np.maximum(uniforms[: len(x)], 1e-300)))
    kept = np.argsort(-keys, kind="stable")[: len(memory)]
    newcomers = iter(kept[kept >= len(memory)] - len(memory))
    return np.array([item if slot in kept else fresh[next(newcomers)] for slot, item in enumerate(memory)])


def fresh_for_memory(candidates: np.ndarray, memory: np.ndarray, size: int) -> np.ndarray:
    """The first ``size`` candidates that are not in memory."""
    return candidates[~np.isin(candidates, memory)][:size]
