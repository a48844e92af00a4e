"""A scorer as arrays for a file, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Learner, Scorer
from bayesneg.linear.item_models import KINDS, item_model_of
from bayesneg.models.scorers import EmbeddingScorer, Fallback, LinearScorer

FALLBACK = "scores_of_cold_users"  # (n_items,)
PARAMETER = "parameter."  # prefix of the parameters of a model without embeddings
ITEM_MODEL = "item_model."  # prefix, with its kind, of the arrays of a linear item model


def weights_of(scorer: Scorer) -> dict[str, np.ndarray]:
    """The arrays to store: embeddings, item–item weights, or the parameters of a model without embeddings."""
    if isinstance(scorer, EmbeddingScorer):
        fallback = {} if scorer.fallback is None else {FALLBACK: scorer.fallback.scores}
        return {"users": scorer.users, "items": scorer.items, **fallback}
    if isinstance(scorer, LinearScorer):
        model = scorer.model
        return {f"{ITEM_MODEL}{model.kind}.{key}": array for key, array in model.arrays().items()}
    if isinstance(scorer, Learner):  # gives scores and no embeddings
        return {f"{PARAMETER}{key}": array for key, array in scorer.state_dict().items()}
    return {}


def scorer_from(arrays: Mapping[str, np.ndarray], train: Interactions) -> Scorer | None:
    """The scorer that :func:`weights_of` stored; None where arrays are not enough to restore it."""
    if {"users", "items"} <= arrays.keys():
        fallback = Fallback(train.counts == 0, arrays[FALLBACK]) if FALLBACK in arrays else None
        return EmbeddingScorer(arrays["users"], arrays["items"], fallback=fallback)
    for kind in KINDS:
        prefix = f"{ITEM_MODEL}{kind}."
        own = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
        if own:
            return LinearScorer(item_model_of(kind, own), train)
    return None
