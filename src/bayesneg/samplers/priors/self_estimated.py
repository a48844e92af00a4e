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
from typing import ClassVar

import numpy as np

from bayesneg.checks import number, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Embeddings, Prior, Scorer
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.samplers.candidates import evenly_spread
from bayesneg.samplers.posterior.held_out import HeldOutPairs
from bayesneg.samplers.priors.basic import unfitted
from bayesneg.seeding import stream

MAX_PAIRS = 1 << 18  # unobserved pairs that are sampled
# shares of the held-out pairs below each edge: eighths, then halving, since the highest scores decide
SCORE_EDGES = np.concatenate((np.arange(1, 8) / 8, 1.0 - 0.5 ** np.arange(4, 9)))
POPULARITY_EDGES = np.arange(1, 6) / 6
SCORE_BINS, POPULARITY_BINS = len(SCORE_EDGES) + 1, len(POPULARITY_EDGES) + 1
STRENGTH = 20.0  # pseudo-count of a cell, at the rate of its score bin
MAX_PROBABILITY = 0.95


class StandardizedScores:
    """Scores standardized per user, (x − mean)/deviation over all items, by the embeddings of the last epoch end."""

    def __init__(self) -> None:
        nothing = np.empty((0, 0), dtype=np.float32)
        self.embeddings = Embeddings(nothing, nothing)
        self.means = self.deviations = np.empty(0)  # (n_users,)

    def update(self, embeddings: Embeddings) -> None:
        """Take a copy of the embeddings; the moments of every user's scores follow without computing a score."""
        users, items = (np.asarray(part, dtype=np.float32).copy() for part in embeddings)
        middle = items.mean(axis=0, dtype=np.float64)
        centred = (items - middle).astype(np.float64)
        covariance = centred.T @ centred / len(items)
        self.embeddings, self.means = Embeddings(users, items), users @ middle
        self.deviations = np.sqrt(np.maximum(np.einsum("ud,de,ue->u", users, covariance, users), 1e-30))

    def of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The standardized scores of pairs; 0 before the first update."""
        if len(self.means) == 0:
            return np.zeros(np.broadcast_shapes(np.shape(users), np.shape(items)))
        if np.ndim(users) == 2 and np.shape(users)[1] == 1 and np.shape(items)[0] == 1:  # a batch and a pool
            x = self.embeddings.users[users[:, 0]] @ self.embeddings.items[items[0]].T
        else:
            x = np.einsum("...d,...d->...", self.embeddings.users[users], self.embeddings.items[items])
        return (x - self.means[users]) / self.deviations[users]


@dataclass
class BinnedRates:
    """The state of a self-estimated prior: the rate of false negatives per score bin and popularity bin."""

    held_out: HeldOutPairs
    scores: StandardizedScores
    mean: float  # probability over all unobserved pairs, θ
    score_edges: np.ndarray  # (12,)
    popularity_edges: np.ndarray  # (5,)
    table: np.ndarray  # (13, 6) probability of a false negative

    def bins(self, users: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The score bins and popularity bins of pairs."""
        score = np.searchsorted(self.score_edges, self.scores.of(users, items), side="right")
        popularity = np.searchsorted(self.popularity_edges, self.held_out.train.popularity[items], side="right")
        return score, popularity

    def estimate(self) -> None:
        """Recompute the bins and their rates from the current scores of held-out and unobserved pairs."""
        train, positions = self.held_out.train, np.flatnonzero(self.held_out.mask)
        if len(positions) == 0:
            self.table = np.full((SCORE_BINS, POPULARITY_BINS), self.mean)
            return
        users, items = train.users[positions], train.indices[positions]
        self.score_edges = np.quantile(self.scores.of(users, items), SCORE_EDGES)
        self.popularity_edges = np.quantile(train.popularity[items], POPULARITY_EDGES)
        found = _histogram(self.bins(users, items))
        unobserved = _histogram(self.bins(*evenly_spread(train, MAX_PAIRS)))
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
        return rates.table[rates.bins(users, items)]

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
            embeddings = scorer.embeddings()
        except InputError as error:
            raise InputError(
                "SelfEstimated needs the embeddings of users and items, and this model gives scores only; use "
                "likelihood='empirical' with another prior"
            ) from error
        rates.scores.update(embeddings)
        rates.estimate()

    def state_dict(self) -> dict[str, np.ndarray]:
        rates = self._fitted()
        return {"held": rates.held_out.mask, **rates.scores.embeddings._asdict()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        rates = self._fitted()
        rates.held_out.mask[:] = state["held"]
        if state["users"].size:
            rates.scores.update(Embeddings(state["users"], state["items"]))
        rates.estimate()

    def _fitted(self) -> BinnedRates:
        if self.rates is None:
            raise unfitted(self)
        return self.rates


def _histogram(bins: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    score, popularity = bins
    flat = np.bincount(score * POPULARITY_BINS + popularity, minlength=SCORE_BINS * POPULARITY_BINS)
    return flat.reshape(SCORE_BINS, POPULARITY_BINS).astype(np.float64)
