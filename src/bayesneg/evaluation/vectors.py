"""Vectors of users and items as a scorer, so that any trained model can be evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bayesneg.errors import InputError
from bayesneg.interfaces import InnerProducts


@runtime_checkable
class CatalogueScorer(Protocol):
    """What ranking needs of a :class:`~bayesneg.interfaces.Scorer`."""

    @property
    def n_users(self) -> int: ...

    @property
    def n_items(self) -> int: ...

    def score_all(self, users: np.ndarray) -> np.ndarray: ...


def as_scorer(given: CatalogueScorer | Sequence[Any]) -> CatalogueScorer:
    """A scorer as it is, a pair of arrays as their inner products.

    >>> as_scorer((np.ones((2, 3)), np.ones((4, 3)))).score_all(np.array([0]))
    array([[3., 3., 3., 3.]], dtype=float32)
    """
    if isinstance(given, tuple | list) and len(given) == 2:
        return _inner_products(*given)
    if not isinstance(given, CatalogueScorer):
        raise InputError(
            "scorer must be a trained model such as run.scorer, or a pair of vectors (U, V) of shapes (n_users, d) and "
            f"(n_items, d), got {type(given).__name__}"
        )
    return given


def _inner_products(users: Any, items: Any) -> InnerProducts:
    try:
        vectors = [np.asarray(each, dtype=np.float32) for each in (users, items)]
    except (TypeError, ValueError, RuntimeError) as error:  # a tensor with a gradient, or on a GPU
        raise InputError(f"scorer: the vectors (U, V) must be arrays of numbers in memory ({error})") from error
    shapes = " and ".join(str(each.shape) for each in vectors)
    if any(each.ndim != 2 for each in vectors) or vectors[0].shape[1] != vectors[1].shape[1]:
        raise InputError(f"scorer: the vectors (U, V) must have shapes (n_users, d) and (n_items, d), got {shapes}")
    for name, each in zip(("U", "V"), vectors, strict=True):
        if not (finite := np.isfinite(each).all(axis=1)).all():
            raise InputError(
                f"scorer: the vectors (U, V) must be finite numbers, row {int(np.argmin(finite))} of {name} is not; a "
                "model whose training diverged needs a lower learning rate"
            )
    return InnerProducts(*vectors)
