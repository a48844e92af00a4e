"""Simplify and robustify: a memory of candidates per user, chosen by score and by variance over time.

J. Ding et al., "Simplify and Robustify Negative Sampling for Implicit Collaborative Filtering", NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from bayesneg.checks import known_settings, number, whole
from bayesneg.data.interactions import Interactions
from bayesneg.integrity.arrays import ArraySpec, Specs
from bayesneg.interfaces import Batch, Preset, RuleSampler, Scorer, own_embeddings, own_part
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.choices.srns import SNAPSHOTS, FromMemory
from bayesneg.kernels.reference.plans import CandidatePlan
from bayesneg.samplers.candidates import UniformDraw, drawn_by, no_numbers, prepared
from bayesneg.seeding import seed_from


@dataclass
class Memory:
    """The memory of each user, and the embeddings at the last epoch ends, from which past scores are computed.

    One of several processes keeps those of its users and items.
    """

    seed: int  # of the items that the memory begins with
    items: np.ndarray  # (n_users, S1) int32, −1 where a user has fewer negatives; drawn for the first batch
    past_users: np.ndarray  # (5, n_users, d) float32, allocated when the model is first seen
    past_items: np.ndarray  # (5, n_items, d) float32
    epochs: np.ndarray  # (1,) int64, epochs that have ended

    @property
    def n_past(self) -> int:
        """The number of epoch ends whose embeddings are kept."""
        return min(SNAPSHOTS, int(self.epochs[0]))

    def fit_to(self, scorer: Scorer) -> None:
        if self.past_users.size == 0:
            part = own_part(scorer)
            (first, last), (begin, end) = part.users, part.items
            self.past_users = np.zeros((SNAPSHOTS, last - first, part.dim), dtype=np.float32)
            self.past_items = np.zeros((SNAPSHOTS, end - begin, part.dim), dtype=np.float32)

    def begin(self, batch: Batch) -> None:
        """Draw the first items; a user has the same ones whichever process it belongs to."""
        if len(self.items) == 0:
            from bayesneg.kernels.numba import draws

            users = np.arange(*own_part(batch.scorer).users)
            size = self.items.shape[1]
            self.items, _ = draws.uniform_candidates(users, batch.train.observed, size, self.seed, places=users)


@known_settings()
@dataclass(frozen=True)
class SRNS(RuleSampler):
    """Simplify and robustify: argmax of P_k + α_t·std(P_k) over the user's memory, with P_k = σ(x_uk − x_ui).

    α_t = α·min(1, t/T0) with t the number of epochs that have ended. The standard deviation is over the last five
    epoch ends, whether or not the item was in memory then. After the choice, once per user and batch, S2 fresh uniform
    items join the memory, and S1 of them all stay, drawn without replacement ∝ softmax(x/τ).

    Args:
        memory: Number of items in the memory of a user, S1.
        fresh: Number of uniform items that compete for the memory after each choice, S2.
        temperature: Temperature τ of the softmax that decides which items stay in the memory.
        alpha: Weight α of the standard deviation of the scores.
        warmup: Number of epochs until ``alpha`` has its full weight, T0.

    Example:
        >>> SRNS(memory=16).fresh
        64

    Reference:
        J. Ding et al., "Simplify and Robustify Negative Sampling for Implicit Collaborative Filtering", NeurIPS 2020.
    """

    NAMES: ClassVar = {"srns": Preset("a memory of candidates per user: high score and high variance")}

    memory: int = 8
    fresh: int = 64
    temperature: float = 10.0
    alpha: float = 5.0
    warmup: int = 50
    state: Memory | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("memory", "fresh", "warmup"):
            whole(name, getattr(self, name))
        number("temperature", self.temperature, above=0)
        number("alpha", self.alpha, least=0)

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> SRNS:
        items, nothing = np.empty((0, self.memory), dtype=np.int32), np.empty((SNAPSHOTS, 0, 0), dtype=np.float32)
        return replace(self, state=Memory(seed_from(rng), items, nothing, nothing, np.zeros(1, dtype=np.int64)))

    def rule(self, batch: Batch) -> FromMemory:
        state = prepared(self.state)
        state.fit_to(batch.scorer)
        state.begin(batch)
        alpha = self.alpha * min(1.0, (batch.epoch - 1) / self.warmup)
        return FromMemory(state.items, state.past_users, state.past_items, state.n_past, alpha, float(self.temperature))

    def width(self, n_items: int) -> int:
        return 2 * (self.memory + self.fresh)

    def wanted(self, n_items: int) -> int:
        return self.memory

    def plan(self, batch: Batch) -> CandidatePlan:
        size = self.memory + self.fresh
        return CandidatePlan(size, uniforms=size)

    def draws(self, batch: Batch) -> Draws:
        size = self.memory + self.fresh  # enough that ``fresh`` of them are not in memory
        candidates, sizes = drawn_by(UniformDraw(), batch, size)
        return Draws(candidates, sizes, no_numbers(len(sizes)), batch.uniforms(size))

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        state = prepared(self.state)
        state.fit_to(scorer)
        slot = (epoch - 1) % SNAPSHOTS
        state.past_users[slot], state.past_items[slot] = own_embeddings(scorer)
        state.epochs[0] = epoch

    def state_dict(self) -> dict[str, np.ndarray]:
        state = prepared(self.state)
        found = {"items": state.items} if len(state.items) else {}
        for name, table in (("users", state.past_users), ("past", state.past_items)):
            found |= {f"{name}.{slot}": table[slot] for slot in range(state.n_past)}
        return {**found, "epochs": state.epochs}

    @property
    def divided_state(self) -> dict[str, str]:
        return {"items": "users", "users": "users", "past": "items"}

    def state_specs(self, train: Interactions) -> Specs:
        past = {f"{name}.{slot}": name for name in ("users", "past") for slot in range(SNAPSHOTS)}
        rows = self.divided_state
        return {
            "items": ArraySpec(("users", self.memory), "int32", least=-1, below=train.n_items, optional=True),
            "epochs": ArraySpec((1,), "int64", least=0),
            **{key: ArraySpec((rows[name], "dim"), "float32", optional=True) for key, name in past.items()},
        }

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        memory = prepared(self.state)
        memory.epochs[:] = state["epochs"]
        memory.items = state["items"].copy() if "items" in state else memory.items[:0]  # drawn for the next batch
        if memory.n_past:
            memory.past_users, memory.past_items = (
                _filled([state[f"{name}.{slot}"] for slot in range(memory.n_past)]) for name in ("users", "past")
            )


def _filled(past: list[np.ndarray]) -> np.ndarray:
    """The embeddings (5, n, d) of the last epoch ends, zeros for those that have not been."""
    found = np.zeros((SNAPSHOTS, *past[0].shape), dtype=np.float32)
    found[: len(past)] = past
    return found
