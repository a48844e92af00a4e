"""Validation of what a torch loop passes: a sentence that names the argument and the way out.

Shapes, types and devices are always checked. Values are checked on the CPU only, and not in a compiled graph: on a GPU
that would wait for the device.
"""

from __future__ import annotations

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
    """All tensors are on one device."""
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
        raise InputError(f"{name} must be dense numbers from {least} to {n - 1}, got {wrong}")


def check_table(name: str, vectors: Tensor, n: int) -> None:
    """``vectors`` are embeddings (n, d)."""
    if not isinstance(vectors, Tensor) or vectors.ndim != 2 or len(vectors) != n or not vectors.is_floating_point():
        got = tuple(vectors.shape) if isinstance(vectors, Tensor) else type(vectors).__name__
        raise InputError(f"{name} must be the embeddings ({n}, d) of all of them, got {got}")


def check_loss_input(users: Tensor, positives: Tensor, items: Tensor | None, negatives: Negatives) -> None:
    """What a loss function is given can be scored and differentiated."""
    if not isinstance(negatives, Negatives):
        raise InputError(
            f"negatives must be Negatives, as a Sampler returns them, got {type(negatives).__name__}; "
            "Negatives(items) makes them from item numbers (B, K)"
        )
    same_device(users=users, positives=positives, items=items, negatives=negatives.items, weights=negatives.weights)
    if users.ndim != 2 or users.shape != positives.shape:
        raise InputError(
            f"users and positives must be embeddings (B, d), got {tuple(users.shape)} and {tuple(positives.shape)}"
        )
    if items is None and negatives.vectors is None:
        raise InputError("items must be the embeddings (n_items, d) of all items, unless negatives are vectors")
    if torch.is_grad_enabled() and not any(
        part is not None and part.requires_grad for part in (users, positives, items, negatives.vectors)
    ):
        raise InputError(
            "neither users, positives nor items need a gradient, so that nothing would be learned; pass embeddings "
            "that depend on the model's parameters, without detach()"
        )
    n, k = len(users), negatives.items.shape[-1]
    if negatives.items.ndim == 2 and len(negatives.items) != n:
        raise InputError(f"negatives.items must have a row for each of the {n} examples, got {len(negatives.items)}")
    if negatives.weights is not None and negatives.weights.shape != (n, k):
        raise InputError(f"negatives.weights must have the shape {(n, k)}, got {tuple(negatives.weights.shape)}")
    if readable(users):
        _check_values(negatives, 0 if items is None else len(items))


def _check_values(negatives: Negatives, n_items: int) -> None:
    items, weights = negatives.items, negatives.weights
    wrong = (items < -1) | (items >= n_items) if n_items else items < -1
    if bool(wrong.any()):
        raise InputError(
            f"negatives.items must be item numbers from 0 to {n_items - 1}, or -1 for no item, got "
            f"{int(items[wrong][0])}"
        )
    if weights is not None and not bool((torch.isfinite(weights) & (weights >= 0)).all()):
        raise InputError("negatives.weights must be finite and at least 0; a weight of 0 leaves a negative out")


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
