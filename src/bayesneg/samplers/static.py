"""Samplers that never look at a score.

RNS: S. Rendle et al., "BPR: Bayesian Personalized Ranking from Implicit Feedback", UAI 2009.
PNS: T. Mikolov et al., "Distributed Representations of Words and Phrases and their Compositionality", NIPS 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from bayesneg.checks import boolean, known_settings, number, whole
from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Batch, CandidateDraw, Preset, RuleSampler
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.take import TakeFirst
from bayesneg.kernels.reference.plans import CandidatePlan, DrawPlan, PoolPlan, pool_log_q
from bayesneg.kernels.reference.pools import EqualWeights, SharedPool
from bayesneg.kernels.reference.selections import TakeAll
from bayesneg.samplers.candidates import UniformDraw, drawn_by, no_numbers, prepared
from bayesneg.samplers.pools import check_shared, uniform_pool
from bayesneg.seeding import seed_from


@known_settings()
@dataclass(frozen=True)
class RNS(RuleSampler):
    """Random negative sampling: P(j) = 1/|I⁻|, uniform over the user's unobserved items.

    Args:
        draw: Distribution from which the negatives are drawn, uniform by default.
        negatives: Number of negatives for each example, or in the pool that all examples of a batch share.
        shared: Whether all examples of a batch share one pool of negatives, drawn from the whole catalogue; an item
            does not count for users who have it in the training data.

    Example:
        >>> RNS(negatives=2048, shared=True).negatives
        2048

    Reference:
        S. Rendle et al., "BPR: Bayesian Personalized Ranking from Implicit Feedback", UAI 2009.
    """

    NAMES: ClassVar = {"rns": Preset("uniform over the unobserved items")}

    draw: CandidateDraw = field(default_factory=UniformDraw)
    negatives: int = 1
    shared: bool = False

    def __post_init__(self) -> None:
        whole("negatives", self.negatives)
        check_shared(self.shared, self.draw)

    def rule(self, batch: Batch) -> TakeFirst | TakeAll | EqualWeights:
        if self.shared:
            return EqualWeights()
        return TakeFirst() if self.negatives == 1 else TakeAll()

    @property
    def gives_weights(self) -> bool:
        return self.negatives > 1 or self.shared

    @property
    def gives_several(self) -> bool:
        return self.negatives > 1

    def width(self, n_items: int) -> int:
        return self.negatives

    def wanted(self, n_items: int) -> int:
        return 1 if self.shared else self.negatives

    def draws(self, batch: Batch) -> Draws:
        candidates, sizes = drawn_by(self.draw, batch, self.negatives)
        return Draws(candidates, sizes, no_numbers(len(sizes)), no_numbers(len(sizes)))

    @property
    def is_shared(self) -> bool:
        return self.shared

    def pool(self, batch: Batch) -> SharedPool:
        return uniform_pool(self.negatives, batch)

    def plan(self, batch: Batch) -> DrawPlan | None:
        if self.shared:
            return PoolPlan(self.negatives)
        return CandidatePlan(self.negatives) if isinstance(self.draw, UniformDraw) else None


class PopularityTables(NamedTuple):
    """Cumulative popularity weights, with a guide table for inverse-CDF sampling."""

    mass: np.ndarray  # (n_items + 1,) over the catalogue
    row_mass: np.ndarray  # (n + n_users,) over each user's training items, from 0
    n_weighted: int  # items of positive weight
    guide: np.ndarray  # (2^g,) int32, the item at each 2^g-th part of the whole mass

    @property
    def probabilities(self) -> np.ndarray:
        """The probability (n_items,) of each item in a draw from the whole catalogue."""
        return np.diff(self.mass) / self.mass[-1]

    @classmethod
    def of(cls, train: Interactions, power: float) -> PopularityTables:
        popularity = train.popularity.astype(np.float64)
        weights = np.zeros(train.n_items)
        np.power(popularity / popularity.max(), power, out=weights, where=popularity > 0)
        running = np.insert(np.cumsum(weights[train.indices]), 0, 0.0)
        user = np.repeat(np.arange(train.n_users), train.counts + 1)
        row_mass = running[np.arange(len(user)) - user] - running[train.indptr[user]]
        mass = np.insert(np.cumsum(weights), 0, 0.0)
        parts = 2 << train.n_items.bit_length()  # two to four for each item, so that the search in a part is short
        guide = np.searchsorted(mass, np.arange(parts) / parts * mass[-1], side="right") - 1
        return cls(mass, row_mass, int((popularity > 0).sum()), guide.astype(np.int32))


@known_settings()
@dataclass(frozen=True)
class PNS(RuleSampler):
    """Popularity-biased negative sampling: P(j) ∝ pop(j)^power over the user's unobserved items.

    Popularity counts training interactions only. An item without any is never drawn, and a user all of whose
    unobserved items have none is skipped.

    Several negatives of an example, and the items of a pool, are drawn independently; an item that is drawn again does
    not count in a pool. Losses that take the probabilities of the draw are corrected by them (log q), with one negative
    as with several.

    Args:
        power: Exponent of the item popularity; 0 is uniform over the items with training interactions.
        negatives: Number of negatives for each example, or in the pool that all examples of a batch share.
        shared: Whether all examples of a batch share one pool of negatives; an item does not count for users who have
            it in the training data.

    Example:
        >>> PNS(power=0.5).negatives
        1

    Reference:
        T. Mikolov et al., "Distributed Representations of Words and Phrases and their Compositionality", NIPS 2013.
    """

    NAMES: ClassVar = {"pns": Preset("popular items more often")}

    power: float = 0.75
    negatives: int = 1
    shared: bool = False
    tables: PopularityTables | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        number("power", self.power, least=0)
        whole("negatives", self.negatives)
        boolean("shared", self.shared)

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> PNS:
        return replace(self, tables=PopularityTables.of(train, self.power))

    def rule(self, batch: Batch) -> TakeFirst | TakeAll | EqualWeights:
        if self.shared:
            return EqualWeights()
        return TakeFirst() if self.negatives == 1 else TakeAll()

    @property
    def gives_weights(self) -> bool:
        return self.negatives > 1 or self.shared

    @property
    def gives_several(self) -> bool:
        return self.negatives > 1

    def width(self, n_items: int) -> int:
        return self.negatives

    @property
    def is_shared(self) -> bool:
        return self.shared

    def pool(self, batch: Batch) -> SharedPool:
        p = prepared(self.tables).probabilities
        items = np.searchsorted(np.cumsum(p), batch.rng.random(self.negatives), side="right")
        items = np.minimum(items, np.flatnonzero(p)[-1]).astype(np.int32)
        return SharedPool(items, pool_log_q(p[items], self.negatives, int(np.count_nonzero(p))))

    def plan(self, batch: Batch) -> DrawPlan:
        p = prepared(self.tables).probabilities
        return PoolPlan(self.negatives, p) if self.shared else CandidatePlan(self.negatives, probabilities=p)

    def log_q(self, batch: Batch) -> np.ndarray:
        p = prepared(self.tables).probabilities
        with np.errstate(divide="ignore"):
            return np.log(p * np.count_nonzero(p))

    def draws(self, batch: Batch) -> Draws:
        candidates, sizes = weighted_candidates(prepared(self.tables), batch, self.negatives)
        return Draws(candidates, sizes, no_numbers(len(sizes)), no_numbers(len(sizes)))


def weighted_candidates(tables: PopularityTables, batch: Batch, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Unobserved items (B, size), drawn independently by popularity, and their number (B,): all, or none."""
    from bayesneg.kernels.numba import draws

    places = None
    if batch.share is not None:
        places = batch.share.places
        tables = tables._replace(row_mass=tables.row_mass[batch.share.start :])  # begins with the rows of this process

    def draw_one() -> tuple[np.ndarray, np.ndarray]:
        observed, seed, threads = batch.train.observed, seed_from(batch.rng), batch.threads
        return draws.weighted_items(batch.users, observed, *tables, seed, threads=threads, places=places)

    drawn = [draw_one() for _ in range(size)]
    candidates = drawn[0][0] if size == 1 else np.concatenate([items for items, _ in drawn], axis=1)
    return candidates, drawn[0][1] * np.int32(size)
