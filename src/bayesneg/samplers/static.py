"""Samplers that never look at a score.

RNS: S. Rendle et al., "BPR: Bayesian Personalized Ranking from Implicit Feedback", UAI 2009.
PNS: T. Mikolov et al., "Distributed Representations of Words and Phrases and their Compositionality", NIPS 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from bayesneg.checks import number
from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Batch, CandidateDraw, Preset, RuleSampler
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.take import TakeFirst
from bayesneg.samplers.candidates import UniformDraw, drawn_by, no_numbers, prepared
from bayesneg.seeding import seed_from


@dataclass(frozen=True)
class RNS(RuleSampler):
    """Random negative sampling: P(j) = 1/|I⁻|, uniform over the user's unobserved items.

    Args:
        draw: Distribution from which the negative is drawn, uniform by default.

    Example:
        >>> RNS()
        RNS(draw=UniformDraw())

    Reference:
        S. Rendle et al., "BPR: Bayesian Personalized Ranking from Implicit Feedback", UAI 2009.
    """

    NAMES: ClassVar = {"rns": Preset("uniform over the unobserved items")}

    draw: CandidateDraw = field(default_factory=UniformDraw)

    def rule(self, batch: Batch) -> TakeFirst:
        return TakeFirst()

    def width(self, n_items: int) -> int:
        return 1

    def draws(self, batch: Batch) -> Draws:
        candidates, sizes = drawn_by(self.draw, batch, 1)
        return Draws(candidates, sizes, no_numbers(len(sizes)), no_numbers(len(sizes)))


class PopularityTables(NamedTuple):
    """Cumulative popularity weights, with a guide table for inverse-CDF sampling."""

    mass: np.ndarray  # (n_items + 1,) over the catalogue
    row_mass: np.ndarray  # (n + n_users,) over each user's training items, from 0
    n_weighted: int  # items of positive weight
    guide: np.ndarray  # (2^g,) int32, the item at each 2^g-th part of the whole mass

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


@dataclass(frozen=True)
class PNS(RuleSampler):
    """Popularity-biased negative sampling: P(j) ∝ pop(j)^power over the user's unobserved items.

    Popularity counts training interactions only. An item without any is never drawn, and a user all of whose
    unobserved items have none is skipped.

    Args:
        power: Exponent of the item popularity; 0 is uniform over the items with training interactions.

    Example:
        >>> PNS(power=0.5)
        PNS(power=0.5)

    Reference:
        T. Mikolov et al., "Distributed Representations of Words and Phrases and their Compositionality", NIPS 2013.
    """

    NAMES: ClassVar = {"pns": Preset("popular items more often")}

    power: float = 0.75
    tables: PopularityTables | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        number("power", self.power, least=0)

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> PNS:
        return replace(self, tables=PopularityTables.of(train, self.power))

    def rule(self, batch: Batch) -> TakeFirst:
        return TakeFirst()

    def width(self, n_items: int) -> int:
        return 1

    def draws(self, batch: Batch) -> Draws:
        from bayesneg.kernels.numba import draws

        tables = prepared(self.tables)
        candidates, sizes = draws.weighted_items(
            batch.users, batch.train.observed, *tables, seed_from(batch.rng), threads=batch.threads
        )
        return Draws(candidates, sizes, no_numbers(len(sizes)), no_numbers(len(sizes)))
