"""A scorer as arrays for a file, and back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Learner, Scorer
from bayesneg.linear.item_models import KINDS, item_model_of
from bayesneg.models.embedding import EmbeddingScorer
from bayesneg.models.linear import LinearScorer

PARAMETER = "parameter."  # before the name of each, where a model has no vectors
ITEM_MODEL = "item_model."  # and its kind, before the names of a linear item model's arrays


def weights_of(scorer: Scorer) -> dict[str, np.ndarray]:
    """Vectors, the weights of a linear item model, or a score model's parameters; nothing of what is unknown."""
    if isinstance(scorer, EmbeddingScorer):
        return {"users": scorer.users, "items": scorer.items}
    if isinstance(scorer, LinearScorer):
        model = scorer.model
        return {f"{ITEM_MODEL}{model.kind}.{key}": array for key, array in model.arrays().items()}
    if isinstance(scorer, Learner):  # it gives scores and no vectors: its parameters are what there is
        return {f"{PARAMETER}{key}": array for key, array in scorer.state_dict().items()}
    return {}


def scorer_from(arrays: Mapping[str, np.ndarray], train: Interactions) -> Scorer | None:
    """The scorer that :func:`weights_of` kept; None where it cannot be made again from arrays."""
    if {"users", "items"} <= arrays.keys():
        return EmbeddingScorer(arrays["users"], arrays["items"])
    for kind in KINDS:
        prefix = f"{ITEM_MODEL}{kind}."
        own = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
        if own:
            return LinearScorer(item_model_of(kind, own), train)
    return None
