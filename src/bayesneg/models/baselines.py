"""Baselines that sample no negatives: popularity, item-based neighbours, RP3β, EASE, GF-CF, ALS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from bayesneg.checks import boolean, known_settings, number, one_of, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.linear.als import als
from bayesneg.linear.ease import Form, ease
from bayesneg.linear.graph_filter import graph_filter
from bayesneg.linear.neighbours import item_neighbours
from bayesneg.linear.random_walks import random_walks
from bayesneg.models.baseline import Baseline
from bayesneg.models.scorers import EmbeddingScorer, LinearScorer, cold_in

__all__ = ["ALS", "EASE", "GFCF", "Baseline", "ItemKNN", "MostPopular", "RP3Beta"]


@known_settings()
@dataclass(frozen=True)
class MostPopular(Baseline):
    """Ranks items by their number of training interactions, the same for every user."""

    def solve(self, train: Interactions, *, rng: np.random.Generator) -> EmbeddingScorer:
        ones = np.ones((train.n_users, 1), dtype=np.float32)
        return EmbeddingScorer(ones, train.popularity[:, None].astype(np.float32))


@known_settings()
@dataclass(frozen=True)
class ItemKNN(Baseline):
    """Item-based nearest neighbours with shrunk cosine similarity.

    Args:
        neighbours: Number of most similar items kept for each item.
        shrink: Shrinkage for item pairs with little support.

    Reference:
        B. Sarwar et al., "Item-Based Collaborative Filtering Recommendation Algorithms", WWW 2001.
    """

    neighbours: int = 200
    shrink: float = 10.0

    def __post_init__(self) -> None:
        whole("neighbours", self.neighbours)
        number("shrink", self.shrink, least=0)

    def solve(self, train: Interactions, *, rng: np.random.Generator) -> LinearScorer:
        return LinearScorer(item_neighbours(train, neighbours=self.neighbours, shrink=self.shrink), train)


@known_settings()
@dataclass(frozen=True)
class RP3Beta(Baseline):
    """RP3β: random walks user → item → user → item, with a penalty on popular items.

    With c_i users of item i and n_u items of user u, the weight of item i for item l ≠ i is
    B_il = Σ_u (1 / c_i)^α (1 / n_u)^α / c_l^β over the users of both, and a user's score is the sum over its items.

    Args:
        neighbours: Number of items with the largest weights kept for each item.
        alpha: Exponent α of the transition probabilities.
        beta: Exponent β of the popularity that divides the weight; 0 is P3α.
        normalize: Whether the kept weights of each item are divided by their sum.

    Reference:
        B. Paudel et al., "Updatable, Accurate, Diverse, and Scalable Recommendations for Interactive Applications",
        ACM TiiS 2017.
    """

    neighbours: int = 200
    alpha: float = 0.6
    beta: float = 0.4
    normalize: bool = False

    def __post_init__(self) -> None:
        whole("neighbours", self.neighbours)
        number("alpha", self.alpha, least=0)
        number("beta", self.beta, least=0)
        boolean("normalize", self.normalize)

    def solve(self, train: Interactions, *, rng: np.random.Generator) -> LinearScorer:
        walks = random_walks(
            train, alpha=self.alpha, beta=self.beta, neighbours=self.neighbours, normalize=self.normalize
        )
        return LinearScorer(walks, train)


@known_settings()
@dataclass(frozen=True)
class GFCF(Baseline):
    """GF-CF, low-pass filters of the user–item graph in closed form.

    With R = D_U^(−1/2) X D_I^(−1/2) the normalised interactions and V the leading right singular vectors of R, the
    scores of a history x_u are x_u RᵀR + α · x_u D_I^(−1/2) V Vᵀ D_I^(1/2).

    Args:
        rank: Number of singular vectors in the ideal low-pass filter.
        alpha: Weight α of the ideal low-pass filter; with 0 only the linear filter RᵀR is left.

    Reference:
        Y. Shen et al., "How Powerful is Graph Convolution for Recommendation?", CIKM 2021.
    """

    rank: int = 256
    alpha: float = 0.3

    def __post_init__(self) -> None:
        whole("rank", self.rank)
        number("alpha", self.alpha, least=0)

    def solve(self, train: Interactions, *, rng: np.random.Generator) -> LinearScorer:
        return LinearScorer(graph_filter(train, alpha=self.alpha, rank=self.rank), train)


@known_settings()
@dataclass(frozen=True)
class EASE(Baseline):
    """EASE, a linear item–item model in closed form.

    Args:
        l2: L2 penalty on the item–item weights.
        form: ``"dense"`` (exact, 4·n_items² bytes), ``"low-rank"``, or ``"auto"``: dense up to 8,192 items.

    Reference:
        H. Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019.
    """

    l2: float = 400.0
    form: Form = "auto"

    def __post_init__(self) -> None:
        number("l2", self.l2, above=0)
        one_of("form", self.form, get_args(Form))

    def solve(self, train: Interactions, *, rng: np.random.Generator) -> LinearScorer:
        try:
            return LinearScorer(ease(train, l2=self.l2, form=self.form), train)
        except MemoryError as error:
            size = 4 * train.n_items**2 / 2**30
            raise InputError(
                f"EASE over {train.n_items:,} items needs {size:.1f} GiB for its weights, more than there is; "
                "set form='low-rank'"
            ) from error


@known_settings()
@dataclass(frozen=True)
class ALS(Baseline):
    """Weighted matrix factorization by alternating least squares.

    Args:
        dim: Dimension of the embeddings.
        regularization: L2 penalty on the embeddings.
        alpha: Weight of an observed interaction; every other pair has weight 1.
        iterations: Number of alternations between users and items.

    Reference:
        Y. Hu, Y. Koren and C. Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008.
    """

    dim: int = 64
    regularization: float = 50.0
    alpha: float = 10.0
    iterations: int = 15

    def __post_init__(self) -> None:
        whole("dim", self.dim)
        whole("iterations", self.iterations)
        number("regularization", self.regularization, least=0)
        number("alpha", self.alpha, above=0)

    def solve(self, train: Interactions, *, rng: np.random.Generator) -> EmbeddingScorer:
        model = als(
            train,
            dim=self.dim,
            regularization=self.regularization,
            alpha=self.alpha,
            iterations=self.iterations,
            seed=int(rng.integers(2**31)),
        )
        return EmbeddingScorer(model.user_vectors, model.item_vectors, cold=cold_in(train))
