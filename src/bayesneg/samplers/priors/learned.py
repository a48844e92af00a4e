"""A prior learned from the training data: the calibrated score of an item model.

Cross-fitting: each fold of the training pairs is held out once, an item model is fitted to the rest, and its scores of
unobserved pairs are calibrated against whether the pair was held out. The calibration curve is then applied to the
scores of the item model fitted to all training pairs. No label outside the training data is used.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from bayesneg.checks import number, one_of, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Prior
from bayesneg.kernels.reference.pools import SparseRows
from bayesneg.linear.als import als
from bayesneg.linear.ease import DENSE_ITEMS, ease
from bayesneg.linear.graph_filter import graph_filter
from bayesneg.linear.item_models import ItemModel
from bayesneg.linear.neighbours import item_neighbours
from bayesneg.linear.random_walks import random_walks
from bayesneg.samplers.priors.basic import unfitted
from bayesneg.samplers.priors.calibration_curves import CURVES, CalibrationCurve, HiddenCurve
from bayesneg.samplers.priors.cross_fitting import folds_of, unobserved_pairs
from bayesneg.seeding import stream

if TYPE_CHECKING:
    from bayesneg.kernels.numba.pools.likeliest import LikeliestItems

BLOCK = 1 << 21  # probabilities of a block of users when the likeliest items are looked for, by each thread
AT_ONCE = 1 << 24  # scores computed at once when the cache is filled: 64 MiB
ALS_DIM, ITERATIONS = 64, 15  # as of the baselines, as are these
WALK_EXPONENT = 0.6  # α of RP3β
LOW_PASS, SINGULAR_VECTORS = 0.3, 256  # α and rank of GF-CF


@dataclass(frozen=True)
class Learned(Prior):
    """A learned prior: p_ul = P(false negative | score of an item model), cross-fitted inside the training data.

    Args:
        item_model: Item model to learn from: ``"ease"``, ``"neighbours"`` (item-based nearest neighbours), ``"als"``,
            ``"rp3beta"``, ``"gfcf"``, or ``"auto"`` (EASE up to 8,192 items, neighbours above).
        l2: L2 penalty of EASE.
        solver: How EASE is solved: ``"dense"`` (for a GPU machine where the catalogue is large), ``"low-rank"``, or
            ``"auto"`` (dense up to 8,192 items).
        neighbours: Number of most similar items kept for each item, by neighbours and RP3β.
        shrink: Shrinkage of similarities with little support.
        dim: Dimension of ALS, by default 64, or number of singular vectors of GF-CF, by default 256.
        regularization: L2 penalty of ALS.
        confidence: Weight of an observed pair in ALS; every other pair has weight 1.
        beta: Exponent of the popularity that RP3β divides by.
        folds: Number K of cross-fitting folds; each holds out one K-th of the training pairs.
        curve: Calibration curve from scores to probabilities: ``"isotonic"`` or ``"logistic"`` regression.
        hidden: Assumed ratio of hidden to observed positives; by default the curve stays as cross-fitting gives it,
            which is for a ratio of 1/(K − 1) and underestimates the most probable pairs.
        seed: Seed of the folds.
        cache: Memory for cached probabilities in MiB, used if those of all users fit.
        likeliest: Number of likeliest unobserved items of each user that a shared pool tells apart; all others have the
            user's mean probability of the rest, so that the expected number of false negatives is kept.

    Example:
        >>> from bayesneg.data.synthetic import synthetic
        >>> prior = Learned(item_model="ease", l2=100.0).fit(synthetic(40, 30, seed=0))
        >>> prior.probability(np.array([0]), np.array([[1, 2]])).shape
        (1, 2)

    Reference:
        H. Steck, "Embarrassingly Shallow Autoencoders for Sparse Data", WWW 2019 (EASE).
    """

    NAME: ClassVar = "learned"
    item_model: Literal["auto", "ease", "neighbours", "als", "rp3beta", "gfcf"] = "auto"
    l2: float = 400.0
    solver: Literal["auto", "dense", "low-rank"] = "auto"
    neighbours: int = 50
    shrink: float = 10.0
    dim: int | None = None
    regularization: float = 50.0
    confidence: float = 10.0
    beta: float = 0.4
    folds: int = 5
    curve: Literal["isotonic", "logistic"] = "isotonic"
    hidden: float | None = None
    seed: int = 0
    cache: int = 256
    likeliest: int = 500
    _last: _LastFit = field(default_factory=lambda: _LastFit(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        one_of("item_model", self.item_model, ("auto", "ease", "neighbours", "als", "rp3beta", "gfcf"))
        one_of("solver", self.solver, ("auto", "dense", "low-rank"))
        one_of("curve", self.curve, tuple(CURVES))
        number("l2", self.l2, above=0)
        number("shrink", self.shrink, least=0)
        number("regularization", self.regularization, least=0)
        number("confidence", self.confidence, above=0)
        number("beta", self.beta, least=0)
        whole("neighbours", self.neighbours)
        whole("folds", self.folds, least=2)
        whole("cache", self.cache, least=0)
        whole("likeliest", self.likeliest)
        if self.dim is not None:
            whole("dim", self.dim)
        if self.hidden is not None:
            number("hidden", self.hidden, above=0)

    def fit(self, train: Interactions) -> CalibratedItemModel:
        """Learn the prior, once for all seeds of a comparison, which fit to the same data.

        Args:
            train: The training interactions.

        Returns:
            The learned prior.
        """
        with self._last.lock:
            if self._last.prior is None or not self._last.prior.is_of(train):
                self._last.prior = self._learned(train)
            return self._last.prior

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        raise unfitted(self)

    def _learned(self, train: Interactions) -> CalibratedItemModel:
        rng = stream(self.seed, "learned prior")
        scores, hidden, weights = self._cross_fitted(train, rng)
        curve = CURVES[self.curve](scores, hidden, weights)
        model = self._item_model(train)
        if self.hidden is not None:
            pairs = unobserved_pairs(train, None, rng)
            now = _root_mean_square(model.pairs(train, pairs.users, pairs.items), pairs.weights)
            scale = _root_mean_square(scores, weights) / now if now > 0 else 1.0
            curve = HiddenCurve(curve, factor=self.folds * self.hidden, scale=scale)
        return CalibratedItemModel(model, curve, replace(train, truth=None), cache=self.cache, likeliest=self.likeliest)

    def _cross_fitted(self, train: Interactions, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Held-out scores of unobserved pairs, whether each pair was hidden, and its sampling weight."""
        found = []
        for seen, held_out in folds_of(train, self.folds, rng):
            pairs = unobserved_pairs(seen, held_out, rng)
            scores = self._item_model(seen).pairs(seen, pairs.users, pairs.items)
            found.append((scores, pairs.hidden, pairs.weights))
        scores, hidden, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return scores, hidden, weights

    def _item_model(self, train: Interactions) -> ItemModel:
        """Fitted to ``train`` alone; the vectors of ALS too, those of users included, so it is fitted in every fold."""
        small = "ease" if train.n_items <= DENSE_ITEMS else "neighbours"
        match small if self.item_model == "auto" else self.item_model:
            case "ease":
                return ease(train, l2=self.l2, form=self.solver)
            case "als":
                return als(
                    train,
                    dim=self.dim or ALS_DIM,
                    regularization=self.regularization,
                    alpha=self.confidence,
                    iterations=ITERATIONS,
                    seed=int(stream(self.seed, "als of a learned prior").integers(2**31)),
                )
            case "rp3beta":
                return random_walks(train, alpha=WALK_EXPONENT, beta=self.beta, neighbours=self.neighbours)
            case "gfcf":
                return graph_filter(train, alpha=LOW_PASS, rank=self.dim or SINGULAR_VECTORS)
        return item_neighbours(train, neighbours=self.neighbours, shrink=self.shrink)


@dataclass
class _LastFit:
    """The last fitted prior, shared by the seeds of a comparison."""

    prior: CalibratedItemModel | None = None
    lock: Lock = field(default_factory=Lock)


class CalibratedItemModel(Prior):
    """A fitted :class:`Learned`: a calibration curve over the scores of an item model."""

    def __init__(
        self, model: ItemModel, curve: CalibrationCurve, train: Interactions, *, cache: int, likeliest: int
    ) -> None:
        self.model, self.curve, self.train, self.likeliest = model, curve, train, likeliest
        self._form: SparseRows | None = None
        self._form_lock = Lock()
        fits = 4 * train.n_users * train.n_items <= cache * 2**20 and model.rows_are_pairs
        self.rows = _CachedRows(train.n_users, train.n_items) if fits else None

    def is_of(self, train: Interactions) -> bool:
        same = self.train.indices is train.indices and self.train.indptr is train.indptr
        return same or self.train.fingerprint == train.fingerprint

    def fit(self, train: Interactions) -> CalibratedItemModel:
        if not self.is_of(train):
            raise InputError("the prior was fitted to other training data; use the Learned() it came from")
        return self

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        users, items = np.broadcast_arrays(users, items)
        if self.rows is not None:
            self._fill(self.rows, users)
            return self.rows.probabilities[users, items].astype(np.float64)
        scores = self.model.pairs(self.train, users.flatten(), items.flatten())
        return self.curve(scores).astype(np.float32).astype(np.float64).reshape(users.shape)

    def form(self) -> SparseRows:
        """The likeliest items of each user and a base rate for the others; computed once, when a pool first asks."""
        with self._form_lock:
            if self._form is None:
                self._form = self._likeliest_items()
            return self._form

    def _likeliest_items(self) -> SparseRows:
        """In blocks of users: a block has rows of the catalogue, all users never do."""
        from bayesneg.kernels.numba.pools.likeliest import likeliest_items

        train, at_zero = self.train, self.curve(np.zeros(1, dtype=np.float32)).astype(np.float32)[0]

        def block(users: np.ndarray) -> LikeliestItems:
            scores = self.model.rows(train, users)
            scored = scores != 0  # most items have no neighbour among those of the user
            probabilities = np.full(scores.shape, at_zero)
            probabilities[scored] = self.curve(scores[scored])
            return likeliest_items(
                probabilities, users, train.indptr, train.indices, min(self.likeliest, train.n_items)
            )

        blocks = np.array_split(np.arange(train.n_users), -(-train.n_users * train.n_items // BLOCK))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = [_flat(part) for part in pool.map(block, blocks)]
        base, counts, items, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return SparseRows(base, np.concatenate(([0], np.cumsum(counts))), items, values)

    def _fill(self, rows: _CachedRows, users: np.ndarray) -> None:
        """Compute the rows that are not cached yet."""
        missing = np.unique(users[~rows.filled[users]])
        step = max(1, AT_ONCE // self.train.n_items)
        for start in range(0, len(missing), step):
            due = missing[start : start + step]
            rows.probabilities[due] = self.curve(self.model.rows(self.train, due))
            rows.filled[due] = True  # after the row is complete: other threads may be reading


class _CachedRows:
    """The probabilities of all items for the users requested so far."""

    def __init__(self, n_users: int, n_items: int) -> None:
        self.probabilities = np.empty((n_users, n_items), dtype=np.float32)
        self.filled = np.zeros(n_users, dtype=bool)


def _flat(found: LikeliestItems) -> tuple[np.ndarray, ...]:
    """Without the unused ends of the rows."""
    used = np.arange(found.items.shape[1]) < found.counts[:, None]
    return found.base, found.counts, found.items[used], found.values[used]


def _root_mean_square(scores: np.ndarray, weights: np.ndarray) -> float:
    """0 where all weights are 0."""
    if not weights.sum() > 0:
        return 0.0
    return float(np.sqrt(np.average(scores.astype(np.float64) ** 2, weights=weights)))
