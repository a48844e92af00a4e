"""The item of a memory that has a high score and a high variance: the rule of SRNS."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesneg.kernels.reference.choices.base import Chooser, Draws
from bayesneg.kernels.reference.formulas import info

if TYPE_CHECKING:
    from bayesneg.interfaces import Batch

SNAPSHOTS = 5  # past epochs over which FromMemory takes the variance of scores


class FromMemory(NamedTuple):
    """The memory item of greatest score and variance: SRNS."""

    memory: np.ndarray  # (n_users, S1) int32, −1 where a user has fewer unobserved items; changed in place
    past_users: np.ndarray  # (5, n_users, d) float32, the embeddings at the last epoch ends
    past_items: np.ndarray  # (5, n_items, d) float32
    n_past: int  # how many of the five are filled
    variance_weight: float  # α_t
    temperature: float  # τ

    def chooser(self, draws: Draws, batch: Batch) -> Chooser:
        """Every choice reads the memory as it was before the batch; a user's first example refreshes it."""
        before = self.memory.copy()
        n_fresh = draws.candidates.shape[1] - self.memory.shape[1]
        refreshed: set[int] = set()

        def choose(b: int) -> int:
            user, positive = int(batch.users[b]), int(batch.positives[b])
            memory = before[user][before[user] >= 0]
            fresh = fresh_for_memory(draws.candidates[b, : draws.sizes[b]], memory, n_fresh)
            items = np.concatenate((memory, fresh, [positive]))
            x = batch.scorer.score(batch.users[b : b + 1], items[None, :])[0]
            if user not in refreshed:
                refreshed.add(user)
                after = refresh_memory(memory, fresh, x[:-1], self.temperature, draws.uniforms[b])
                self.memory[user, : len(memory)] = after
            return memory[choose_from_memory(self, user, positive, memory, x[: len(memory)], x[-1])]

        return choose


def choose_from_memory(
    rule: FromMemory, user: int, positive: int, memory: np.ndarray, x: np.ndarray, x_positive: float
) -> int:
    """Slot of greatest P_k + α_t · std(P_k over the last epoch ends), P_k = σ(x_k − x_i)."""
    w, h = rule.past_users[: rule.n_past, user], rule.past_items[: rule.n_past]  # (t, d), (t, n_items, d)
    past = [info(w[t] @ h[t, positive], h[t, memory] @ w[t]) for t in range(rule.n_past)]  # t times (S,)
    spread = np.std(past, axis=0) if past else np.zeros(len(x))
    return int(np.argmax(info(x_positive, x) + rule.variance_weight * spread))


def refresh_memory(
    memory: np.ndarray, fresh: np.ndarray, x: np.ndarray, temperature: float, uniforms: np.ndarray
) -> np.ndarray:
    """Keep as many of memory and fresh items as the memory has, without replacement ∝ softmax(x/τ).

    By the Gumbel-top-k trick. ``x`` are the scores of the memory, then of the fresh items; an item that stays keeps
    its slot, new items fill the free slots in order.
    """
    keys = x.astype(np.float64) / temperature - np.log(-np.log(np.maximum(uniforms[: len(x)], 1e-300)))
    kept = np.argsort(-keys, kind="stable")[: len(memory)]
    newcomers = iter(kept[kept >= len(memory)] - len(memory))
    return np.array([item if slot in kept else fresh[next(newcomers)] for slot, item in enumerate(memory)])


def fresh_for_memory(candidates: np.ndarray, memory: np.ndarray, size: int) -> np.ndarray:
    """The first ``size`` candidates that are not in memory."""
    return candidates[~np.isin(candidates, memory)][:size]
