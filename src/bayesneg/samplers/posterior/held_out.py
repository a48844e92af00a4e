"""Training pairs held out from training: positives that the model has not been fitted to.

A pair that the model was trained on scores higher than an unobserved pair of the same relevance, so it says nothing
about false negatives. A held-out pair is never trained on: the sampler gives no negative for it in any epoch. It is
never a candidate either, since it is a training pair. The cost is its share of the training examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Scorer
from bayesneg.kernels.reference.choices.base import Draws

MIN_ITEMS = 5  # no pair is held out of users with fewer training items
MAX_PAIRS = 20_000  # more pairs add no precision
MAX_SCORES = 1 << 31  # scores per epoch, at most
AT_ONCE = 1 << 20  # scores held in memory


class Ranks(NamedTuple):
    """The ranks of held-out pairs among their users' unobserved items."""

    above: np.ndarray  # (P,) int64, items with a higher score
    n: np.ndarray  # (P,) length of the ranking, the held-out item included


@dataclass(frozen=True)
class HeldOutPairs:
    """A subset of the training pairs, by their positions in train.indices."""

    train: Interactions
    mask: np.ndarray  # (len(train),) bool

    @classmethod
    def drawn(cls, train: Interactions, share: float, rng: np.random.Generator) -> HeldOutPairs:
        """A uniform ``share`` of the pairs of users with at least five training items; none if there are too few."""
        mask = np.zeros(len(train), dtype=bool)
        eligible = np.flatnonzero(train.counts[train.users] >= MIN_ITEMS)
        wanted = min(round(share * len(eligible)), MAX_PAIRS, MAX_SCORES // train.n_items)
        mask[rng.choice(eligible, wanted, replace=False)] = True
        return cls(train, mask)

    def removed_from(self, draws: Draws, positions: np.ndarray) -> Draws:
        """The draws without candidates for held-out pairs, so that the model is not trained on them."""
        return draws._replace(sizes=np.where(self.mask[positions], 0, draws.sizes).astype(draws.sizes.dtype))

    def ranks(self, scorer: Scorer) -> Ranks:
        """The rank of each held-out pair under the current model."""
        positions = np.flatnonzero(self.mask)
        users, items = self.train.users[positions], self.train.indices[positions]
        above = np.empty(len(positions), dtype=np.int64)
        at_once = max(1, AT_ONCE // self.train.n_items)
        for first in range(0, len(positions), at_once):
            part = slice(first, first + at_once)
            above[part] = self._above(scorer, users[part], items[part])
        return Ranks(above, self.train.n_items - self.train.counts[users] + 1)

    def _above(self, scorer: Scorer, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        x = scorer.score_all(users)  # (B, n_items)
        held_out = x[np.arange(len(users)), items]
        counts = self.train.counts[users]
        rows = np.repeat(np.arange(len(users)), counts)
        starts = np.repeat(self.train.indptr[users] - (np.cumsum(counts) - counts), counts)
        observed = self.train.indices[starts + np.arange(len(rows))]
        higher = x > held_out[:, None]
        higher[rows, observed] = False
        return higher.sum(axis=1)
