"""RP3β: random walks of three steps over the user–item graph, with a penalty on popular targets.

B. Paudel, F. Christoffel, C. Newell and A. Bernstein, "Updatable, Accurate, Diverse, and Scalable Recommendations for
Interactive Applications", ACM TiiS 2017. From an item i the walk goes to one of its users with probability 1 / c_i, c_i
counting them, and from a user u to one of its items with probability 1 / n_u. The probabilities are raised to α, and
the popularity of the target to β divides the result:

    B_il = Σ_u (1 / c_i)^α (1 / n_u)^α / c_l^β   over the users u of both items, i ≠ l.

The first step, from the user, has the same probability for all its items and changes no ranking. Of each row the
largest weights are kept. With β = 0 it is P3α (C. Cooper et al., "Random Walks in Recommender Systems: Exact
Computation and Simulations", WWW 2014).
"""

from __future__ import annotations

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.linear.item_models import NeighbourItems
from bayesneg.linear.matrices import by_item, power_or_zero

AT_ONCE = 1 << 22  # weights that are kept for a block of items, at most


def random_walks(
    train: Interactions, *, alpha: float, beta: float, neighbours: int, normalize: bool = False
) -> NeighbourItems:
    """The likeliest targets of every item, ties to the lower number; memory grows with items times neighbours."""
    from bayesneg.linear.graph_kernels import strongest_walks

    starts, users = by_item(train.indptr, train.indices, train.n_items)
    through = power_or_zero(np.diff(train.indptr), -alpha)
    source, target = power_or_zero(train.popularity, -alpha), power_or_zero(train.popularity, -beta)
    step = max(1, AT_ONCE // min(neighbours, train.n_items))
    parts = [
        strongest_walks(
            starts, users, train.indptr, train.indices, through, source, target,
            first, min(first + step, train.n_items), neighbours,
        )
        for first in range(0, train.n_items, step)
    ]  # fmt: skip
    counts, targets, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    sources = np.repeat(np.arange(train.n_items, dtype=np.int32), counts)
    if normalize:
        weights = weights / np.bincount(sources, weights, minlength=train.n_items)[sources]
    order = np.argsort(targets, kind="stable")  # by column, the sources ascending in each
    columns = np.concatenate(([0], np.cumsum(np.bincount(targets, minlength=train.n_items))))
    return NeighbourItems(columns.astype(np.int64), sources[order], weights[order].astype(np.float32))
