"""Mixed negatives: candidates with some of the positive in them, another one in each layer of the model.

T. Huang et al., "MixGCF: An Improved Training Method for Graph Neural Network-based Recommender Systems", KDD 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bayesneg.checks import known_settings, whole
from bayesneg.interfaces import Batch, Preset, RuleSampler, n_layers_of
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.mixing import HopMixing
from bayesneg.kernels.reference.plans import CandidatePlan
from bayesneg.samplers.candidates import UniformDraw, drawn_by, no_numbers


@known_settings()
@dataclass(frozen=True)
class MixGCF(RuleSampler):
    """MixGCF: synthetic negatives by positive mixing and hop mixing.

    Positive mixing: in each layer l, e′_m = a·e_i^(l) + (1−a)·e_m^(l) for each of a few uniform candidates m, with
    a ~ U(0, 1) drawn for each layer and candidate. Hop mixing: each layer keeps the e′_m of highest e_u · e′_m, and the
    negative is the mean over the layers, as LightGCN's final embeddings are. e_u is the user's final embedding, so that
    the negative is the highest-scored that the candidates can make. Gradients flow through it to the positive and the
    candidates. Matrix factorization and custom modules without layers have one.

    A negative is reported, in measures of false negatives, as the candidate that most of its layers chose.

    Args:
        candidates: Number of candidates for each negative.
        negatives: Number of negatives for each example, each from other candidates.

    Example:
        >>> MixGCF(candidates=32).makes_vectors
        True

    Reference:
        T. Huang et al., "MixGCF: An Improved Training Method for Graph Neural Network-based Recommender Systems", KDD
        2021.
    """

    NAMES: ClassVar = {"mixgcf": Preset("synthetic: candidates mixed with the positive, layer by layer")}

    candidates: int = 16
    negatives: int = 1

    def __post_init__(self) -> None:
        whole("candidates", self.candidates)
        whole("negatives", self.negatives)

    def rule(self, batch: Batch) -> HopMixing:
        return HopMixing(self.negatives)

    @property
    def gives_weights(self) -> bool:
        return True

    @property
    def gives_several(self) -> bool:
        return self.negatives > 1

    @property
    def makes_vectors(self) -> bool:
        return True

    def width(self, n_items: int) -> int:
        return 2 * self.candidates * self.negatives

    def wanted(self, n_items: int) -> int:
        return min(self.candidates * self.negatives, n_items)

    def plan(self, batch: Batch) -> CandidatePlan:
        size = self.candidates * self.negatives
        return CandidatePlan(size, uniforms=size * n_layers_of(batch.scorer))

    def draws(self, batch: Batch) -> Draws:
        size = self.candidates * self.negatives
        candidates, sizes = drawn_by(UniformDraw(), batch, size)
        shares = batch.uniforms(size * n_layers_of(batch.scorer))
        return Draws(candidates, sizes, no_numbers(len(sizes)), shares)
