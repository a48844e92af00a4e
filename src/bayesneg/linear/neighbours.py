"""Item-based nearest neighbours.

B. Sarwar et al., "Item-Based Collaborative Filtering Recommendation Algorithms", WWW 2001. With c_il the number of
users who interacted with both items, the similarity is c_il / (√(c_ii c_ll) + shrink): the cosine, with shrinkage for
item pairs with little support. The ``neighbours`` most similar items are kept for each item.
"""

from __future__ import annotations

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.linear.item_models import NeighbourItems
from bayesneg.linear.matrices import interaction_matrix

AT_ONCE = 1 << 22  # pairs of items whose users are counted at once, about


def item_neighbours(train: Interactions, *, neighbours: int, shrink: float) -> NeighbourItems:
    """The most similar items of every item; ties go to the lower item number."""
    x = interaction_matrix(train, np.float32)
    by_item = x.T.tocsr()
    step = max(1, AT_ONCE // train.n_items)
    kept = [
        _most_similar((by_item[start : start + step] @ x).tocoo(), start, train.popularity, neighbours, shrink)
        for start in range(0, train.n_items, step)
    ]
    items, others, weights = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    counts = np.bincount(items, minlength=train.n_items)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    order = np.lexsort((others, items))
    return NeighbourItems(starts, others[order].astype(np.int32), weights[order].astype(np.float32))


def _most_similar(
    common: object, first: int, popularity: np.ndarray, neighbours: int, shrink: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items, neighbours and similarities for a block of items that begins at ``first``."""
    items, others, counts = common.row + first, common.col, common.data  # type: ignore[attr-defined]
    apart = items != others
    items, others, counts = items[apart], others[apart], counts[apart]
    similar = counts / (np.sqrt(popularity[items] * popularity[others]) + shrink)
    order = np.lexsort((others, -similar, items))
    items, others, similar = items[order], others[order], similar[order]
    place = np.arange(len(items)) - np.searchsorted(items, items)  # 0 for the most similar of each item
    best = place < neighbours
    return items[best], others[best], similar[best]
