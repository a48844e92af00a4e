"""The item at a drawn rank of a list: the rules of AOBPR."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesneg.kernels.reference.choices.base import Chooser, Draws
from bayesneg.kernels.reference.formulas import truncated_rank

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch

FACTOR_TRIES = 8  # rejected draws before AtFactorRank takes the next unobserved item of the list


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
