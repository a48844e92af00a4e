"""Training pairs that are kept from training, so that the model can be asked about positives it has not learned.

A pair the model has trained on scores higher than an unobserved one that the user would like just as much, so what it
tells about false negatives is wrong. A probe is never trained on: the sampler gives no negative for it, in any epoch.
It is no candidate either, since it is a training pair. What is lost is its share of the examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Scorer
from bayesneg.kernels.rules import Draws

LEAST_ITEMS = 5  # a user with fewer keeps them all
MOST = 20_000  # more pairs than this tell no more
SCORES = 1 << 31  # looked at in an epoch, at most
AT_ONCE = 1 << 20  # scores held at once


class Standing(NamedTuple):
    """Where probes stand in their users' lists of unobserved items, each put into its list."""

    above: np.ndarray  # (P,) int64, items that score higher
    n: np.ndarray  # (P,) items in the list, the probe among them


@dataclass(frozen=True)
class Probes:
    """Some pairs of a training set, by their positions in train.indices."""

    train: Interactions
    held: np.ndarray  # (len(train),) bool

    @classmethod
    def drawn(cls, train: Interactions, share: float, rng: np.random.Generator) -> Probes:
        """``share`` of the pairs, uniformly, of users with at least five; none where there are too few."""
        held = np.zeros(len(train), dtype=bool)
        eligible = np.flatnonzero(train.counts[train.users] >= LEAST_ITEMS)
        wanted = min(round(share * len(eligible)), MOST, SCORES // train.n_items)
        held[rng.choice(eligible, wanted, replace=False)] = True
        return cls(train, held)

    def kept_out(self, draws: Draws, positions: np.ndarray) -> Draws:
        """The draws with no candidate for a probe, so that nothing is learned from it."""
        return draws._replace(sizes=np.where(self.held[positions], 0, draws.sizes).astype(draws.sizes.dtype))

    def standing(self, scorer: Scorer) -> Standing:
        """Where the model, as it is, places each probe."""
        places = np.flatnonzero(self.held)
        users, items = self.train.users[places], self.train.indices[places]
        above = np.empty(len(places), dtype=np.int64)
        at_once = max(1, AT_ONCE // self.train.n_items)
        for first in range(0, len(places), at_once):
            part = slice(first, first + at_once)
            above[part] = self._above(scorer, users[part], items[part])
        return Standing(above, self.train.n_items - self.train.counts[users] + 1)

    def _above(self, scorer: Scorer, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        x = scorer.score_all(users)  # (B, n_items)
        own = x[np.arange(len(users)), items]
        counts = self.train.counts[users]
        rows = np.repeat(np.arange(len(users)), counts)
        starts = np.repeat(self.train.indptr[users] - (np.cumsum(counts) - counts), counts)
        observed = self.train.indices[starts + np.arange(len(rows))]
        higher = x > own[:, None]
        higher[rows, observed] = False
        return higher.sum(axis=1)
