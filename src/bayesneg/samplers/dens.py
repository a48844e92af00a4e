"""Disentangled negatives: alike in what does not matter to the user, different in what does.

R. Lai et al., "Disentangled Negative Sampling for Collaborative Filtering", WSDM 2023.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from bayesneg.checks import known_settings, number, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.integrity.arrays import ArraySpec, Specs
from bayesneg.interfaces import Batch, Preset, RuleSampler, Scorer, own_part
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.disentangled import FactorAware
from bayesneg.kernels.reference.plans import CandidatePlan
from bayesneg.samplers.candidates import UniformDraw, candidate_count, drawn_by, no_numbers, prepared
from bayesneg.seeding import seed_from


@dataclass
class Gates:
    """The gates and the state of their optimizer."""

    matrices: np.ndarray  # (4, d, d) float32, made when the model is first seen
    moments: np.ndarray  # (2, 4, d, d) float32
    steps: np.ndarray  # (1,) int64
    seed: np.ndarray  # (1,) int64, of the initial matrices

    def fit_to(self, scorer: Scorer) -> None:
        if self.matrices.size:
            return
        d = own_part(scorer).dim
        drawn = np.random.default_rng(int(self.seed[0])).normal(0.0, d**-0.5, (4, d, d))
        self.matrices, self.moments = drawn.astype(np.float32), np.zeros((2, 4, d, d), dtype=np.float32)


@known_settings()
@dataclass(frozen=True)
class DENS(RuleSampler):
    """Disentangled negative sampling: argmax of (1−β_t)·x_ul + β_t·(h_i^irr · h_l^irr − h_i^rel · h_l^rel).

    Gates split the embeddings of items: g_i = σ(W_1 h_i + W_2 w_u), h_i^rel = g_i ∘ h_i, h_i^irr = h_i − h_i^rel for
    the positive, then g_l = σ(W_3 h_l + W_4 h_i^rel) and likewise for each of a few uniform candidates l. The weight
    is β_t = balance·min(1, t/warmup) with t the number of epochs that have ended: the gates mean nothing at first.

    After each mini-batch the gates take a step of Adam on four pairwise tasks, each a softplus:
    w_u · h_i^rel > w_u · h_i^irr, w_u · h_l^irr > w_u · h_l^rel, w_u · h_i^rel > w_u · h_l^rel and
    w_u · h_l^irr > w_u · h_i^irr, on the negatives that were chosen. The embeddings of the model are not moved by them.

    Args:
        candidates: Number of candidates drawn per example.
        balance: Weight β of the factors against the score, in [0, 1]; 0 is DNS.
        warmup: Number of epochs until ``balance`` has its full weight.
        gate_learning_rate: Learning rate of Adam on the gates.
        negatives: Number of negatives for each example, those of highest merit.
        pairs_at_once: Number of pairs that compiled MF samples for before it takes their steps; torch models sample for
            a mini-batch.

    Example:
        >>> DENS(candidates=8, balance=0.2).warmup
        10

    Reference:
        R. Lai et al., "Disentangled Negative Sampling for Collaborative Filtering", WSDM 2023.
    """

    NAMES: ClassVar = {"dens": Preset("like the positive in irrelevant factors, unlike it in relevant ones")}

    candidates: int = 5
    balance: float = 0.5
    warmup: int = 10
    gate_learning_rate: float = 0.001
    negatives: int = 1
    pairs_at_once: int = 128
    state: Gates | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("candidates", "negatives", "pairs_at_once"):
            whole(name, getattr(self, name))
        whole("warmup", self.warmup, least=0)
        number("balance", self.balance, least=0, most=1)
        number("gate_learning_rate", self.gate_learning_rate, above=0)
        if self.negatives > self.candidates:
            raise InputError(
                f"negatives must be at most candidates ({self.candidates}), of which they are the best, got "
                f"{self.negatives}; set candidates={self.negatives} or more with it"
            )

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> DENS:
        matrices, moments = (np.empty(shape, dtype=np.float32) for shape in ((4, 0, 0), (2, 4, 0, 0)))
        steps, seed = (np.array([value], dtype=np.int64) for value in (0, seed_from(rng) >> 1))
        return replace(self, state=Gates(matrices, moments, steps, seed))

    def rule(self, batch: Batch) -> FactorAware:
        state = prepared(self.state)
        state.fit_to(batch.scorer)
        grown = min(1.0, (batch.epoch - 1) / self.warmup) if self.warmup else 1.0
        balance, rate = float(self.balance) * grown, float(self.gate_learning_rate)
        return FactorAware(balance, self.negatives, rate, state.matrices, state.moments, state.steps)

    @property
    def gives_weights(self) -> bool:
        return True

    @property
    def gives_several(self) -> bool:
        return self.negatives > 1

    def width(self, n_items: int) -> int:
        return candidate_count(self.candidates, n_items)

    def wanted(self, n_items: int) -> int:
        return candidate_count(self.candidates, n_items)

    def plan(self, batch: Batch) -> CandidatePlan:
        return CandidatePlan(self.width(batch.train.n_items))

    def draws(self, batch: Batch) -> Draws:
        candidates, sizes = drawn_by(UniformDraw(), batch, self.width(batch.train.n_items))
        return Draws(candidates, sizes, no_numbers(len(sizes)), no_numbers(len(sizes)))

    def state_dict(self) -> dict[str, np.ndarray]:
        state = prepared(self.state)
        return {"gates": state.matrices, "moments": state.moments, "steps": state.steps, "seed": state.seed}

    def state_specs(self, train: Interactions) -> Specs:
        return {
            "gates": ArraySpec((4, "dim", "dim"), "float32", or_empty=True),
            "moments": ArraySpec((2, 4, "dim", "dim"), "float32", or_empty=True),
            "steps": ArraySpec((1,), "int64", least=0),
            "seed": ArraySpec((1,), "int64", least=0),
        }

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        gates = prepared(self.state)
        gates.matrices, gates.moments = state["gates"].copy(), state["moments"].copy()
        gates.steps, gates.seed = state["steps"].copy(), state["seed"].copy()
