"""Which ALS training starts from: the best of a few settings on training pairs that are hidden from it.

One setting does not fit all data. Where popularity decides, as on KuaiRec, little weight on observed pairs is best;
where users differ, as on Gowalla, a small penalty is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.linear.als import als
from bayesneg.linear.item_models import FactorItems

USUAL: Final[Mapping[str, Any]] = {"regularization": 50.0, "alpha": 10.0}
SETTINGS: Final[tuple[Mapping[str, Any], ...]] = (
    USUAL,
    {"regularization": 20.0, "alpha": 10.0},
    {"regularization": 200.0, "alpha": 10.0},
    {"regularization": 50.0, "alpha": 3.0},
)
ITERATIONS: Final = 15
TRIED: Final[Mapping[str, Any]] = {"dim": 64, "iterations": 8}  # of the trials, which are shorter
MOST: Final = 2_000_000  # interactions; above them the usual setting is taken untried
JUDGED: Final = 1000  # users with a hidden fifth
SCORES: Final = 1 << 25  # computed for them at most
TOP: Final = 20  # items of a list that count
FLAT: Final = 1e-3  # largest number in the vectors of a solution that has collapsed to 0
LOWER: Final = 0.1  # by which the penalty is then multiplied
LEAST: Final = 5  # interactions of a user with a hidden fifth


def chosen_setting(train: Interactions, rng: np.random.Generator) -> dict[str, Any]:
    """The settings of :func:`~bayesneg.linear.als.als` to start from, all but the dimension and the seed."""
    usual = {**USUAL, "iterations": ITERATIONS}
    judged = np.flatnonzero(train.counts >= LEAST)
    judged = np.sort(rng.permutation(judged)[: max(1, min(JUDGED, SCORES // train.n_items))])
    if len(train) > MOST or len(judged) == 0:
        return usual
    hidden = np.isin(train.users, judged) & (rng.random(len(train)) < 0.2)
    seen, seed = train.select(~hidden), int(rng.integers(2**31))
    gains = [_gain(als(seen, **TRIED, **one, seed=seed), seen, train, judged) for one in SETTINGS]
    return {**usual, **SETTINGS[int(np.argmax(gains))]}


def solved(train: Interactions, how: Mapping[str, Any], *, dim: int, seed: int) -> FactorItems:
    """ALS with this setting. The penalty is lowered where it leaves nothing, as on very small data.

    Args:
        train: The training interactions.
        how: As :func:`chosen_setting` gives it.
        dim: The number of dimensions.
        seed: Of the first vectors.
    """
    found, penalty = als(train, dim=dim, **how, seed=seed), how["regularization"]
    while len(train) and np.abs(found.item_vectors).max() < FLAT and penalty > FLAT:
        penalty *= LOWER
        found = als(train, dim=dim, **{**how, "regularization": penalty}, seed=seed)
    return found


def _gain(model: FactorItems, seen: Interactions, train: Interactions, users: np.ndarray) -> float:
    """The mean of Σ 1/log₂(2 + place) over the hidden pairs among the first ``TOP`` unseen items of each user."""
    scores = model.user_vectors[users] @ model.item_vectors.T
    for row, user in enumerate(users):
        scores[row, seen.row(user)] = -np.inf
    top = min(TOP, train.n_items)
    found = np.argpartition(scores, -top, axis=1)[:, -top:]
    order = np.argsort(-np.take_along_axis(scores, found, axis=1), axis=1, kind="stable")
    found = np.take_along_axis(found, order, axis=1)
    owners = np.broadcast_to(users[:, None], found.shape)
    hits = train.contains(owners, found) & ~seen.contains(owners, found)
    return float((hits / np.log2(2.0 + np.arange(top))).sum(axis=1).mean())
