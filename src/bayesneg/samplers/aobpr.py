"""Adaptive oversampling: geometric sampling over the ranks of the user's score list.

S. Rendle and C. Freudenthaler, "Improving Pairwise Learning for Item Recommendation from Implicit Feedback",
WSDM 2014. The BNS paper ranks by the user's score list (``rank="score"``); the original's fast approximation ranks by
one randomly drawn factor (``rank="factor"``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from bayesneg.checks import known_settings, number, one_of
from bayesneg.data.interactions import Interactions
from bayesneg.integrity.arrays import ArraySpec, Specs
from bayesneg.interfaces import Batch, Preset, RuleSampler, Scorer, ScorerInParts, own_part
from bayesneg.kernels.reference.choices.aobpr import FACTOR_TRIES, AtFactorRank, AtScoreRank
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.plans import CandidatePlan
from bayesneg.samplers.candidates import no_numbers, prepared


@dataclass
class FactorLists:
    """Items sorted by each factor, recomputed every |I|·ln|I| choices; allocated when the model is first seen.

    One of several processes keeps the lists of its factors.
    """

    orders: np.ndarray = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))
    spreads: np.ndarray = field(default_factory=lambda: np.empty(0))
    clock: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    def fit_to(self, scorer: Scorer) -> None:
        if len(self.spreads):
            return
        if isinstance(scorer, ScorerInParts):  # all processes sort together, before the first choice
            part = own_part(scorer)
            self.orders = np.zeros((part.factors[1] - part.factors[0], scorer.n_items), dtype=np.int32)
            self.spreads = np.zeros(part.dim)
        else:
            items = scorer.embeddings().items
            self.orders = np.argsort(-items.T, axis=1, kind="stable").astype(np.int32)
            self.spreads = items.astype(np.float64).std(axis=0)


@known_settings()
@dataclass(frozen=True)
class AOBPR(RuleSampler):
    """Adaptive oversampling: P(j) ∝ exp(−rank(j|u)/λ) over the user's unobserved items, rank 0 the highest.

    With ``rank="factor"`` a draw that is a training item is rejected; after eight rejections the next unobserved item
    of that factor's list is taken.

    Args:
        scale: Scale λ of the exponential, in ranks.
        fraction: Scale λ as a fraction of the number of items, which replaces ``scale`` when given.
        rank: Ranking to draw from: ``"score"`` (the user's score list) or ``"factor"`` (one factor's list).

    Example:
        >>> AOBPR(fraction=0.05).rank
        'score'

    Reference:
        S. Rendle and C. Freudenthaler, "Improving Pairwise Learning for Item Recommendation from Implicit Feedback",
        WSDM 2014.
    """

    NAMES: ClassVar = {
        "aobpr": Preset("high ranks of the user's score list, with exponentially decreasing probability"),
        "aobpr-factor": Preset("the original's fast approximation: ranks of one factor's list", {"rank": "factor"}),
    }

    scale: float = 200.0
    fraction: float | None = None
    rank: Literal["score", "factor"] = "score"
    n_items: int | None = field(default=None, repr=False, compare=False)
    lists: FactorLists | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        number("scale", self.scale, above=0)
        if self.fraction is not None:
            number("fraction", self.fraction, above=0, most=1)
        one_of("rank", self.rank, ("score", "factor"))

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> AOBPR:
        return replace(self, n_items=train.n_items, lists=FactorLists())

    def rule(self, batch: Batch) -> AtScoreRank | AtFactorRank:
        n_items, lists = prepared(self.n_items), prepared(self.lists)
        scale = float(self.scale if self.fraction is None else self.fraction * n_items)
        if self.rank == "score":
            return AtScoreRank(scale)
        lists.fit_to(batch.scorer)
        period = max(1, int(n_items * np.log(n_items)))
        return AtFactorRank(scale, lists.orders, lists.spreads, lists.clock, period)

    @property
    def unused_settings(self) -> frozenset[str]:
        return frozenset() if self.fraction is None else frozenset({"scale"})

    def width(self, n_items: int) -> int:
        return 2 * FACTOR_TRIES

    def plan(self, batch: Batch) -> CandidatePlan:
        return CandidatePlan(0, uniforms=self._n_uniforms)

    @property
    def _n_uniforms(self) -> int:
        return 1 if self.rank == "score" else 2 * FACTOR_TRIES

    def draws(self, batch: Batch) -> Draws:
        unobserved = batch.train.n_items - batch.train.counts[batch.users]
        return Draws(
            np.empty((len(unobserved), 0), dtype=np.int32),
            (unobserved > 0).astype(np.int32),
            no_numbers(len(unobserved)),
            batch.uniforms(self._n_uniforms),
        )

    def state_dict(self) -> dict[str, np.ndarray]:
        if self.rank == "score" or self.lists is None or not len(self.lists.spreads):
            return {}
        return {"orders": self.lists.orders, "spreads": self.lists.spreads, "clock": self.lists.clock}

    @property
    def divided_state(self) -> dict[str, str]:
        return {"orders": "factors"}

    def state_specs(self, train: Interactions) -> Specs:
        if self.rank == "score":
            return {}
        return {
            "orders": ArraySpec(("factors", train.n_items), "int32", least=0, below=train.n_items, optional=True),
            "spreads": ArraySpec(("dim",), least=0, optional=True),
            "clock": ArraySpec((1,), "int64", least=0, optional=True),
        }

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        if state:
            lists = prepared(self.lists)
            lists.orders, lists.spreads = state["orders"].copy(), state["spreads"].copy()
            lists.clock[:] = state["clock"]
