"""Relevant and irrelevant factors of items, the choice by both and the training of the gates: the rule of DENS.

An executable specification in NumPy, one line per equation. Everything is computed in the precision of the gates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesneg.errors import InputError
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.selections import Several

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch

DECAY_MEAN, DECAY_SQUARE, EPSILON = 0.9, 0.999, 1e-8  # of Adam


class Disentangled(NamedTuple):
    """The relevant factors of positives and negatives; the irrelevant ones are the rest of the embeddings."""

    gate_positive: Any  # (B, d) in (0, 1)
    gate_negative: Any  # (B, K, d)
    positive: Any  # (B, d)
    negative: Any  # (B, K, d)


class FactorAware(NamedTuple):
    """The candidates of highest merit, and a step of Adam on the gates: DENS."""

    balance: float  # β_t
    negatives: int  # K
    learning_rate: float  # of Adam
    gates: np.ndarray  # (4, d, d) the matrices W_1 … W_4; changed in place, as the next two are
    moments: np.ndarray  # (2, 4, d, d) Adam's running means of gradients and of their squares
    steps: np.ndarray  # (1,) int64, steps of Adam so far

    def select(self, draws: Draws, batch: Batch) -> Several:
        """The gates choose as they were before the batch; then one step is taken on the negatives that they chose."""
        vectors, kind = batch.scorer.embeddings(), self.gates.dtype
        check_width(self.gates, vectors.items)
        items, n = np.maximum(draws.candidates, 0), np.arange(len(batch.users))[:, None]
        users, positives = vectors.users[batch.users].astype(kind), vectors.items[batch.positives].astype(kind)
        candidates = vectors.items[items].astype(kind)  # (B, m, d)
        with np.errstate(over="ignore", invalid="ignore"):  # a diverging run raises a separate error
            merits = merit(self.gates, users, positives, candidates, self.balance)
            merits[np.arange(items.shape[1]) >= draws.sizes[:, None]] = -np.inf
            order = np.argsort(-merits, axis=1, kind="stable")[:, : self.negatives]
            there = np.arange(order.shape[1]) < draws.sizes[:, None]
            _, gradient = contrast(self.gates, users, positives, candidates[n, order], there)
            adam_step(self.gates, self.moments, self.steps, gradient, self.learning_rate)
        return Several(np.where(there, items[n, order], -1).astype(np.int32), there.astype(np.float64))


def disentangle(gates: np.ndarray, users: np.ndarray, positives: np.ndarray, negatives: np.ndarray) -> Disentangled:
    """g_i = σ(W_1 h_i + W_2 w_u), then g_l = σ(W_3 h_l + W_4 (g_i ∘ h_i)), each times its item.

    Args:
        gates: The matrices (4, d, d).
        users: The users' embeddings (B, d).
        positives: The positives' embeddings (B, d).
        negatives: The embeddings (B, K, d) of negatives or candidates.

    Returns:
        The gates and the relevant factors.
    """
    w1, w2, w3, w4 = gates
    gate_positive = sigmoid(positives @ w1.T + users @ w2.T)
    relevant = gate_positive * positives
    gate_negative = sigmoid(negatives @ w3.T + (relevant @ w4.T)[:, None, :])
    return Disentangled(gate_positive, gate_negative, relevant, gate_negative * negatives)


def merit(
    gates: np.ndarray, users: np.ndarray, positives: np.ndarray, candidates: np.ndarray, balance: float
) -> np.ndarray:
    """(1 − β)·x_ul + β·(h_i^irr · h_l^irr − h_i^rel · h_l^rel) of candidates (B, m, d), as (B, m)."""
    found = disentangle(gates, users, positives, candidates)
    relevant = (found.positive[:, None, :] * found.negative).sum(axis=2)
    irrelevant = ((positives - found.positive)[:, None, :] * (candidates - found.negative)).sum(axis=2)
    hard = (users[:, None, :] * candidates).sum(axis=2)
    return (1.0 - balance) * hard + balance * (irrelevant - relevant)


def contrast(
    gates: np.ndarray, users: np.ndarray, positives: np.ndarray, negatives: np.ndarray, there: np.ndarray
) -> tuple[float, np.ndarray]:
    """The four pairwise tasks: their mean loss, and its gradient by the gates.

    With the scores a = w_u · h_i^rel, b = w_u · h_i^irr, c = w_u · h_l^rel, e = w_u · h_l^irr, the loss of a pair of
    items is ¼·(softplus(b − a) + softplus(c − e) + softplus(c − a) + softplus(b − e)).

    Args:
        gates: The matrices (4, d, d).
        users: The users' embeddings (B, d).
        positives: The positives' embeddings (B, d).
        negatives: The negatives' embeddings (B, K, d).
        there: Which negatives count (B, K); with none the loss is 0.

    Returns:
        The loss, and the gradient (4, d, d).
    """
    w4 = gates[3]
    found = disentangle(gates, users, positives, negatives)
    at_positive, at_negative = users * positives, users[:, None, :] * negatives
    a = (at_positive * found.gate_positive).sum(axis=1)[:, None]  # (B, 1)
    b = at_positive.sum(axis=1)[:, None] - a
    c = (at_negative * found.gate_negative).sum(axis=2)  # (B, K)
    e = at_negative.sum(axis=2) - c
    share = there.astype(gates.dtype) / (4 * max(int(there.sum()), 1))
    value = sum(float((share * np.logaddexp(0.0, gap)).sum()) for gap in (b - a, c - e, c - a, b - e))
    s1, s2, s3, s4 = (share * sigmoid(gap) for gap in (b - a, c - e, c - a, b - e))
    # p_irr = p − p_rel, so that a gate moves both of its scores, in opposite directions
    by_relevant = -(2 * s1 + s3 + s4).sum(axis=1, keepdims=True) * users  # (B, d)
    at_gate = (2 * s2 + s3 + s4)[:, :, None] * at_negative  # (B, K, d)
    inside_negative = at_gate * found.gate_negative * (1 - found.gate_negative)
    summed = inside_negative.sum(axis=1)  # (B, d)
    by_relevant = by_relevant + summed @ w4  # through the negatives' gates
    inside_positive = by_relevant * positives * found.gate_positive * (1 - found.gate_positive)
    d = users.shape[1]
    flat, flat_items = inside_negative.reshape(-1, d), negatives.reshape(-1, d)
    gradient = (
        inside_positive.T @ positives,
        inside_positive.T @ users,
        flat.T @ flat_items,
        summed.T @ found.positive,
    )
    return value, np.stack(gradient)


def adam_step(
    gates: np.ndarray, moments: np.ndarray, steps: np.ndarray, gradient: np.ndarray, learning_rate: float
) -> None:
    """A step of Adam, in place."""
    steps += 1
    t = int(steps[0])
    moments[0] += (1.0 - DECAY_MEAN) * (gradient - moments[0])
    moments[1] += (1.0 - DECAY_SQUARE) * (gradient * gradient - moments[1])
    mean, square = moments[0] / (1.0 - DECAY_MEAN**t), moments[1] / (1.0 - DECAY_SQUARE**t)
    gates -= learning_rate * mean / (np.sqrt(square) + EPSILON)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(−x)), in the precision of x and without overflow."""
    half = np.asarray(0.5, dtype=x.dtype)
    return half * (1 + np.tanh(half * x))


def check_width(gates: Any, items: Any) -> None:
    """The gates fit the embeddings."""
    if gates.shape[1] != items.shape[1]:
        raise InputError(
            f"the gates of DENS were made for embeddings of width {gates.shape[1]}, and these have {items.shape[1]}; "
            "make a sampler for each model"
        )
