"""The baselines any sampler must beat: popularity, item neighbours, EASE, implicit ALS."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import get_args

import numpy as np

from bayesneg.checks import number, one_of, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.linear.ease import Form, ease
from bayesneg.linear.matrices import chosen_matrix
from bayesneg.linear.neighbours import item_neighbours
from bayesneg.models.baseline import Baseline
from bayesneg.models.embedding import EmbeddingScorer
from bayesneg.models.linear import LinearScorer


@dataclass(frozen=True)
class MostPopular(Baseline):
    """The same list for everybody: the items with the most training interactions."""

    def solve(self, train: Interactions, *, rng: np.random.Generator) -> EmbeddingScorer:
        ones = np.ones((train.n_users, 1), dtype=np.float32)
        return EmbeddingScorer(ones, train.popularity[:, None].astype(np.float32))


@dataclass(frozen=True)
class ItemKNN(Baseline):
    """Items similar to those the user chose: see :mod:`bayesneg.linear.neighbours`.

    ``neighbours`` of each item are kept; ``shrink`` pulls the similarity of items with few users towards 0.
    """

    neighbours: int = 200
    shrink: float = 10.0

    def __post_init__(self) -> None:
        whole("neighbours", self.neighbours)
        number("shrink", self.shrink, least=0)

    def solve(self, train: Interactions, *, rng: np.random.Generator) -> LinearScorer:
        return LinearScorer(item_neighbours(train, neighbours=self.neighbours, shrink=self.shrink), train)


@dataclass(frozen=True)
class EASE(Baseline):
    """The linear item model of least squares: see :mod:`bayesneg.linear.ease`.

    ``form`` is ``"dense"``, exact, with 4·n_items² bytes; ``"low-rank"``; or ``"auto"``: dense up to 8,192 items.
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
                f"EASE over {train.n_items:,} items needs {size:.1f} GiB for its weights, and memory is out; "
                "set form='low-rank'"
            ) from error


@dataclass(frozen=True)
class ALS(Baseline):
    """Weighted matrix factorization by alternating least squares, through the ``implicit`` library.

    Y. Hu, Y. Koren and C. Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008. A chosen pair
    weighs ``alpha``, every other pair 1. Needs the extra ``als``.
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
        require_implicit("ALS")
        from implicit.cpu.als import AlternatingLeastSquares
        from scipy.sparse import csr_matrix

        model = AlternatingLeastSquares(
            factors=self.dim,
            regularization=self.regularization,
            alpha=self.alpha,
            iterations=self.iterations,
            num_threads=1,
            random_state=int(rng.integers(2**31)),
        )
        model.fit(csr_matrix(chosen_matrix(train, np.float32)), show_progress=False)
        return EmbeddingScorer(np.asarray(model.user_factors), np.asarray(model.item_factors))


def require_implicit(what: str) -> None:
    if find_spec("implicit") is None:
        raise InputError(f"{what} needs implicit, which is not installed; run: pip install 'bayesneg[als]'")
