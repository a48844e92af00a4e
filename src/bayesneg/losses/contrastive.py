"""Softmax over several negatives and losses derived from it. They are meant for cosine scores and many negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from bayesneg.checks import boolean, number, one_of, whole
from bayesneg.interfaces.loss import BuiltInLoss
from bayesneg.kernels.reference.losses import (
    SURROGATES,
    DebiasedSoftmax,
    PairwiseSurrogate,
    SampledSoftmax,
    ThresholdedSoftmax,
)


@dataclass(frozen=True)
class Softmax(BuiltInLoss):
    """The sampled softmax loss: −s_i/τ + b · log(Σ_k ω_k · exp(s_k/τ − log q_k) [+ exp(s_i/τ)]).

    With b ≠ 1 it is BSL, the bilateral softmax loss. With ``include_positive=True`` and b = 1 it is InfoNCE.

    Args:
        temperature: Temperature τ; lower values put the gradient on the highest-scored negatives.
        negative_weight: Weight b of the negative part; above 1 the noise on the positive side is discounted (BSL).
        include_positive: Whether the positive is a term of the sum.

    Example:
        >>> Softmax(temperature=0.08, negative_weight=1.22).include_positive
        False

    Reference:
        J. Wu et al., "On the Effectiveness of Sampled Softmax Loss for Item Recommendation", TOIS 2024.
        J. Wu et al., "BSL: Understanding and Improving Softmax Loss for Recommendation", ICDE 2024.
    """

    NAME: ClassVar = "softmax"
    temperature: float = 0.1
    negative_weight: float = 1.0
    include_positive: bool = False

    def __post_init__(self) -> None:
        number("temperature", self.temperature, above=0)
        number("negative_weight", self.negative_weight, above=0)
        boolean("include_positive", self.include_positive)

    @property
    def needs_several(self) -> bool:
        return not self.include_positive

    def form(self) -> SampledSoftmax:
        return SampledSoftmax(float(self.temperature), float(self.negative_weight), bool(self.include_positive))


@dataclass(frozen=True)
class SoftmaxAtK(BuiltInLoss):
    """SL@K: σ((s_i − β_u)/τ_w) · softmax loss, with β_u the user's K-th highest score.

    β_u is computed over the unobserved items and the positives, at the start of every ``refresh``-th epoch, and no
    gradient flows through it.

    Args:
        temperature: Temperature τ of the softmax.
        k: Length K of the recommendation list that the loss aims at.
        weight_temperature: Temperature τ_w of the weight of an example.
        refresh: Number of epochs between two computations of the thresholds.

    Example:
        >>> SoftmaxAtK(k=20).threshold_at
        20

    Reference:
        W. Yang et al., "Breaking the Top-K Barrier: Advancing Top-K Ranking Metrics Optimization in Recommender
        Systems", KDD 2025.
    """

    NAME: ClassVar = "softmax-at-k"
    temperature: float = 0.1
    k: int = 20
    weight_temperature: float = 1.0
    refresh: int = 5

    def __post_init__(self) -> None:
        number("temperature", self.temperature, above=0)
        number("weight_temperature", self.weight_temperature, above=0)
        whole("k", self.k)
        whole("refresh", self.refresh)

    @property
    def needs_several(self) -> bool:
        return True

    @property
    def threshold_at(self) -> int:
        return self.k

    @property
    def threshold_every(self) -> int:
        return self.refresh

    def form(self) -> ThresholdedSoftmax:
        softmax = SampledSoftmax(float(self.temperature), 1.0, include_positive=False)
        return ThresholdedSoftmax(softmax, float(self.weight_temperature))


@dataclass(frozen=True)
class PSL(BuiltInLoss):
    """The pairwise softmax loss: log Σ_k ω_k · g(s_k − s_i)^(1/τ) with a surrogate g in place of the exponential.

    Args:
        temperature: Temperature τ.
        surrogate: The function g of the score difference d: ``"relu"`` (d + 1, at least 0), ``"tanh"`` (tanh(d) + 1)
            or ``"atan"`` (arctan(d) + 1).

    Example:
        >>> PSL(surrogate="tanh").temperature
        0.1

    Reference:
        W. Yang et al., "PSL: Rethinking and Improving Softmax Loss from Pairwise Perspective for Recommendation",
        NeurIPS 2024.
    """

    NAME: ClassVar = "psl"
    temperature: float = 0.1
    surrogate: Literal["relu", "tanh", "atan"] = "tanh"

    def __post_init__(self) -> None:
        number("temperature", self.temperature, above=0)
        one_of("surrogate", self.surrogate, SURROGATES)

    def form(self) -> PairwiseSurrogate:
        return PairwiseSurrogate(float(self.temperature), SURROGATES.index(self.surrogate))


@dataclass(frozen=True)
class DCL(BuiltInLoss):
    """The debiased contrastive loss, which subtracts the expected share of false negatives from the negative part.

    −s_i/τ + log(exp(s_i/τ) + n · max((E − τ⁺ · exp(s_i/τ)) / (1 − τ⁺), exp(−1/τ))), with n negatives and E the weighted
    mean of exp(s_k/τ).

    Args:
        temperature: Temperature τ.
        positive_rate: Assumed probability τ⁺ that a negative is a false negative.

    Example:
        >>> DCL(positive_rate=0.01).temperature
        0.1

    Reference:
        C.-Y. Chuang et al., "Debiased Contrastive Learning", NeurIPS 2020.
    """

    NAME: ClassVar = "dcl"
    temperature: float = 0.1
    positive_rate: float = 0.001

    def __post_init__(self) -> None:
        number("temperature", self.temperature, above=0)
        number("positive_rate", self.positive_rate, least=0, most=0.99)

    def form(self) -> DebiasedSoftmax:
        return DebiasedSoftmax(float(self.temperature), float(self.positive_rate), 0.0)


@dataclass(frozen=True)
class HCL(BuiltInLoss):
    """The hard-negative contrastive loss: DCL with the mean of exp(s_k/τ) tilted by exp(β · s_k/τ).

    Args:
        temperature: Temperature τ.
        positive_rate: Assumed probability τ⁺ that a negative is a false negative.
        hardness: Concentration β on high-scored negatives; 0 is DCL.

    Example:
        >>> HCL(hardness=0.5).positive_rate
        0.001

    Reference:
        J. Robinson et al., "Contrastive Learning with Hard Negative Samples", ICLR 2021.
    """

    NAME: ClassVar = "hcl"
    temperature: float = 0.1
    positive_rate: float = 0.001
    hardness: float = 1.0

    def __post_init__(self) -> None:
        number("temperature", self.temperature, above=0)
        number("positive_rate", self.positive_rate, least=0, most=0.99)
        number("hardness", self.hardness, least=0)

    def form(self) -> DebiasedSoftmax:
        return DebiasedSoftmax(float(self.temperature), float(self.positive_rate), float(self.hardness))
