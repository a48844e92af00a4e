"""The executable specification: every draw and every choice in plain NumPy, one line per equation.

Slow and short on purpose. The compiled kernels carry the same names and are tested equal to these functions on random
and adversarial input. Notation: x scores, p the prior, n the size of the list that F is a share of: the user's
unobserved items unless the rule says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesneg.kernels.rules import (
    FACTOR_TRIES,
    SHORTEST,
    AsCounted,
    AtFactorRank,
    AtScoreRank,
    Draws,
    FromMemory,
    LeastRisk,
    LeastRiskBySummary,
    LikelihoodForm,
    MostUnbiased,
    OfMixture,
    Population,
    PosteriorRule,
    Rule,
    TakeFirst,
    TakeHighest,
)

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch

# ---------------------------------------------------------------------------------------------- the paper's formulas


def info(x_positive: Any, x_candidates: Any) -> Any:
    """Gradient magnitude 1 − σ(x_i − x_l).

    >>> float(info(1.0, 1.0))
    0.5
    """
    gap = np.asarray(x_positive, dtype=np.float64) - np.asarray(x_candidates, dtype=np.float64)
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(gap))


def list_sizes(over: Population, n_items: Any, n_observed: Any) -> Any:
    """How many items F counts, and n, of how many the count is a share.

    >>> list_sizes(Population(with_observed=False, of_catalogue=True), 10, 3)
    (7, 10)
    """
    return n_items - n_observed * (not over.with_observed), n_items - n_observed * (not over.of_catalogue)


def counted_cdf(count: Any, n: Any) -> Any:
    """F = #{x ≤ x_l} / (n + 1): the share of n scores, kept below 1.

    >>> counted_cdf(4, 4)
    0.8
    """
    return count / (n + 1)


def base_cdf(likelihood: LikelihoodForm, M: Any) -> Any:
    """F where the share M was counted: M itself, M with the mixture undone, or what a table says.

    Undone: M = (1−θ)(2F − F²) + θF² solved for F, in the form that loses no digits at any θ.

    >>> base_cdf(AsCounted(), 0.99), round(float(base_cdf(OfMixture(share=0.0), 0.99)), 6)
    (0.99, 0.9)
    """
    if isinstance(likelihood, AsCounted):
        return M
    if isinstance(likelihood, OfMixture):
        rest = 1.0 - likelihood.share
        return M / (rest + np.sqrt(rest * rest + (2.0 * likelihood.share - 1.0) * M))
    point = np.searchsorted(likelihood.at, M, side="right") - 1
    return likelihood.values[point] + (M - likelihood.at[point]) * likelihood.slopes[point]


def unbias(F: Any, p: Any) -> Any:
    """Posterior probability of a true negative, (1−F)(1−p) / (1 − F − p + 2Fp).

    >>> round(unbias(0.75, 0.2), 6)
    0.571429
    """
    negative = (1.0 - F) * (1.0 - p)
    return negative / (negative + F * p)


def counted_unbias(likelihood: LikelihoodForm, counts: Any, n: Any, p: Any) -> Any:
    """The probability of a true negative from what was counted: the one step from counts to unbias."""
    return unbias(base_cdf(likelihood, counted_cdf(counts, n)), p)


def risk(info: Any, unbias: Any, weight: Any) -> Any:
    """Conditional sampling risk info · (1 − (1+λ) · unbias).

    >>> risk(0.5, 0.9, 5.0)
    -2.2
    """
    return info * (1.0 - (1.0 + weight) * unbias)


def truncated_rank(uniform: float, scale: float, n: int) -> int:
    """A rank r in 0 … n−1 with probability ∝ exp(−r/λ), by inversion.

    >>> truncated_rank(0.0, 2.0, 10), truncated_rank(0.999999, 2.0, 10)
    (0, 9)
    """
    return min(int(-scale * np.log1p(-uniform * -np.expm1(-n / scale))), n - 1)


# ------------------------------------------------------------------------------------- F from a summary of the list


def summarise(x: np.ndarray, weights: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The scores (K,) at ``ranks`` of a list in which each score x stands ``weights`` times.

    >>> summarise(np.array([1.0, 4.0, 3.0]), np.array([2, 1, 1]), np.array([1, 2, 4]))
    array([4., 3., 1.])
    """
    order = np.argsort(-x, kind="stable")
    places = np.searchsorted(np.cumsum(weights[order]), ranks)
    return x[order][np.minimum(places, len(x) - 1)]


def items_above(knots: np.ndarray, ranks: np.ndarray, z: Any) -> Any:
    """How many items stand above a score: rank − 1 at the knots, in proportion between them.

    >>> float(items_above(np.array([4.0, 3.0, 1.0]), np.array([1, 2, 4]), 2.0))
    2.0
    """
    return np.interp(z, knots[::-1], ranks[::-1] - 1.0)


# ----------------------------------------------------------------------------------------------------------- choices


def choose_highest(x: np.ndarray, top: int, uniform: float) -> int:
    """Position of one of the ``top`` highest scores, uniformly; the earlier position wins a tie."""
    best = np.argsort(-x, kind="stable")[:top]
    return int(best[int(uniform * len(best))])


def choose_least_risk(x: np.ndarray, x_positive: float, true_negative: np.ndarray, weight: float) -> int:
    """Position of the candidate with the least risk, given its unbias; the lowest position wins a tie."""
    return int(np.argmin(risk(info(x_positive, x), true_negative, weight)))


def choose_most_unbiased(true_negative: np.ndarray) -> int:
    """Position of the candidate most probably a true negative; the lowest position wins a tie."""
    return int(np.argmax(true_negative))


def choose_at_rank(x: np.ndarray, row: np.ndarray, rank: int) -> int:
    """The unobserved item at this rank (0 the highest score; the lower item number first on ties)."""
    unobserved = np.setdiff1d(np.arange(len(x)), row)
    return int(unobserved[np.argsort(-x[unobserved], kind="stable")[rank]])


def choose_at_factor_rank(w: np.ndarray, rule: AtFactorRank, row: np.ndarray, uniforms: np.ndarray) -> int:
    """Draw a rank and a factor ∝ |w_f|·std_f; take the item there unless it is a positive; then the next below."""
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

    That is to keep the largest after adding Gumbel noise. ``x`` are the scores of the memory, then of the fresh items;
    who stays keeps the slot, newcomers take the freed ones in order.
    """
    keys = x.astype(np.float64) / temperature - np.log(-np.log(np.maximum(uniforms[: len(x)], 1e-300)))
    kept = np.argsort(-keys, kind="stable")[: len(memory)]
    newcomers = iter(kept[kept >= len(memory)] - len(memory))
    return np.array([item if slot in kept else fresh[next(newcomers)] for slot, item in enumerate(memory)])


def fresh_for_memory(candidates: np.ndarray, memory: np.ndarray, size: int) -> np.ndarray:
    """The first ``size`` candidates that are not in memory."""
    return candidates[~np.isin(candidates, memory)][:size]


# ------------------------------------------------------------------------------------------ a batch of choices


def choose_batch(rule: Rule, draws: Draws, batch: Batch) -> np.ndarray:
    """The item (B,) that the rule picks for each pair of the batch, −1 where the user has no negative."""
    chosen = np.full(len(batch.users), -1, dtype=np.int32)
    answer = _ANSWERS[type(rule)](rule, draws, batch)
    for b in np.flatnonzero(draws.sizes):
        chosen[b] = answer(int(b))
    return chosen


def _take_first(rule: TakeFirst, draws: Draws, batch: Batch) -> Callable[[int], int]:
    return lambda b: draws.candidates[b, rule.position]


def _take_highest(rule: TakeHighest, draws: Draws, batch: Batch) -> Callable[[int], int]:
    x = batch.score(draws.candidates)  # (B, m)

    def answer(b: int) -> int:
        return draws.candidates[b, choose_highest(x[b, : draws.sizes[b]], rule.top, draws.uniforms[b, 0])]

    return answer


def _counts(rule: PosteriorRule, batch: Batch, items: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores (B, m), how many of a user's list are at most each (B, m), and of how many that is a share (B,)."""
    x_all = batch.score_all()  # (B, n_items)
    x, counts = np.take_along_axis(x_all, items, axis=1), np.empty(items.shape, dtype=np.int64)
    for b, user in enumerate(batch.users):
        population = x_all[b] if rule.over.with_observed else np.delete(x_all[b], batch.train.row(user))
        counts[b] = (population[None, :] <= x[b, :, None]).sum(axis=1)
    return x, counts, list_sizes(rule.over, batch.train.n_items, batch.train.counts[batch.users])[1]


def _counts_by_summary(
    rule: LeastRiskBySummary, batch: Batch, items: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same, read off the users' summaries."""
    x, above, w = batch.score(items), np.empty(items.shape), batch.scorer.embeddings().users[batch.users]
    lengths = np.maximum(np.sqrt((w * w).sum(axis=1)), np.float32(SHORTEST))
    for b, user in enumerate(batch.users):
        above[b] = items_above(rule.knots[user], rule.ranks, x[b] / lengths[b])
    n_counted, n = list_sizes(rule.over, batch.train.n_items, batch.train.counts[batch.users])
    return x, n_counted[:, None] - np.minimum(above, n_counted[:, None] - 1), n


_COUNTS: dict[type, Callable[[Any, Batch, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]] = {
    LeastRisk: _counts,
    LeastRiskBySummary: _counts_by_summary,
    MostUnbiased: _counts,
}


def _by_posterior(rule: PosteriorRule, draws: Draws, batch: Batch) -> Callable[[int], int]:
    items = np.column_stack((batch.positives, np.maximum(draws.candidates, 0)))  # (B, 1 + m)
    x, counts, n = _COUNTS[type(rule)](rule, batch, items)

    def answer(b: int) -> int:
        size = draws.sizes[b]
        true_negative = counted_unbias(rule.likelihood, counts[b, 1 : 1 + size], n[b], draws.priors[b, :size])
        if isinstance(rule, MostUnbiased):
            return draws.candidates[b, choose_most_unbiased(true_negative)]
        return draws.candidates[b, choose_least_risk(x[b, 1 : 1 + size], x[b, 0], true_negative, rule.weight)]

    return answer


def _at_score_rank(rule: AtScoreRank, draws: Draws, batch: Batch) -> Callable[[int], int]:
    x_all = batch.score_all()

    def answer(b: int) -> int:
        row = batch.train.row(batch.users[b])
        return choose_at_rank(
            x_all[b], row, truncated_rank(draws.uniforms[b, 0], rule.scale, x_all.shape[1] - len(row))
        )

    return answer


def _at_factor_rank(rule: AtFactorRank, draws: Draws, batch: Batch) -> Callable[[int], int]:
    vectors = batch.scorer.embeddings()

    def answer(b: int) -> int:
        if rule.clock[0] % rule.period == 0:
            rule.orders[:] = np.argsort(-vectors.items.T, axis=1, kind="stable")
            rule.spreads[:] = vectors.items.astype(np.float64).std(axis=0)
        rule.clock[0] += 1
        user = batch.users[b]
        return choose_at_factor_rank(vectors.users[user], rule, batch.train.row(user), draws.uniforms[b])

    return answer


def _from_memory(rule: FromMemory, draws: Draws, batch: Batch) -> Callable[[int], int]:
    """Every choice sees the memory as the batch found it; each user's is refreshed once, by its first example."""
    before = rule.memory.copy()
    n_fresh = draws.candidates.shape[1] - rule.memory.shape[1]
    refreshed: set[int] = set()

    def answer(b: int) -> int:
        user, positive = int(batch.users[b]), int(batch.positives[b])
        memory = before[user][before[user] >= 0]
        fresh = fresh_for_memory(draws.candidates[b, : draws.sizes[b]], memory, n_fresh)
        items = np.concatenate((memory, fresh, [positive]))
        x = batch.scorer.score(batch.users[b : b + 1], items[None, :])[0]
        if user not in refreshed:
            refreshed.add(user)
            after = refresh_memory(memory, fresh, x[:-1], rule.temperature, draws.uniforms[b])
            rule.memory[user, : len(memory)] = after
        return memory[choose_from_memory(rule, user, positive, memory, x[: len(memory)], x[-1])]

    return answer


_ANSWERS: dict[type, Callable[[Any, Draws, Batch], Callable[[int], int]]] = {
    TakeFirst: _take_first,
    TakeHighest: _take_highest,
    LeastRisk: _by_posterior,
    LeastRiskBySummary: _by_posterior,
    MostUnbiased: _by_posterior,
    AtScoreRank: _at_score_rank,
    AtFactorRank: _at_factor_rank,
    FromMemory: _from_memory,
}
