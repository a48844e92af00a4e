"""A block of per-example SGD with several weighted negatives and any loss, compiled once per kind of rule.

``train_several`` selects, scores, evaluates and steps, example after example; given negatives are a rule as well. For
a custom loss, ``score_several`` and ``learn_slopes`` are the two halves around its evaluation in Python. BPR with one
negative has kernels of its own in ``sgd``.

Rules and losses see ``Factors`` whose inner products are the scores. With the cosine as score these are the normalised
embeddings, kept beside the embeddings themselves, ``Raw``, and renewed with each step; otherwise both are the same
arrays. In an ensemble each model is normalised by itself and divided by the square root of the ensemble size, so that
the inner product is the mean of the cosines.

The L2 penalty of a step is reg/2 · (|w|² + |h_i|² + Σ_k ω_k/Σω · |h_k|²): the negatives together weigh as much as one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesneg.kernels.numba.choices.base import Example
from bayesneg.kernels.numba.compiling import entry_point, kernel, lent, reordering_kernel
from bayesneg.kernels.numba.formulas import info
from bayesneg.kernels.numba.losses import evaluate_any
from bayesneg.kernels.numba.scoring import TILE, dot, update_tile
from bayesneg.kernels.numba.selections import select
from bayesneg.kernels.reference.formulas import SHORTEST_UNIT


class SeveralConfig(NamedTuple):
    """How a step of SGD is taken."""

    learning_rate: float
    regularization: float
    simultaneous: bool  # items move along the old user embedding, otherwise along the updated one
    ensemble_size: int  # models with separate gradients, concatenated in the embeddings
    cosine: bool  # whether scores are cosines


class Raw(NamedTuple):
    """The embeddings that steps change; under the inner product the same arrays as the factors."""

    users: np.ndarray  # (n_users, d) float32
    items: np.ndarray  # (n_items, d) float32


class DrawLogs(NamedTuple):
    """log q of the negatives, by item or by example; both are empty where the draw is uniform."""

    by_item: np.ndarray  # (n_items,) or (0,) float64
    by_example: np.ndarray  # (B, K) or (B, 0) float64


class Outcome(NamedTuple):
    """What a block of steps reports about its negatives."""

    items: np.ndarray  # (B, K) int32, −1 where there is none
    weights: np.ndarray  # (B, K) float64, 0 where there is none
    info: np.ndarray  # (B, K) float32, 1 − σ(x_i − x_k) before the step, 0 where the weight is 0
    gradient: np.ndarray  # (B, K) float32, |∂L/∂s_k|, in an ensemble the mean over its models


class Models(NamedTuple):
    """The models of an ensemble of E, as views of embeddings: what rules and losses see, and what steps change."""

    seen_users: np.ndarray  # (n_users, E, d / E) float32
    seen_items: np.ndarray  # (n_items, E, d / E) float32
    users: np.ndarray  # of the same shapes
    items: np.ndarray


class Scratch(NamedTuple):
    """Memory of one thread for one example."""

    x: np.ndarray  # float32, scores of the catalogue and of candidates
    scores: np.ndarray  # (K,) float64
    slopes: np.ndarray  # (K,) float64, ∂L/∂s_k
    log_q: np.ndarray  # (K,) or (0,) float64
    pull: np.ndarray  # (d / E,) float32, the gradient of the user's embedding
    along: np.ndarray  # (d / E,) float32, the user's embedding that items move along


@kernel
def models_of(factors, raw, n):  # type: ignore[no-untyped-def]
    size = factors.users.shape[1] // n
    return Models(
        factors.users.reshape((len(factors.users), n, size)),
        factors.items.reshape((len(factors.items), n, size)),
        raw.users.reshape((len(raw.users), n, size)),
        raw.items.reshape((len(raw.items), n, size)),
    )


@kernel
def scratch_for(models, candidates, negatives, logged):  # type: ignore[no-untyped-def]
    n_items, _, size = models.items.shape
    return Scratch(
        np.empty(n_items + candidates + TILE, dtype=np.float32),
        np.zeros(negatives, dtype=np.float64),
        np.zeros(negatives, dtype=np.float64),
        np.zeros(negatives if logged else 0, dtype=np.float64),
        np.empty(size, dtype=np.float32),
        np.empty(size, dtype=np.float32),
    )


# ---------------------------------------------------------------------------------------------------- entry points


@entry_point
def train_several(  # type: ignore[no-untyped-def]
    loss, rule, users, positives, draws, logs, thresholds, indptr, indices, factors, raw, config, outcome
):
    """Select and learn, example after example; ``thresholds`` (n_users,) is empty for a loss without one."""
    rule, draws, indices, factors = lent(rule), lent(draws), lent(indices), lent(factors)
    logs, outcome, models = lent(logs), lent(outcome), lent(models_of(factors, raw, config.ensemble_size))
    logged = len(logs.by_item) > 0 or logs.by_example.shape[1] > 0
    own = scratch_for(models, draws.candidates.shape[1], outcome.items.shape[1], logged)
    room = lent(own)
    for b in range(len(users)):
        user = users[b]
        items, weights = outcome.items[b], outcome.weights[b]
        example = Example(b, user, positives[b], indptr[user], indptr[user + 1], True)
        if draws.sizes[b] > 0:
            select(rule, draws, example, indices, factors, room.x, items, weights)
        else:
            items[:], weights[:] = -1, 0.0
        if logged:
            for k in range(len(items)):
                if weights[k] > 0.0:
                    room.log_q[k] = logs.by_item[items[k]] if len(logs.by_item) > 0 else logs.by_example[b, k]
        threshold = np.float64(thresholds[user]) if len(thresholds) > 0 else 0.0
        infos, gradients = outcome.info[b], outcome.gradient[b]
        step(loss, user, positives[b], items, weights, threshold, models, config, room, infos, gradients)
        renew_tiles(factors, positives[b], items, weights)
    own.x[0] = 0.0  # the memory that was lent is still in use until here


@entry_point
def score_several(users, positives, items, weights, factors, raw, config, positive, negatives, infos):  # type: ignore[no-untyped-def]
    """The scores by each model of the positives (E, B) and of the negatives (E, B, K) that count, and their info."""
    models = models_of(factors, raw, config.ensemble_size)
    for b in range(len(users)):
        for model in range(config.ensemble_size):
            positive[model, b] = score_model(
                users[b], positives[b], items[b], weights[b], model, models, negatives[model, b]
            )
        for k in range(items.shape[1]):
            infos[b, k] = info(positive[:, b].mean(), negatives[:, b, k].mean()) if weights[b, k] > 0.0 else 0.0


@entry_point
def learn_slopes(users, positives, items, weights, by_positive, by_negatives, factors, raw, config):  # type: ignore[no-untyped-def]
    """The steps of a block along given derivatives of the loss: (E, B) by positives and (E, B, K) by negatives."""
    models = models_of(factors, raw, config.ensemble_size)
    room = scratch_for(models, 0, items.shape[1], False)
    for b in range(len(users)):
        total = weights[b].sum()
        for model in range(config.ensemble_size):
            if total > 0.0:
                slopes = by_negatives[model, b]
                move(
                    users[b], positives[b], items[b], weights[b], total, by_positive[model, b], slopes, model, models,
                    config, room,
                )  # fmt: skip
        renew_tiles(factors, positives[b], items[b], weights[b])


# ---------------------------------------------------------------------------------------------------- one example


@kernel
def step(loss, user, positive, items, weights, threshold, models, config, room, infos, gradients):  # type: ignore[no-untyped-def]
    """One descent step of every model of the ensemble on the loss of its own scores."""
    infos[:], gradients[:] = np.float32(0.0), np.float32(0.0)
    total = 0.0
    for k in range(len(items)):
        total += weights[k]
    if not total > 0.0:
        return
    x_positive, part = 0.0, np.float32(1.0 / config.ensemble_size)
    for model in range(config.ensemble_size):
        s = score_model(user, positive, items, weights, model, models, room.scores)
        _, by_positive = evaluate_any(loss, s, room.scores, weights, room.log_q, threshold, room.slopes)
        x_positive += s * part
        for k in range(len(items)):
            infos[k] += np.float32(room.scores[k]) * part
            gradients[k] += np.float32(np.abs(room.slopes[k])) * part
        move(user, positive, items, weights, total, by_positive, room.slopes, model, models, config, room)
    for k in range(len(items)):
        infos[k] = np.float32(info(x_positive, infos[k])) if weights[k] > 0.0 else np.float32(0.0)


@kernel
def score_model(user, positive, items, weights, model, models, scores):  # type: ignore[no-untyped-def]
    """Write the scores (K,) of the negatives by one model, 0 for those that do not count; the positive's score."""
    w, n_models = models.seen_users[user, model], models.users.shape[1]
    s = 0.0
    for k in range(-1, len(items)):  # the positive first
        if k < 0 or weights[k] > 0.0:
            item = positive if k < 0 else items[k]
            score = n_models * np.float64(dot(w, models.seen_items[item, model]))
            if k < 0:
                s = score
            else:
                scores[k] = score
        else:
            scores[k] = 0.0
    return s


@kernel
def move(user, positive, items, weights, total, by_positive, slopes, model, models, config, room):  # type: ignore[no-untyped-def]
    """Move the user, the positive and every negative that counts, of one model, along the derivatives of the loss."""
    w, pull, along = models.seen_users[user, model], room.pull, room.along
    pull[:] = np.float32(0.0)
    for k in range(-1, len(items)):  # the positive first
        if k < 0 or weights[k] > 0.0:
            item, slope = (positive, by_positive) if k < 0 else (items[k], slopes[k])
            add(pull, models.seen_items[item, model], np.float32(slope))
    along[:] = w
    decay = np.float32(config.regularization)
    descend(models.users[user, model], w, pull, np.float32(1.0), decay, config)
    if not config.simultaneous:
        along[:] = w
    for k in range(-1, len(items)):
        if k < 0 or weights[k] > 0.0:
            item, slope, share = (positive, by_positive, 1.0) if k < 0 else (items[k], slopes[k], weights[k] / total)
            h, seen = models.items[item, model], models.seen_items[item, model]
            descend(h, seen, along, np.float32(slope), np.float32(share) * decay, config)


@reordering_kernel
def add(pull: np.ndarray, h: np.ndarray, slope: np.float32) -> None:
    for f in range(len(h)):
        pull[f] += slope * h[f]


@reordering_kernel
def descend(v, seen, along, slope, decay, config):  # type: ignore[no-untyped-def]
    """One step of the embedding ``v`` against slope · along and its penalty.

    Under the cosine ``seen`` is v normalised and v moves across it, by (along − (along · seen) seen) / |v|.
    """
    rate = np.float32(config.learning_rate)
    if not config.cosine:
        for f in range(len(v)):
            v[f] -= rate * (slope * along[f] + decay * v[f])
        return
    models = np.float32(config.ensemble_size)
    inner = models * dot(along, seen)
    slope /= np.sqrt(models) * max(np.sqrt(dot(v, v)), np.float32(SHORTEST_UNIT))
    for f in range(len(v)):
        v[f] -= rate * (slope * (along[f] - inner * seen[f]) + decay * v[f])
    scale = np.float32(1.0) / (np.sqrt(models) * max(np.sqrt(dot(v, v)), np.float32(SHORTEST_UNIT)))
    for f in range(len(v)):
        seen[f] = v[f] * scale


@kernel
def renew_tiles(factors, positive, items, weights):  # type: ignore[no-untyped-def]
    """Copy the items that moved into their tiles, where a rule sweeps them."""
    if len(factors.tiled.values) > 0:
        update_tile(factors.tiled, positive, factors.items[positive])
        for k in range(len(items)):
            if weights[k] > 0.0:
                update_tile(factors.tiled, items[k], factors.items[items[k]])


def normalised(vectors: np.ndarray, ensemble_size: int = 1) -> np.ndarray:
    """The embeddings (n, d) whose inner products are the cosines of ``vectors``, in an ensemble their mean.

    >>> normalised(np.array([[3.0, 4.0]], dtype=np.float32))
    array([[0.6, 0.8]], dtype=float32)
    """
    parts = vectors.reshape(len(vectors), ensemble_size, -1)
    lengths = np.maximum(np.sqrt((parts * parts).sum(axis=2, keepdims=True)), np.float32(SHORTEST_UNIT))
    return (parts / (lengths * np.float32(np.sqrt(ensemble_size)))).reshape(vectors.shape)
