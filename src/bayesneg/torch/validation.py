"""Validation of what a torch loop passes: a sentence that names the argument and the way out.

Shapes, types and devices are always checked. Values are checked on the CPU only, and not in a compiled graph: on a GPU
that would wait for the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array, issparse
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Negatives


def readable(values: Tensor) -> bool:
    """True where a check of values copies nothing from a device and is not part of a compiled graph."""
    return values.device.type == "cpu" and not torch.compiler.is_compiling()


def same_device(**tensors: Tensor | None) -> None:
    """All that is not None are tensors, on one device."""
    for name, value in tensors.items():
        if value is not None and not isinstance(value, Tensor):
            raise InputError(f"{name} must be a tensor, got {type(value).__name__}; torch.as_tensor makes one")
    devices = {name: tensor.device for name, tensor in tensors.items() if tensor is not None}
    if len(set(devices.values())) > 1:
        listed = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise InputError(f"tensors must be on one device, got {listed}; move them with .to(device)")


def check_numbers(name: str, numbers: Tensor, least: int, n: int) -> None:
    """``numbers`` (B,) are whole numbers below ``n``."""
    if numbers.ndim != 1 or numbers.is_floating_point() or numbers.dtype == torch.bool:
        raise InputError(
            f"{name} must be a tensor (B,) of whole numbers, got {numbers.dtype} of shape {tuple(numbers.shape)}"
        )
    if not readable(numbers) or numbers.numel() == 0:
        return
    lowest, highest = torch.aminmax(numbers)
    if lowest.item() < least or highest.item() >= n:
        wrong = int(numbers[(numbers < least) | (numbers >= n)][0])
        raise InputError(
            f"{name} must be dense numbers from {least} to {n - 1}, got {wrong}; pass the numbers that the "
            "interactions have for raw ids"
        )


def check_lengths(users: Tensor, positives: Tensor) -> None:
    """There is one positive for each user, and at least one."""
    if users.shape != positives.shape:
        raise InputError(f"users and positives must be of one length, got {len(users)} and {len(positives)}")
    if len(users) == 0:
        raise InputError("users and positives are empty; skip a batch without examples")


def check_table(name: str, vectors: Tensor, n: int) -> None:
    """``vectors`` are embeddings (n, d)."""
    if not isinstance(vectors, Tensor) or vectors.ndim != 2 or len(vectors) != n or not vectors.is_floating_point():
        got = tuple(vectors.shape) if isinstance(vectors, Tensor) else type(vectors).__name__
        raise InputError(f"{name} must be the embeddings ({n}, d) of all of them, got {got}")


def check_loss_input(
    users: Tensor, positives: Tensor, items: Tensor | None, negatives: Negatives, threshold: Tensor | None = None
) -> None:
    """What a loss function is given can be scored and differentiated."""
    check_kind(negatives)
    same_device(users=users, positives=positives, items=items, threshold=threshold, **parts_of(negatives))
    if users.ndim != 2 or users.shape != positives.shape or not users.is_floating_point():
        raise InputError(
            f"users and positives must be embeddings (B, d), got {tuple(users.shape)} and {tuple(positives.shape)}"
        )
    n, d = users.shape
    if items is None and negatives.vectors is None:
        raise InputError("items must be the embeddings (n_items, d) of all items, unless negatives are vectors")
    if items is not None and (items.ndim != 2 or items.shape[1] != d):
        raise InputError(f"items must be the embeddings (n_items, {d}) of all items, got {tuple(items.shape)}")
    if torch.is_grad_enabled() and not any(
        part is not None and part.requires_grad for part in (users, positives, items, negatives.vectors)
    ):
        raise InputError(
            "neither users, positives nor items need a gradient, so that nothing would be learned; pass embeddings "
            "that depend on the model's parameters, without detach()"
        )
    if threshold is not None and threshold.shape != (n,):
        raise InputError(
            f"threshold must have the shape ({n},), one score for each example, got {tuple(threshold.shape)}; index "
            "the thresholds of all users by the users of the batch"
        )
    if threshold is not None and readable(threshold) and not bool(threshold.isfinite().all()):
        raise InputError("threshold must be finite numbers, got NaN or infinity; compute it from finite scores")
    check_negatives(negatives, n, d, None if items is None else len(items))


def check_kind(negatives: Any) -> None:
    """They are :class:`Negatives`."""
    if not isinstance(negatives, Negatives):
        raise InputError(
            f"negatives must be Negatives, as a Sampler returns them, got {type(negatives).__name__}; "
            "Negatives(items) makes them from item numbers (B, K)"
        )


def parts_of(negatives: Negatives) -> dict[str, Any]:
    """The parts of the negatives by the names that errors have for them."""
    return {f"negatives.{name}": part for name, part in negatives._asdict().items()}


def check_negatives(negatives: Negatives, n: int, d: int, n_items: int | None) -> None:
    """The parts, which are tensors, fit ``n`` examples with embeddings of ``d`` numbers.

    The numbers of items are below ``n_items``, unless it is None.
    """
    items, weights, log_q, vectors = negatives
    shape, kind = tuple(items.shape), items.dtype
    if items.ndim not in (1, 2) or items.is_floating_point() or kind == torch.bool:
        raise InputError(
            f"negatives.items must be item numbers of shape ({n}, K), or (N,) for a shared pool, got {kind} of shape "
            f"{shape}"
        )
    if items.ndim == 2 and len(items) != n:
        raise InputError(f"negatives.items must have a row for each of the {n} examples, got {len(items)}")
    k = shape[-1]
    if k == 0:
        raise InputError(f"negatives.items must have at least one column, got the shape {shape}; skip such a batch")
    if weights is not None and weights.shape != (n, k):
        raise InputError(f"negatives.weights must have the shape {(n, k)}, got {tuple(weights.shape)}")
    if log_q is not None and log_q.shape != items.shape:
        raise InputError(f"negatives.log_q must have the shape of negatives.items, {shape}, got {tuple(log_q.shape)}")
    if vectors is not None and (tuple(vectors.shape) != (n, k, d) or not vectors.is_floating_point()):
        raise InputError(
            f"negatives.vectors must be embeddings of shape {(n, k, d)}, got {vectors.dtype} of shape "
            f"{tuple(vectors.shape)}"
        )
    if readable(items):
        _check_values(negatives, n_items)


def _check_values(negatives: Negatives, n_items: int | None) -> None:
    items, weights, log_q, _ = negatives
    wrong = items < -1 if n_items is None else (items < -1) | (items >= n_items)
    if bool(wrong.any()):
        upper = "up" if n_items is None else f"to {n_items - 1}"
        raise InputError(
            f"negatives.items must be item numbers from 0 {upper}, or -1 for no item, got {int(items[wrong][0])}"
        )
    if weights is not None and not bool((usable := torch.isfinite(weights) & (weights >= 0)).all()):
        raise InputError(
            f"negatives.weights must be finite and at least 0, got {weights[~usable][0].item():g}; a weight of 0 "
            "leaves a negative out"
        )
    if log_q is not None and not bool((log_q.isfinite() | (items < 0)).all()):
        raise InputError(
            "negatives.log_q must be finite: an item of probability 0 is never drawn; None stands for equal ones"
        )


def training_data(name: str, train: Any) -> Interactions:
    """Interactions as they are, or those of a SciPy sparse matrix (n_users, n_items)."""
    if isinstance(train, Interactions):
        return train
    if issparse(train):
        pairs: Any = coo_array(train)  # type: ignore[call-overload]
        n_users, n_items = pairs.shape
        return Interactions.from_numbers(
            pairs.row.astype(np.int64),
            pairs.col.astype(np.int64),
            user_ids=np.arange(n_users),
            item_ids=np.arange(n_items),
        )
    raise InputError(
        f"{name} must be interactions, as bn.load and bn.split give them, or a SciPy sparse matrix, got "
        f"{type(train).__name__}"
    )


def check_tensors(name: str, values: Any) -> None:
    """An error unless a part of a state is None or tensors by name.

    Args:
        name: Name of the part.
        values: What the state has there.
    """
    if values is not None and not (
        isinstance(values, Mapping) and all(isinstance(each, Tensor) for each in values.values())
    ):
        raise InputError(f"{name} of a state must be tensors by name, got {type(values).__name__}")
