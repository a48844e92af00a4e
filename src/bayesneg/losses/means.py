"""Losses that are means over the negatives: pointwise logistic, cosine contrastive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bayesneg.checks import number
from bayesneg.interfaces.loss import BuiltInLoss
from bayesneg.kernels.reference.losses import CosineHinges, PointwiseLogistic


@dataclass(frozen=True)
class Logistic(BuiltInLoss):
    """Pointwise logistic loss (binary cross-entropy): softplus(−s_i) + Σ_k ω_k · softplus(s_k) / Σ_k ω_k.

    Example:
        >>> Logistic()
        Logistic()
    """

    NAME: ClassVar = "logistic"

    def form(self) -> PointwiseLogistic:
        return PointwiseLogistic()


@dataclass(frozen=True)
class CCL(BuiltInLoss):
    """The cosine contrastive loss of SimpleX: relu(1 − s_i) + w · Σ_k ω_k · relu(s_k − m) / Σ_k ω_k.

    It is meant for cosine scores: give the model ``similarity="cosine"``.

    Args:
        margin: Score m above which a negative is pushed down.
        negative_weight: Weight w of the negative part.

    Example:
        >>> CCL(margin=0.9).negative_weight
        150.0

    Reference:
        K. Mao et al., "SimpleX: A Simple and Strong Baseline for Collaborative Filtering", CIKM 2021.
    """

    NAME: ClassVar = "ccl"
    margin: float = 0.8
    negative_weight: float = 150.0

    def __post_init__(self) -> None:
        number("margin", self.margin)
        number("negative_weight", self.negative_weight, above=0)

    def form(self) -> CosineHinges:
        return CosineHinges(float(self.margin), float(self.negative_weight))
