"""The functions of ``kernels/reference/disentangled.py`` in torch, on any device; nothing waits for a GPU."""

from __future__ import annotations

import torch
from torch import Tensor

from bayesneg.kernels.reference.disentangled import DECAY_MEAN, DECAY_SQUARE, EPSILON, Disentangled

NUMBERS = 1 << 25  # of the candidates' embeddings held at once


def disentangle(gates: Tensor, users: Tensor, positives: Tensor, negatives: Tensor) -> Disentangled:
    """The gates and the relevant factors of positives (B, d) and negatives (B, K, d)."""
    w1, w2, w3, w4 = gates
    gate_positive = torch.sigmoid(positives @ w1.T + users @ w2.T)
    relevant = gate_positive * positives
    gate_negative = torch.sigmoid(negatives @ w3.T + (relevant @ w4.T)[:, None, :])
    return Disentangled(gate_positive, gate_negative, relevant, gate_negative * negatives)


def merit(gates: Tensor, users: Tensor, positives: Tensor, table: Tensor, candidates: Tensor, balance: float) -> Tensor:
    """The merit (B, m) of candidates (B, m), whose embeddings are read from the table (n_items, d).

    h_i^irr · h_l^irr − h_i^rel · h_l^rel = Σ h_l ∘ (h_i^irr − g_l ∘ h_i), so that one product of the width of the
    candidates' embeddings serves the whole merit.
    """
    w1, w2, w3, w4 = gates
    relevant = torch.sigmoid(positives @ w1.T + users @ w2.T) * positives
    along = (1.0 - balance) * users + balance * (positives - relevant)
    shift, across = relevant @ w4.T, balance * positives
    at_once = max(1, NUMBERS // (candidates.shape[1] * table.shape[1]))  # examples
    found = []
    for first in range(0, len(candidates), at_once):
        part = slice(first, first + at_once)
        rows = table.index_select(0, candidates[part].flatten()).view(*candidates[part].shape, -1).to(gates.dtype)
        gate = torch.sigmoid(rows @ w3.T + shift[part, None, :])
        found.append((rows * (along[part, None, :] - gate * across[part, None, :])).sum(dim=2))
    return torch.cat(found)


def contrast_gradient(gates: Tensor, users: Tensor, positives: Tensor, negatives: Tensor, there: Tensor) -> Tensor:
    """The gradient (4, d, d) of the four pairwise tasks by the gates; ``there`` (B, K) says which negatives count."""
    found = disentangle(gates, users, positives, negatives)
    at_positive, at_negative = users * positives, users[:, None, :] * negatives
    a = (at_positive * found.gate_positive).sum(dim=1, keepdim=True)  # (B, 1)
    b = at_positive.sum(dim=1, keepdim=True) - a
    c = (at_negative * found.gate_negative).sum(dim=2)  # (B, K)
    e = at_negative.sum(dim=2) - c
    share = there.to(gates.dtype) / (4 * there.sum().clamp(min=1))
    s1, s2, s3, s4 = (share * torch.sigmoid(gap) for gap in (b - a, c - e, c - a, b - e))
    at_gate = (2 * s2 + s3 + s4)[:, :, None] * at_negative  # (B, K, d)
    inside_negative = at_gate * found.gate_negative * (1 - found.gate_negative)
    summed = inside_negative.sum(dim=1)  # (B, d)
    by_relevant = summed @ gates[3] - (2 * s1 + s3 + s4).sum(dim=1, keepdim=True) * users
    inside_positive = by_relevant * positives * found.gate_positive * (1 - found.gate_positive)
    of_negative = inside_negative.flatten(0, 1).T @ negatives.flatten(0, 1)
    return torch.stack(
        (inside_positive.T @ positives, inside_positive.T @ users, of_negative, summed.T @ found.positive)
    )


def adam_step(gates: Tensor, moments: Tensor, steps: Tensor, gradient: Tensor, learning_rate: float) -> None:
    """A step of Adam, in place; ``steps`` (1,) counts them on the device."""
    steps += 1
    t = steps.double()
    moments[0].lerp_(gradient, 1.0 - DECAY_MEAN)
    moments[1].lerp_(gradient * gradient, 1.0 - DECAY_SQUARE)
    mean = moments[0] / (1.0 - DECAY_MEAN**t).to(gates.dtype)
    square = moments[1] / (1.0 - DECAY_SQUARE**t).to(gates.dtype)
    gates -= learning_rate * mean / (square.sqrt() + EPSILON)
