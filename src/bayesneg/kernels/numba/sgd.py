"""A block of per-example SGD with the choice of the negative inside, compiled once per kind of rule.

``train_block``, ``learn_given`` and ``choose_block`` are the entry points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesneg.kernels.numba.choices.base import Example, choose
from bayesneg.kernels.numba.compiling import entry_point, kernel, lent, reordering_kernel
from bayesneg.kernels.numba.scoring import TILE, update_tile


class SGDConfig(NamedTuple):
    """How a step of SGD is taken."""

    learning_rate: float
    regularization: float
    simultaneous: bool  # items move along the old user embedding, otherwise along the updated one
    ensemble_size: int  # models with separate gradients, concatenated in the embeddings


@kernel
def step(w: np.ndarray, h_i: np.ndarray, h_j: np.ndarray, config: SGDConfig) -> np.float32:
    """One step of every model of the ensemble; returns 1 − σ(x_i − x_j) of their mean score before the step."""
    size = len(w) // config.ensemble_size
    x = np.float32(0.0)
    for start in range(0, len(w), size):
        own = slice(start, start + size)
        x += model_step(w[own], h_i[own], h_j[own], config)
    return np.float32(1.0 / (1.0 + np.exp(np.float64(x))))


@reordering_kernel
def model_step(w: np.ndarray, h_i: np.ndarray, h_j: np.ndarray, config: SGDConfig) -> np.float32:
    """One ascent step on ln σ(E · (x_i − x_j)) − reg/2 · |·|²; E the ensemble size; returns x_i − x_j before it."""
    x = np.float32(0.0)
    for f in range(len(w)):
        x += w[f] * (h_i[f] - h_j[f])
    gradient = np.float32(1.0 / (1.0 + np.exp(config.ensemble_size * np.float64(x))))
    rate, decay = np.float32(config.learning_rate), np.float32(config.regularization)
    for f in range(len(w)):
        old, hi, hj = w[f], h_i[f], h_j[f]
        new = old + rate * (gradient * (hi - hj) - decay * old)
        along = old if config.simultaneous else new
        w[f] = new
        h_i[f] = hi + rate * (gradient * along - decay * hi)
        h_j[f] = hj - rate * (gradient * along + decay * hj)
    return x


@entry_point
def train_block(  # type: ignore[no-untyped-def]
    rule, users, positives, draws, indptr, indices, factors, config, negatives, infos
):
    """Choose and learn, example after example; the choices are written to ``negatives`` and ``infos`` (B,)."""
    rule, draws, indices, factors = lent(rule), lent(draws), lent(indices), lent(factors)
    sweeping = len(factors.tiled.values) > 0
    x = np.empty(len(factors.items) + draws.candidates.shape[1] + TILE, dtype=np.float32)
    for b in range(len(users)):
        user, i = users[b], positives[b]
        negatives[b], infos[b] = -1, 0.0
        if draws.sizes[b] == 0:
            continue
        example = Example(b, user, i, indptr[user], indptr[user + 1], True)
        j = choose(rule, draws, example, indices, factors, x)
        if j < 0:
            continue
        negatives[b] = j
        infos[b] = step(factors.users[user], factors.items[i], factors.items[j], config)
        if sweeping:
            update_tile(factors.tiled, i, factors.items[i])
            update_tile(factors.tiled, j, factors.items[j])


@entry_point
def learn_given(users, positives, negatives, factors, config, infos):  # type: ignore[no-untyped-def]
    """The same steps for given negatives (B,); −1 is skipped."""
    factors = lent(factors)
    for b in range(len(users)):
        infos[b] = 0.0
        if negatives[b] >= 0:
            w, h_i, h_j = factors.users[users[b]], factors.items[positives[b]], factors.items[negatives[b]]
            infos[b] = step(w, h_i, h_j, config)


@entry_point
def choose_block(rule, users, positives, draws, firsts, indptr, indices, factors, negatives):  # type: ignore[no-untyped-def]
    """The choices of a whole batch on one state of the model, for learners that take their steps in torch.

    ``firsts`` are the examples that refresh their user's memory after all choices; else empty.
    """
    rule, draws, indices, factors = lent(rule), lent(draws), lent(indices), lent(factors)
    x = np.empty(len(factors.items) + draws.candidates.shape[1] + TILE, dtype=np.float32)
    for b in range(len(users)):
        negatives[b] = -1
        if draws.sizes[b] > 0:
            start, stop = indptr[users[b]], indptr[users[b] + 1]
            example = Example(b, users[b], positives[b], start, stop, False)
            negatives[b] = choose(rule, draws, example, indices, factors, x)
    for b in firsts:
        if draws.sizes[b] > 0:
            start, stop = indptr[users[b]], indptr[users[b] + 1]
            choose(rule, draws, Example(b, users[b], positives[b], start, stop, True), indices, factors, x)
