"""Weights of a pool of items that all examples of a batch share, with their executable specification in NumPy.

An item of the pool does not count for a user who has it in the training data, nor if it is in the pool already. Where
items were drawn with unequal probabilities π, ranks in the pool are no ranks in the user's list: each item then stands
for 1/π items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesneg.kernels.reference.formulas import LikelihoodForm, base_cdf, counted_unbias, unbias
from bayesneg.kernels.reference.selections import weight_of

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch


class SharedPool(NamedTuple):
    """The items that all examples of a batch share."""

    items: Any  # (N,)
    log_q: Any = None  # (N,) log-probabilities that an item is in the pool, up to a constant; None where all are equal
    corrects: bool = True  # whether a loss is corrected by log_q; F always is


# ----------------------------------------------------------------------------------------------- the prior of a pool


class PerItem(NamedTuple):
    """One probability of a false negative per item."""

    probabilities: Any  # (n_items,)

    def of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.probabilities[items], (len(users), len(items)))


class SparseRows(NamedTuple):
    """A base rate per user, and the items that are likelier: a row of them for each user."""

    base: Any  # (n_users,)
    indptr: Any  # (n_users + 1,)
    items: Any  # (n,) ascending in each row
    values: Any  # (n,)

    def of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        found = np.empty((len(users), len(items)))
        for b, user in enumerate(users):
            row = slice(self.indptr[user], self.indptr[user + 1])
            likelier = dict(zip(self.items[row].tolist(), self.values[row].tolist(), strict=True))
            found[b] = [likelier.get(item, self.base[user]) for item in items.tolist()]
        return found


class Computed(NamedTuple):
    """Probabilities that a function computes for users (B, 1) and items (1, N)."""

    function: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return self.function(users[:, None], items[None, :])


PriorForm = PerItem | SparseRows | Computed


# ------------------------------------------------------------------------------------------------ rules for a pool


class EqualWeights(NamedTuple):
    """Every item that counts has weight 1."""

    def weigh(self, pool: SharedPool, batch: Batch) -> np.ndarray:
        return counting(pool, batch).astype(np.float64)


class WeightsByPoolRank(NamedTuple):
    """The posterior with F from the rank among the items of the pool that count."""

    weight: float  # λ
    ramp: bool
    likelihood: LikelihoodForm
    prior: PriorForm

    def weigh(self, pool: SharedPool, batch: Batch) -> np.ndarray:
        counts = counting(pool, batch)  # (B, N)
        x = batch.scorer.score_all(batch.users)[:, pool.items]
        stands_for = np.ones(len(pool.items)) if pool.log_q is None else np.exp(-(pool.log_q - pool.log_q.min()))
        F = np.empty(x.shape)
        for b in range(len(x)):
            mass = np.where(counts[b], stands_for, 0.0)
            at_most = (x[b][None, :] <= x[b][:, None]) @ mass
            F[b] = base_cdf(self.likelihood, at_most / (mass.sum() * (1.0 + 1.0 / max(1, counts[b].sum())) or 1.0))
        true_negative = unbias(F, self.prior.of(batch.users, pool.items))
        return np.where(counts, weight_of(true_negative, self.weight, self.ramp), 0.0)


class WeightsByList(NamedTuple):
    """The posterior with F from the user's whole score list, counted or read off a summary."""

    rule: Any  # LeastRisk or LeastRiskBySummary
    ramp: bool
    prior: PriorForm

    def weigh(self, pool: SharedPool, batch: Batch) -> np.ndarray:
        items = np.broadcast_to(pool.items, (len(batch.users), len(pool.items)))
        _, counts, n = self.rule.counts(batch, items)
        p = self.prior.of(batch.users, pool.items)
        true_negative = counted_unbias(self.rule.likelihood, counts, n[:, None], p)
        return np.where(counting(pool, batch), weight_of(true_negative, self.rule.weight, self.ramp), 0.0)


PoolRule = EqualWeights | WeightsByPoolRank | WeightsByList


def counting(pool: SharedPool, batch: Batch) -> np.ndarray:
    """True (B, N) where an item of the pool counts: unobserved by the user, and the first of its kind."""
    first = np.zeros(len(pool.items), dtype=bool)
    first[np.unique(pool.items, return_index=True)[1]] = True
    return first & ~batch.train.contains(
        batch.users[:, None], np.broadcast_to(pool.items, (len(batch.users), len(pool.items)))
    )
