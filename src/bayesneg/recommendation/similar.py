"""Similar items: by the cosine of their vectors, or by the weights of an item model."""

from __future__ import annotations

import numpy as np

from bayesneg.data.identifiers import plain
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Scorer
from bayesneg.models.scorers import EmbeddingScorer, LinearScorer, unit_rows
from bayesneg.recommendation.lists import ItemLists, cold_of, item_lists


def similar_items(scorer: Scorer, train: Interactions, item: int, k: int, *, model: str) -> ItemLists:
    """The k items that are most similar to one, itself left out.

    For vectors the similarity is the cosine. For an item model x_ul = Σ B_il it is the weight B_il of the item, and
    only items with a weight above 0 are listed. An item that the model has learned nothing about is similar to none: it
    is an error to ask for it, and it is not listed.

    Args:
        scorer: A trained model.
        train: The interactions that know the items.
        item: The number of the item.
        k: How many.
        model: The name of the model, for errors.

    Returns:
        One list (1, k).
    """
    own = history_of(train, np.array([item]))
    cold = cold_of(scorer)
    if cold is not None and cold.items[item]:
        raise InputError(
            f"item {plain(train.item_ids[item])!r} has no training interaction, so {model} knows of no item that is "
            "similar; ask for an item that has some, or train on data in which it has (--final trains on all)"
        )
    if isinstance(scorer, LinearScorer):
        found = item_lists(LinearScorer(scorer.model, own), own, np.zeros(1, dtype=np.int64), k)
        weightless = ~(found.scores > 0)
        found.items[weightless], found.scores[weightless] = -1, np.nan
        return found
    if not isinstance(scorer, EmbeddingScorer):
        raise InputError(f"{model} gives scores and no vectors of items, so items cannot be compared; {_WAY_OUT}")
    return nearest_items(scorer, scorer.items[item], own, k, model=model)


def nearest_items(
    scorer: EmbeddingScorer, vector: np.ndarray, left_out: Interactions | None, k: int, *, model: str
) -> ItemLists:
    """The k items with the highest cosine to a vector (d,); those that nothing was learned about are left out."""
    if scorer.items.shape[1] < 2:
        raise InputError(
            f"{model} knows one number of an item, its popularity, which makes no two items similar; {_WAY_OUT}"
        )
    cosines = EmbeddingScorer(unit_rows(vector[None]), unit_rows(scorer.items))
    learned = None if scorer.cold is None else np.flatnonzero(~scorer.cold.items)
    return item_lists(cosines, left_out, np.zeros(1, dtype=np.int64), k, allowed=learned)


_WAY_OUT = "train a model that compares items, such as EASE, ItemKNN or MF"


def history_of(train: Interactions, items: np.ndarray) -> Interactions:
    """One new user with these items (n,), over the catalogue of ``train``."""
    chosen = np.unique(items).astype(np.int32)
    return Interactions(
        indptr=np.array([0, len(chosen)], dtype=np.int64),
        indices=chosen,
        user_ids=np.array(["new user"], dtype=object),
        item_ids=train.item_ids,
        name=train.name,
    )
