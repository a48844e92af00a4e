"""A prior estimated from the model in training.

After each epoch the share of false negatives is estimated per bin of the model's score and of the item's popularity,
from training pairs held out from training: their number in a bin over the number of unobserved pairs in it. The bins
are joint, since scores and popularity are correlated: a popularity prior times a likelihood of the score counts
popularity twice. For the same reason the prior is used with ``likelihood="uninformative"``.
:class:`~bayesneg.samplers.posterior.likelihoods.Empirical` has score bins alone, for any prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from bayesneg.checks import number, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.integrity.arrays import ArraySpec, Specs
from bayesneg.interfaces import Embeddings, EmbeddingsInParts, Prior, Scorer, ScorerInParts
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.pools import Computed
from bayesneg.samplers.candidates import evenly_spread
from bayesneg.samplers.posterior.held_out import HeldOutPairs
from bayesneg.samplers.priors.basic import unfitted
from bayesneg.seeding import stream

MAX_PAIRS = 1 << 18  # unobserved pairs that are sampled
AT_ONCE = 1 << 16  # pairs scored at once
# shares of the held-out pairs below each edge: eighths, then halving, since the highest scores decide
SCORE_EDGES = np.concatenate((np.arange(1, 8) / 8, 1.0 - 0.5 ** np.arange(4, 9)))
POPULARITY_EDGES = np.arange(1, 6) / 6
SCORE_BINS, POPULARITY_BINS = len(SCORE_EDGES) + 1, len(POPULARITY_EDGES) + 1
STRENGTH = 20.0  # pseudo-count of a cell, at the rate of its score bin
MAX_PROBABILITY = 0.95


class WholeEmbeddings:
    """As declared by :class:`~bayesneg.interfaces.EmbeddingsInParts`, of one process that has all of them."""

    def __init__(self, embeddings: Embeddings) -> None:
        self.users, self.items = (np.asarray(part, dtype=np.float32).copy() for part in embeddings)
        self.first_user = 0

    def scores(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        if np.ndim(users) == 2 and np.shape(users)[1] == 1 and np.shape(items)[0] == 1:  # a batch and a pool
            found: np.ndarray = self.users[users[:, 0]] @ self.items[items[0]].T
            return found
        return np.einsum("...d,...d->...", self.users[users], self.items[items])

    def read_ahead(self, items: np.ndarray) -> None:
        return

    def pool_scores(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return self.scores(users, items)

    def total(self, part: Any) -> np.ndarray:
        return np.asarray(part)


class StandardizedScores:
    """Scores standardized per user, (x − mean)/deviation over all items, by the embeddings of the last epoch end.

    In one of several processes ``means`` and ``deviations`` are those of its users, whose pairs :meth:`of` scores.
    """

    def __init__(self) -> None:
        self.embeddings: EmbeddingsInParts | None = None
        self.means = self.deviations = np.empty(0)  # (n,)

    def update(self, embeddings: EmbeddingsInParts) -> None:
        """Take over the embeddings; the moments of every user's scores follow without computing a score."""
        users, items, total = embeddings.users, embeddings.items, embeddings.total
        n = total(len(items))
        middle = total(items.sum(axis=0, dtype=np.float64)) / n
        centred = (items - middle).astype(np.float64)
        covariance = total(centred.T @ centred) / n
        self.embeddings, self.means = embeddings, users @ middle
        self.deviations = np.sqrt(np.maximum(np.einsum("ud,de,ue->u", users, covariance, users), 1e-30))

    def of(self, users: np.ndarray, items: np.ndarray, *, pool: bool = False) -> np.ndarray:
        """The standardized scores of pairs; of a pool (1, N) that was read ahead; 0 before the first update."""
        if self.embeddings is None:
            return np.zeros(np.broadcast_shapes(np.shape(users), np.shape(items)))
        x = (self.embeddings.pool_scores if pool else self.embeddings.scores)(users, items)
        within = np.asarray(users) - self.embeddings.first_user
        return (x - self.means[within]) / self.deviations[within]

    def of_all(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The standardized scores of pairs (n,) of any users, which all processes give alike."""
        if self.embeddings is None:
            return self.of(users, items)
        found, first = np.zeros(len(users)), self.embeddings.first_user
        own = (users >= first) & (users < first + len(self.means))
        for begin in range(0, len(users), AT_ONCE):  # as many rounds in each process
            some = begin + np.flatnonzero(own[begin : begin + AT_ONCE])
            found[some] = self.of(users[some], items[some])
        return self.embeddings.total(found)


@dataclass
class BinnedRates:
    """The state of a self-estimated prior: the rate of false negatives per score bin and popularity bin."""

    held_out: HeldOutPairs
    scores: StandardizedScores
    mean: float  # probability over all unobserved pairs, θ
    score_edges: np.ndarray  # (12,)
    popularity_edges: np.ndarray  # (5,)
    table: np.ndarray  # (13, 6) probability of a false negative

    def bins(self, scores: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The score bins and popularity bins of pairs, from their standardized scores and items."""
        score = np.searchsorted(self.score_edges, scores, side="right")
        popularity = np.searchsorted(self.popularity_edges, self.held_out.train.popularity[items], side="right")
        return score, popularity

    def estimate(self) -> None:
        """Recompute the bins and their rates from the current scores of held-out and unobserved pairs."""
        train, positions = self.held_out.train, np.flatnonzero(self.held_out.mask)
        if len(positions) == 0:
            self.table = np.full((SCORE_BINS, POPULARITY_BINS), self.mean)
            return
        users, items = train.users[positions], train.indices[positions]
        scores = self.scores.of_all(users, items)
        self.score_edges = np.quantile(scores, SCORE_EDGES)
        self.popularity_edges = np.quantile(train.popularity[items], POPULARITY_EDGES)
        found = _histogram(self.bins(scores, items))
        users, items = evenly_spread(train, MAX_PAIRS)
        unobserved = _histogram(self.bins(self.scores.of_all(users, items), items))
        expected = unobserved * (len(positions) / max(unobserved.sum(), 1.0))  # if held-out pairs were like any other
        of_score = (found.sum(axis=1, keepdims=True) + 1.0) / (expected.sum(axis=1, keepdims=True) + 1.0)
        ratio = (found + STRENGTH) / (expected + STRENGTH / of_score)
        mean = (ratio * unobserved).sum() / max(unobserved.sum(), 1.0)
        self.table = np.minimum(self.mean * ratio / max(mean, 1e-300), MAX_PROBABILITY)


@dataclass(frozen=True)
class SelfEstimated(Prior):
    """A prior from the model in training: p = P(false negative | score bin, popularity bin).

    The probabilities are re-estimated after each epoch from held-out training pairs. In the first epoch only the
    popularity bin is informative; with too few pairs to hold out all probabilities are the mean. Use it with
    ``likelihood="uninformative"``: a likelihood would count the scores twice.

    Args:
        hidden: Assumed ratio of hidden to observed positives, which sets the mean probability.
        held_out: Share of the training pairs held out from training, at most 20,000 pairs.
        seed: Seed of the held-out pairs.

    Example:
        >>> from bayesneg.data.synthetic import synthetic
        >>> prior = SelfEstimated(hidden=0.5).fit(synthetic(40, 30, seed=0))
        >>> prior.probability(np.array([0]), np.array([[1, 2]])).shape
        (1, 2)
    """

    NAME: ClassVar = "self"
    hidden: float = 0.25
    held_out: float = 0.05
    seed: int = 0
    rates: BinnedRates | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        number("hidden", self.hidden, above=0)
        number("held_out", self.held_out, above=0, most=0.5)
        whole("seed", self.seed, least=0)

    def fit(self, train: Interactions) -> SelfEstimated:
        held_out = HeldOutPairs.drawn(train, self.held_out, stream(self.seed, "self prior"))
        n_unobserved = train.n_users * train.n_items - len(train)
        mean = min(self.hidden * len(train) / max(n_unobserved, 1), MAX_PROBABILITY)
        nothing = np.empty(0)
        rates = BinnedRates(held_out, StandardizedScores(), mean, nothing, nothing, nothing)
        rates.estimate()
        return replace(self, rates=rates)

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        rates = self._fitted()
        return rates.table[rates.bins(rates.scores.of(users, items), items)]

    def form(self) -> Computed:
        return Computed(self._of_pool)

    def _of_pool(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The probabilities of users (B, 1) and a pool (1, N), in one process of any pairs."""
        rates = self._fitted()
        return rates.table[rates.bins(rates.scores.of(users, items, pool=True), items)]

    def read_ahead(self, items: np.ndarray) -> None:
        embeddings = self._fitted().scores.embeddings
        if embeddings is not None:
            embeddings.read_ahead(items)

    @property
    def follows_training(self) -> bool:
        return True

    @property
    def uses_scores(self) -> bool:
        return True

    def without_held_out(self, draws: Draws, positions: np.ndarray) -> Draws:
        return self._fitted().held_out.removed_from(draws, positions)

    def end_epoch(self, scorer: Scorer) -> None:
        rates = self._fitted()
        try:
            embeddings: EmbeddingsInParts
            if isinstance(scorer, ScorerInParts):
                embeddings = scorer.embeddings_in_parts()
            else:
                embeddings = WholeEmbeddings(scorer.embeddings())
        except InputError as error:
            raise InputError(
                "SelfEstimated needs the embeddings of users and items, and this model gives scores only; use "
                "likelihood='empirical' with another prior"
            ) from error
        rates.scores.update(embeddings)
        rates.estimate()

    def state_dict(self) -> dict[str, np.ndarray]:
        rates = self._fitted()
        state, embeddings = {"held": rates.held_out.mask}, rates.scores.embeddings
        if isinstance(embeddings, WholeEmbeddings):  # several processes read those of the model again
            state |= {"users": embeddings.users, "items": embeddings.items}
        return state

    def state_specs(self, train: Interactions) -> Specs:
        vectors = {name: ArraySpec((name, "dim"), optional=True) for name in ("users", "items")}
        return {"held": ArraySpec((len(train),), "bool"), **vectors}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        rates = self._fitted()
        rates.held_out.mask[:] = state["held"]
        if "users" in state:
            rates.scores.update(WholeEmbeddings(Embeddings(state["users"], state["items"])))
        rates.estimate()

    def _fitted(self) -> BinnedRates:
        if self.rates is None:
            raise unfitted(self)
        return self.rates


def _histogram(bins: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    score, popularity = bins
    flat = np.bincount(score * POPULARITY_BINS + popularity, minlength=SCORE_BINS * POPULARITY_BINS)
    return flat.reshape(SCORE_BINS, POPULARITY_BINS).astype(np.float64)
