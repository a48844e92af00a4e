"""An index of item vectors for approximate search by inner product (usearch, HNSW).

HNSW searches a metric space, which inner products of vectors of different lengths are not: in a graph built with them
many items of MovieLens-1M cannot be reached. With the coordinate √(M² − |h|²) added to each item, M the largest norm,
and 0 to the query, the items of the highest inner product are the nearest by cosine.

References:
    Y. Malkov and D. Yashunin, "Efficient and Robust Approximate Nearest Neighbor Search Using Hierarchical Navigable
    Small World Graphs", TPAMI 2020.
    Y. Bachrach et al., "Speeding Up the Xbox Recommender System Using a Euclidean Transformation for Inner-Product
    Spaces", RecSys 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.recommendation.lists import item_lists
from bayesneg.seeding import stream

if TYPE_CHECKING:
    from usearch.index import Index

LIBRARIES: Final = ("usearch",)
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 16, 128, 128  # edges of an item; candidates of an insertion, a search
OVERSAMPLING: Final = 2  # items asked for, for each that is needed; the furthest of a search are the least certain
MOST_OF_CATALOGUE: Final = 0.25  # beyond this share of the items exact search is as fast
QUERIES: Final = 1_000  # users whose lists measure the recall
RECALL_AT: Final = (10, 100)


class ItemIndex:
    """The items of the highest inner product with a vector, approximately; their scores are exact.

    Args:
        items: Item vectors (n_items, d) float32.
        graph: The usearch index over them.
    """

    def __init__(self, items: np.ndarray, graph: Index) -> None:
        self.items, self.graph = items, graph

    @classmethod
    def build(cls, items: np.ndarray) -> ItemIndex:
        """Index item vectors (n_items, d)."""
        require_usearch("an index")
        from usearch.index import Index

        graph = Index(
            ndim=items.shape[1] + 1,
            metric="cos",
            dtype="f32",
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
            expansion_search=EXPANSION_SEARCH,
        )
        graph.add(np.arange(len(items), dtype=np.uint64), _lengthened(items))
        return cls(items, graph)

    @classmethod
    def load(cls, path: Path, items: np.ndarray) -> ItemIndex:
        """Read the index of these item vectors; an error where it is that of others."""
        require_usearch(f"{path}")
        from usearch.index import Index

        try:
            facts = Index.metadata(path) or {}
        except ValueError:
            facts = {}
        found = (facts.get("count_present", 0), facts.get("dimensions", 1) - 1)  # without the added coordinate
        if found != items.shape:
            of = f"an index of {found[0]:,} vectors of dimension {found[1]}" if facts else "no index of usearch"
            raise InputError(
                f"{path} is {of}, the export has {len(items):,} item vectors of dimension {items.shape[1]}; export the "
                "run again, or load it without the index: index=False, or --exact on the command line"
            )
        return cls(items, Index(ndim=found[1] + 1, dtype="f32", expansion_search=EXPANSION_SEARCH, path=path))

    def save(self, path: Path) -> None:
        """Write the graph with its vectors."""
        self.graph.save(path)

    def best(self, vector: np.ndarray, excluded: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Up to k items and their scores, best first, without the ``excluded`` ones.

        None where so much of the catalogue would have to be looked at that exact search is as fast.
        """
        wanted = k + len(excluded)
        if wanted > MOST_OF_CATALOGUE * len(self.items):
            return None
        query = np.append(vector, vector.dtype.type(0.0))
        near = self.graph.search(query, OVERSAMPLING * wanted, threads=1).keys.astype(np.int64)
        items = near[~np.isin(near, excluded)]
        scores = self.items[items] @ vector
        order = np.lexsort((items, -scores))[:k]
        return items[order], scores[order]

    def recall(self, users: np.ndarray, seen: Interactions, lengths: Sequence[int] = RECALL_AT) -> dict[str, Any]:
        """Recall@k against exact search, over the lists of a sample of users without their ``seen`` items.

        Args:
            users: User vectors (n_users, d).
            seen: Interactions whose items are excluded.
            lengths: List lengths k.

        Returns:
            List length → mean share of the exact top k that the index finds, the number of lists that were compared,
            and for how many of all users search is exact since they have interacted with a large part of the catalogue.
        """
        lengths = [k for k in lengths if k <= MOST_OF_CATALOGUE * len(self.items)]
        n = min(QUERIES, len(users))
        sample = np.sort(stream(0, "recall of an index").choice(len(users), n, replace=False))
        scorer = EmbeddingScorer(users, self.items)
        shares: dict[int, list[float]] = {k: [] for k in lengths}
        exact = item_lists(scorer, seen, sample, max(lengths, default=1)).items
        n_exact = 0
        for place, user in enumerate(sample):
            for k in lengths:
                truth = exact[place, :k][exact[place, :k] >= 0]
                found = self.best(users[user], seen.row(user), k)
                if found is None:
                    n_exact += k == lengths[0]
                elif len(truth):
                    shares[k].append(float(np.isin(truth, found[0]).mean()))
        recall = {str(k): float(np.mean(values)) for k, values in shares.items() if values}
        return {"recall": recall, "n_lists": n - n_exact, "n_searched_exactly": n_exact}


def check_library(name: str | None) -> None:
    """An error unless the index is one that can be built here; None is no index."""
    if name is not None:
        if name not in LIBRARIES:
            raise InputError(f"index={name!r} is not supported; use {' or '.join(LIBRARIES)}")
        require_usearch("index='usearch'")


def require_usearch(what: str) -> None:
    """An error that names the extra where usearch is missing."""
    if find_spec("usearch") is None:
        raise InputError(f"{what} needs usearch, which is not installed; run: pip install 'bayesneg[index]'")


def _lengthened(items: np.ndarray) -> np.ndarray:
    """Items (n_items, d + 1) of one length."""
    squares = np.einsum("id,id->i", items, items, dtype=np.float64)
    rest = np.sqrt(np.maximum(squares.max(initial=0.0) - squares, 0.0))
    return np.column_stack((items, rest)).astype(np.float32)
