"""Weights of a pool of items that all examples of a batch share, with their executable specification in NumPy.

An item of the pool does not count for a user who has it in the training data, nor if it is in the pool already. Where
items were drawn with unequal probabilities π, ranks in the pool are no ranks in the user's list: each item then stands
for 1/π items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesneg.kernels.reference.formulas import LikelihoodForm, base_cdf, counted_unbias, mean_probability, unbias
from bayesneg.kernels.reference.selections import weight_of

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch


class SharedPool(NamedTuple):
    """The items that all examples of a batch share.

    Args:
        items: The items of the pool, (N,).
        log_q: Log of the probability that each was drawn with, (N,), as in :class:`~bayesneg.interfaces.Negatives`;
            None where all are equal.
        corrects: Whether a loss is corrected by ``log_q``; F always is.
    """

    items: Any
    log_q: Any = None
    corrects: bool = True


# ----------------------------------------------------------------------------------------------- the prior of a pool


class PerItem(NamedTuple):
    """One probability of a false negative per item."""

    probabilities: Any  # (n_items,)

    def of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.probabilities[items], (len(users), len(items)))


class PerGroup(NamedTuple):
    """One probability of a false negative per group of users and item."""

    groups: Any  # (n_users,)
    table: Any  # (n_groups, n_items)

    def of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return self.table[self.groups[users][:, None], items[None, :]]


class SparseRows(NamedTuple):
    """A few items of each user with a probability of their own; all other pairs have a base rate."""

    base: Any  # (n_users,), or the form of all other pairs
    indptr: Any  # (n_users + 1,)
    items: Any  # (n,) ascending in each row
    values: Any  # (n,)

    def of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        base = self.base[users][:, None] if isinstance(self.base, np.ndarray) else self.base.of(users, items)
        found = np.array(np.broadcast_to(base, (len(users), len(items))), dtype=np.float64)
        for b, user in enumerate(users):
            row = slice(self.indptr[user], self.indptr[user + 1])
            likelier = dict(zip(self.items[row].tolist(), self.values[row].tolist(), strict=True))
            found[b] = [likelier.get(item, p) for item, p in zip(items.tolist(), found[b].tolist(), strict=True)]
        return found


class MeanOfForms(NamedTuple):
    """The weighted mean of several forms, of their log odds or of their probabilities."""

    parts: tuple[Any, ...]
    weights: tuple[float, ...]  # sum to 1
    logit: bool

    def of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return mean_probability([part.of(users, items) for part in self.parts], self.weights, self.logit)


class Computed(NamedTuple):
    """Probabilities that a function computes for users (B, 1) and items (1, N)."""

    function: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return self.function(users[:, None], items[None, :])


PriorForm = PerItem | PerGroup | SparseRows | MeanOfForms | Computed


def mapped(form: PriorForm, function: Callable[[Any], Any]) -> PriorForm | None:
    """The form of ``function`` of the probabilities, one by one; None where it has to be computed."""
    if isinstance(form, PerItem):
        return PerItem(function(form.probabilities))
    if isinstance(form, PerGroup):
        return PerGroup(form.groups, function(form.table))
    if not isinstance(form, SparseRows):
        return None
    base = function(form.base) if isinstance(form.base, np.ndarray) else mapped(form.base, function)
    return None if base is None else form._replace(base=base, values=function(form.values))


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
