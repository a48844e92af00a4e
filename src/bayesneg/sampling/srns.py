"""Simplify and robustify: a memory of candidates per user, chosen by score and by variance over time.

J. Ding et al., "Simplify and Robustify Negative Sampling for Implicit Collaborative Filtering", NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, RuleSampler, Scorer
from bayesneg.kernels.rules import SNAPSHOTS, Draws, FromMemory
from bayesneg.sampling.candidates import UniformDraw, no_numbers, prepared

CHUNK = 1 << 16  # pairs scored at once at an epoch's end


@dataclass(frozen=True, eq=False)
class Memory:
    """The candidates of each user, and what they scored at the last epoch ends. History follows the item."""

    items: np.ndarray  # (n_users, S1) int32, −1 where a user has fewer negatives
    item_scores: np.ndarray  # (n_users, S1, 5) float32, NaN where the item was not in memory then
    positive_scores: np.ndarray  # (n, 5) float32
    train: Interactions


@dataclass(frozen=True)
class SRNS(RuleSampler):
    """The memory item of greatest P_k + α_t·std(P_k), P_k = σ(x_uk − x_ui), α_t = α·min(1, t/T0).

    The standard deviation is taken over the last five epoch ends at which the item was in the user's memory. After
    each choice S2 fresh uniform items join, and S1 of them all stay, without replacement ∝ softmax(x/τ).
    """

    memory: int = 8
    fresh: int = 64
    temperature: float = 10.0
    alpha: float = 5.0
    warmup: int = 50
    state: Memory | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, least in (("memory", 1), ("fresh", 1), ("warmup", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if not self.temperature > 0:
            raise InputError(f"temperature must be above 0, got {self.temperature}")
        if not (np.isfinite(self.alpha) and self.alpha >= 0):
            raise InputError(f"alpha must be a finite number of at least 0, got {self.alpha}")

    def prepare(self, train: Interactions, *, rng: np.random.Generator) -> SRNS:
        users = np.arange(train.n_users, dtype=np.int32)
        items, _ = UniformDraw().draw(users, self.memory, train=train, rng=rng)
        history = np.full((train.n_users, self.memory, SNAPSHOTS), np.nan, dtype=np.float32)
        positives = np.full((len(train), SNAPSHOTS), np.nan, dtype=np.float32)
        return replace(self, state=Memory(items, history, positives, train))

    def rule(self, batch: Batch) -> FromMemory:
        state = prepared(self.state)
        alpha = self.alpha * min(1.0, (batch.epoch - 1) / self.warmup)
        return FromMemory(state.items, state.item_scores, state.positive_scores, alpha, float(self.temperature))

    def width(self, n_items: int) -> int:
        return 2 * (self.memory + self.fresh)

    def wanted(self, n_items: int) -> int:
        return self.memory

    def draws(self, batch: Batch) -> Draws:
        size = self.memory + self.fresh  # enough that ``fresh`` of them are not in memory
        candidates, sizes = UniformDraw().draw(batch.users, size, train=batch.train, rng=batch.rng)
        return Draws(candidates, sizes, no_numbers(len(sizes)), batch.rng.random((len(sizes), size)))

    def end_epoch(self, epoch: int, scorer: Scorer) -> None:
        state = prepared(self.state)
        slot = (epoch - 1) % SNAPSHOTS
        users = np.arange(len(state.items))
        for part in np.array_split(users, 1 + state.items.size // CHUNK):
            scores = scorer.score(part, np.maximum(state.items[part], 0))
            state.item_scores[part, :, slot] = np.where(state.items[part] >= 0, scores, np.nan)
        train = state.train
        for part in np.array_split(np.arange(len(train)), 1 + len(train) // CHUNK):
            scores = scorer.score(train.users[part], train.indices[part, None])
            state.positive_scores[part, slot] = scores[:, 0]

    def state_dict(self) -> dict[str, np.ndarray]:
        state = prepared(self.state)
        return {
            "items": state.items,
            "item_scores": state.item_scores,
            "positive_scores": state.positive_scores,
        }

    def load_state_dict(self, saved: Mapping[str, np.ndarray]) -> None:
        state = prepared(self.state)
        state.items[:] = saved["items"]
        state.item_scores[:] = saved["item_scores"]
        state.positive_scores[:] = saved["positive_scores"]
