"""Validation of what custom samplers and custom losses return, and of what is trained together."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from bayesneg.errors import DivergedError, InputError
from bayesneg.interfaces import NO_NEGATIVE, Batch, Loss, Model, Negatives, NegativeSampler
from bayesneg.interfaces.loss import no_minimum, not_finite
from bayesneg.kernels.reference.losses import LossValues, Scores

NUMBERS = "fiub"  # kinds of NumPy types


def validate_negatives(negatives: np.ndarray, batch: Batch) -> np.ndarray:
    """The negatives (B,), or an error unless each is in the catalogue and unobserved by its user."""
    items = as_array("the answer of sample", negatives)
    if items.shape != batch.users.shape or not np.issubdtype(items.dtype, np.integer):
        raise InputError(
            f"sample must return {len(batch.users)} item numbers, one for each pair of the batch, "
            f"got {items.dtype} of shape {items.shape}"
        )
    if ((items < NO_NEGATIVE) | (items >= batch.train.n_items)).any():
        raise InputError(f"sample must return item numbers from 0 to {batch.train.n_items - 1}, or -1 to skip a pair")
    observed = (items >= 0) & batch.train.contains(batch.users, np.maximum(items, 0))
    if observed.any():
        first = int(np.flatnonzero(observed)[0])
        raise InputError(
            f"sample returned item {items[first]} for user {batch.users[first]}, a training item of that user; "
            "a negative must be an unobserved item"
        )
    return items


def as_array(name: str, values: Any) -> np.ndarray:
    """Values as an array; lists, and tensors in host memory, are taken as well."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # rows of several lengths, a GPU, a gradient
        raise InputError(
            f"{name} must be an array, or lists of one length, in host memory, got {type(values).__name__}: {error}"
        ) from error


def single(answer: np.ndarray | Negatives, sampler: NegativeSampler) -> np.ndarray:
    """The answer of a sampler that declares one negative per pair; an error if it is more than that."""
    if isinstance(answer, Negatives):
        raise InputError(
            f"{type(sampler).__name__}.sample returned Negatives, and gives_weights is False; let the property "
            "gives_weights of the sampler return True"
        )
    return answer


def validate_weighted(answer: np.ndarray | Negatives, batch: Batch) -> Negatives:
    """What a custom sampler returned, with weights; an error unless items, weights and log q can be used.

    Args:
        answer: One item (B,) for each pair, or :class:`Negatives`.
        batch: The training pairs.

    Returns:
        Items (B, K) or (N,), weights (B, K) or (B, N) float32, 0 for training items of the user.
    """
    if not isinstance(answer, Negatives):
        items = validate_negatives(answer, batch)[:, None]
        return Negatives(items, (items >= 0).astype(np.float32))
    items, n, n_items = as_array("Negatives.items", answer.items), len(batch.users), batch.train.n_items
    if not np.issubdtype(items.dtype, np.integer) or not (items.ndim == 1 or (items.ndim == 2 and len(items) == n)):
        raise InputError(
            f"Negatives.items must be item numbers of shape ({n}, K), or (N,) for a shared pool, got {items.dtype} of "
            f"shape {items.shape}"
        )
    if items.shape[-1] == 0:
        raise InputError(
            f"Negatives.items must have at least one negative, got the shape {items.shape}; return -1 for a pair "
            "without one"
        )
    least = 0 if items.ndim == 1 else NO_NEGATIVE
    if ((items < least) | (items >= n_items)).any():
        wrong = items[(items < least) | (items >= n_items)].flat[0]
        raise InputError(f"Negatives.items must be item numbers from 0 to {n_items - 1}, got {wrong}")
    shape = (n, items.shape[-1])
    given = np.ones(shape, dtype=np.float32) if answer.weights is None else answer.weights
    weights = as_array("Negatives.weights", given)
    if weights.shape != shape:
        raise InputError(f"Negatives.weights must have the shape {shape}, got {weights.shape}")
    if weights.dtype.kind not in NUMBERS:
        raise InputError(f"Negatives.weights must be numbers, got {weights.dtype}; None stands for 1 everywhere")
    usable = np.isfinite(weights) & (weights >= 0)
    if not usable.all():
        raise InputError(
            f"Negatives.weights must be finite and at least 0, got {float(weights[~usable][0]):g}; a weight of 0 "
            "leaves a negative out"
        )
    log_q = None if answer.log_q is None else as_array("Negatives.log_q", answer.log_q)
    if log_q is not None and (
        log_q.shape != items.shape or log_q.dtype.kind not in NUMBERS or not np.isfinite(log_q[items >= 0]).all()
    ):
        raise InputError(f"Negatives.log_q must be finite numbers of the shape of items, {items.shape}")
    log_q = None if log_q is None else log_q.astype(np.float64)
    wide = np.broadcast_to(items, shape)
    observed = batch.train.contains(np.broadcast_to(batch.users[:, None], shape), np.maximum(wide, 0))
    counts = (wide >= 0) & ~observed
    return Negatives(items, np.where(counts, weights, 0).astype(np.float32), log_q, answer.vectors)


@runtime_checkable
class ScoresBySimilarity(Protocol):
    """A model whose scores are inner products or cosines of embeddings."""

    @property
    def similarity(self) -> str:
        """``"inner"`` or ``"cosine"``."""
        ...


def check_several(model: Model, sampler: NegativeSampler, loss: Loss) -> None:
    """An error for one negative and inner products with a loss that is linear in them: training would diverge."""
    unbounded = isinstance(model, ScoresBySimilarity) and model.similarity == "inner"
    if loss.needs_several and unbounded and not sampler.gives_several:
        raise InputError(no_minimum(loss, f"{type(sampler).__name__} gives one"))


def evaluate_custom(loss: Loss, scores: Scores) -> LossValues:
    """What a custom loss in NumPy returns, as float64; an error if it is anything but three finite arrays."""
    name, answer = f"{type(loss).__name__}.evaluate", loss.evaluate(scores)
    if not isinstance(answer, tuple) or len(answer) != len(LossValues._fields):
        got = f"{len(answer)} parts" if isinstance(answer, tuple) else type(answer).__name__
        raise InputError(
            f"{name} must return LossValues(value, by_positive, by_negatives), the loss and its derivatives by the "
            f"scores, got {got}"
        )
    found = []
    shapes = [scores.positive.shape, scores.positive.shape, scores.negatives.shape]
    for field, given, shape in zip(LossValues._fields, answer, shapes, strict=True):
        try:
            part = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name}: {field} must be an array of numbers, got {type(given).__name__}") from None
        if part.shape != shape:
            raise InputError(f"{name}: {field} must have the shape {shape}, got {part.shape}")
        if not np.isfinite(part).all() and np.isfinite(scores.positive).all() and np.isfinite(scores.negatives).all():
            raise DivergedError(not_finite(name, field))
        found.append(part)
    return LossValues(*found)
