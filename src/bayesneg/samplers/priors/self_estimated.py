"""A prior that the model being trained gives itself.

After each epoch the share of false negatives is estimated per band of the model's score and band of the item's
popularity, from training pairs that are kept out of training: how many of them lie in a band, over how many unobserved
pairs do. Both bands together, since scores and popularity go together: a popularity prior times a likelihood of the
score counts popularity twice. For the same reason it is used with ``likelihood="uninformative"``: the scores are in
the prior.
Score bands with a flat prior instead are what :class:`~bayesneg.samplers.likelihoods.Empirical` does.
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
from bayesneg.kernels.rules import Draws
from bayesneg.samplers.candidates import evenly_spread
from bayesneg.samplers.held_out import Probes
from bayesneg.seeding import stream

PAIRS = 1 << 18  # unobserved pairs that stand for all of them
# shares of the probes below each edge: eighths, and ever narrower where scores are highest, since those decide
SCORE_EDGES = np.concatenate((np.arange(1, 8) / 8, 1.0 - 0.5 ** np.arange(4, 9)))
POPULARITY_EDGES = np.arange(1, 6) / 6
SCORE_BANDS, POPULARITY_BANDS = len(SCORE_EDGES) + 1, len(POPULARITY_EDGES) + 1
STRENGTH = 20.0  # probes that a cell is worth before it has any, at the rate of its score band
MOST = 0.95  # of a band at most this share is taken to be false negatives


class Bands:
    """Where pairs fall: by the standing of the score in the user's list and by the popularity of the item."""

    def __init__(self, train: Interactions) -> None:
        self.popularity = train.popularity
        nothing = np.empty((0, 0), dtype=np.float32)
        self.vectors = Embeddings(nothing, nothing)  # of the model as it was at the last epoch end
        self.means = self.scales = np.empty(0)  # (n_users,) of a user's scores over all items

    def look_at(self, vectors: Embeddings) -> None:
        """Take up the vectors; the mean and the deviation of every user's scores follow without any score."""
        users, items = (np.asarray(part, dtype=np.float32).copy() for part in vectors)
        middle = items.mean(axis=0, dtype=np.float64)
        spread = (items - middle).astype(np.float64)
        covariance = spread.T @ spread / len(items)
        self.vectors, self.means = Embeddings(users, items), users @ middle
        self.scales = np.sqrt(np.maximum(np.einsum("ud,de,ue->u", users, covariance, users), 1e-30))

    def standings(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """(x − mean)/deviation of pairs, 0 for all before a model is seen."""
        if len(self.means) == 0:
            return np.zeros(np.broadcast_shapes(np.shape(users), np.shape(items)))
        x = np.einsum("...d,...d->...", self.vectors.users[users], self.vectors.items[items])
        return (x - self.means[users]) / self.scales[users]


@dataclass
class Rates:
    """What a self-estimated prior knows."""

    probes: Probes
    bands: Bands
    false_share: float  # θ
    score_edges: np.ndarray  # (12,)
    popularity_edges: np.ndarray  # (5,)
    table: np.ndarray  # (13, 6) probability of a false negative

    def cells(self, users: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        score = np.searchsorted(self.score_edges, self.bands.standings(users, items), side="right")
        popularity = np.searchsorted(self.popularity_edges, self.bands.popularity[items], side="right")
        return score, popularity

    def estimate(self) -> None:
        """The bands and their rates, from where the probes and the unobserved pairs are now."""
        train, places = self.probes.train, np.flatnonzero(self.probes.held)
        if len(places) == 0:
            self.table = np.full((SCORE_BANDS, POPULARITY_BANDS), self.false_share)
            return
        probes = train.users[places], train.indices[places]
        self.score_edges = np.quantile(self.bands.standings(*probes), SCORE_EDGES)
        self.popularity_edges = np.quantile(train.popularity[probes[1]], POPULARITY_EDGES)
        found, everywhere = _counted(self.cells(*probes)), _counted(self.cells(*evenly_spread(train, PAIRS)))
        evenly = everywhere * (len(places) / max(everywhere.sum(), 1.0))  # where probes like any pair would be
        of_score = (found.sum(axis=1, keepdims=True) + 1.0) / (evenly.sum(axis=1, keepdims=True) + 1.0)
        ratio = (found + STRENGTH) / (evenly + STRENGTH / of_score)
        mean = (ratio * everywhere).sum() / max(everywhere.sum(), 1.0)
        self.table = np.minimum(self.false_share * ratio / max(mean, 1e-300), MOST)


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
    rates: Rates | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        number("hidden", self.hidden, above=0)
        number("held_out", self.held_out, above=0, most=0.5)
        whole("seed", self.seed, least=0)

    def fit(self, train: Interactions) -> SelfEstimated:
        probes = Probes.drawn(train, self.held_out, stream(self.seed, "self prior"))
        n_unobserved = train.n_users * train.n_items - len(train)
        share = min(self.hidden * len(train) / max(n_unobserved, 1), MOST)
        nothing = np.empty(0)
        rates = Rates(probes, Bands(train), share, nothing, nothing, nothing)
        rates.estimate()
        return replace(self, rates=rates)

    def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        rates = self._fitted()
        return rates.table[rates.cells(users, items)]

    def kept_out(self, draws: Draws, positions: np.ndarray) -> Draws:
        return self._fitted().probes.kept_out(draws, positions)

    def end_epoch(self, scorer: Scorer) -> None:
        rates = self._fitted()
        try:
            vectors = scorer.embeddings()
        except InputError as error:
            raise InputError(
                "the self-estimated prior reads where a score stands off the vectors of users and items, and this "
                "model gives scores alone; use likelihood='empirical' with another prior"
            ) from error
        rates.bands.look_at(vectors)
        rates.estimate()

    def state_dict(self) -> dict[str, np.ndarray]:
        rates = self._fitted()
        return {"held": rates.probes.held, **rates.bands.vectors._asdict()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        rates = self._fitted()
        rates.probes.held[:] = state["held"]
        if state["users"].size:
            rates.bands.look_at(Embeddings(state["users"], state["items"]))
        rates.estimate()

    @property
    def weighs_scores(self) -> bool:
        return True

    def _fitted(self) -> Rates:
        if self.rates is None:
            raise InputError("SelfEstimated learns from training data; call prior.fit(train) first, as fit does")
        return self.rates


def _counted(cells: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    score, popularity = cells
    flat = np.bincount(score * POPULARITY_BANDS + popularity, minlength=SCORE_BANDS * POPULARITY_BANDS)
    return flat.reshape(SCORE_BANDS, POPULARITY_BANDS).astype(np.float64)
