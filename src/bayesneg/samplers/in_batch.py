"""In-batch negatives: the positives of the other examples of the mini-batch.

They come for free where positives are embedded anyway, and are drawn in proportion to popularity; a loss is corrected
by the probabilities of the draw (log q): X. Yi et al., "Sampling-Bias-Corrected Neural Modeling for Large Corpus Item
Recommendations", RecSys 2019.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from bayesneg.checks import boolean, known_settings
from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Batch, Preset
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.posterior import LeastRisk
from bayesneg.kernels.reference.formulas import UNOBSERVED
from bayesneg.kernels.reference.plans import PoolPlan, pool_log_q
from bayesneg.kernels.reference.pools import EqualWeights, PoolRule, SharedPool, WeightsByPoolRank
from bayesneg.samplers.candidates import no_numbers, prepared
from bayesneg.samplers.posterior.likelihoods import Likelihood, Paper
from bayesneg.samplers.posterior.sampler import PosteriorSampler, Weighting, check_weighting, risk_weight
from bayesneg.samplers.priors.basic import Popularity, PriorLike
from bayesneg.samplers.schedules import Schedule, weight_at


@known_settings()
@dataclass(frozen=True, kw_only=True)
class InBatch(PosteriorSampler):
    """In-batch negatives, weighted by the posterior if asked: the positives of the batch, shared by its examples.

    An item counts once, and not for users who have it in the training data. Ranks among items drawn by popularity are
    corrected by the probabilities of the draw before they are taken for F.

    Args:
        weighting: Weights of the negatives: ``"none"`` (1), ``"posterior"`` (unbias), ``"risk"`` (the ramp of the
            sampling risk) or ``"oracle"`` (from held-out labels: an upper bound).
        prior: Prior probability that an unobserved item is a false negative: a :class:`Prior` or a function
            ``(users, items) → probability``.
        likelihood: Step from the share of the score list to F: ``"paper"``, ``"mixture"``, ``"bcl"``, ``"empirical"``,
            ``"uninformative"``, or an object with settings.
        weight: Weight λ of the sampling risk, for ``weighting="risk"``.
        corrected: Whether the loss is corrected by the log-probabilities of the draw.

    Example:
        >>> InBatch(weighting="posterior", likelihood="mixture").is_shared
        True

    Reference:
        X. Yi et al., "Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations", RecSys 2019.
    """

    NAMES: ClassVar = {"in-batch": Preset("the positives of the other examples of the mini-batch")}

    weighting: Weighting = "none"
    prior: PriorLike = field(default_factory=Popularity)
    likelihood: Likelihood | str = field(default_factory=Paper)
    weight: float | str | Schedule = 5.0
    corrected: bool = True
    probabilities: np.ndarray | None = field(default=None, repr=False, compare=False)  # (n_items,) of a training pair

    def __post_init__(self) -> None:
        self.convert_parts()
        boolean("corrected", self.corrected)
        check_weighting(self, self.weighting, self.weight)

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> InBatch:
        return replace(super().prepare(train, rng=rng), probabilities=train.popularity / len(train))

    def rule(self, batch: Batch) -> PoolRule:
        if self.weighting == "none":
            return EqualWeights()
        weight = risk_weight(self.weighting, self.weight, batch.epoch)
        return WeightsByPoolRank(weight, self.weighting == "risk", self.form(), self.parts().prior.form())

    def _judging_rule(self, batch: Batch) -> LeastRisk:
        return LeastRisk(weight_at(self.weight, batch.epoch), UNOBSERVED, self.form())

    @property
    def unused_settings(self) -> frozenset[str]:
        if self.weighting == "none":
            return frozenset({"weight", "prior", "likelihood"})
        return frozenset() if self.weighting == "risk" else frozenset({"weight"})

    @property
    def gives_weights(self) -> bool:
        return True

    @property
    def is_shared(self) -> bool:
        return True

    def pool(self, batch: Batch) -> SharedPool:
        p, items = prepared(self.probabilities), batch.positives
        return SharedPool(items, pool_log_q(p[items], len(items), int(np.count_nonzero(p))), self.corrected)

    def plan(self, batch: Batch) -> PoolPlan:
        return PoolPlan(None, prepared(self.probabilities), self.corrected)

    def draws(self, batch: Batch) -> Draws:
        # one slot for each example, which held-out pairs lose
        n, empty = len(batch.users), no_numbers(len(batch.users))
        return self.without_held_out(Draws(np.zeros((n, 1), np.int32), np.ones(n, np.int32), empty, empty), batch)

    def width(self, n_items: int) -> int:
        return 1
