"""A scorer as arrays for a file, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import DamagedError
from bayesneg.integrity.arrays import ArraySpec, Specs, check_arrays
from bayesneg.interfaces import Learner, Scorer
from bayesneg.linear.item_models import KINDS, item_model_of
from bayesneg.models.scorers import Cold, EmbeddingScorer, LinearScorer

COLD_ITEMS = "cold_items"
COLD = ("cold_users", COLD_ITEMS, "scores_of_cold_users")  # (n_users,) and (n_items,) bool, (n_items,)
VECTORS: Specs = {
    "users": ArraySpec(("users", "dim"), "number"),  # custom models may count in whole numbers
    "items": ArraySpec(("items", "dim"), "number"),
    "cold_users": ArraySpec(("users",), "bool", optional=True),
    COLD_ITEMS: ArraySpec(("items",), "bool", optional=True),
    "scores_of_cold_users": ArraySpec(("items",), optional=True),
}
PARAMETER = "parameter."  # prefix of the parameters of a model without embeddings
ITEM_MODEL = "item_model."  # prefix, with its kind, of the arrays of a linear item model


def weights_of(scorer: Scorer) -> dict[str, np.ndarray]:
    """The arrays to store: embeddings, item–item weights, or the parameters of a model without embeddings."""
    if isinstance(scorer, EmbeddingScorer):
        vectors = {"users": scorer.users, "items": scorer.items}
        return vectors if scorer.cold is None else vectors | dict(zip(COLD, scorer.cold, strict=True))
    if isinstance(scorer, LinearScorer):
        model = scorer.model
        return {f"{ITEM_MODEL}{model.kind}.{key}": array for key, array in model.arrays().items()}
    if isinstance(scorer, Learner):  # gives scores and no embeddings
        return {f"{PARAMETER}{key}": array for key, array in scorer.state_dict().items()}
    return {}


def scorer_from(arrays: Mapping[str, np.ndarray], train: Interactions) -> Scorer | None:
    """The scorer that :func:`weights_of` stored, checked; None where arrays are not enough to restore it."""
    if {"users", "items"} & arrays.keys():
        check_arrays(arrays, VECTORS, {"users": train.n_users, "items": train.n_items}, only=True)
        return EmbeddingScorer(arrays["users"], arrays["items"], cold=_cold(arrays, train))
    for kind in KINDS:
        prefix = f"{ITEM_MODEL}{kind}."
        own = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
        if own:
            return LinearScorer(item_model_of(kind, own, train), train)
    if unknown := sorted(key for key in arrays if not key.startswith(PARAMETER)):
        raise DamagedError(f"{unknown[0]!r} is no array of a model")
    return None


def _cold(arrays: Mapping[str, np.ndarray], train: Interactions) -> Cold | None:
    users, items, scores = (arrays.get(name) for name in COLD)
    if items is None and scores is None:
        return None
    items = train.popularity == 0 if items is None else items
    if scores is None:  # an export without interactions does not say which users have none
        return Cold(np.zeros(len(arrays["users"]), dtype=bool), items, np.zeros(len(items), dtype=np.float32))
    return Cold(train.counts == 0 if users is None else users, items, scores)
