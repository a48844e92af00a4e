"""The rule of SRNS, compiled."""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.choices.base import chooses
from bayesneg.kernels.numba.compiling import kernel
from bayesneg.kernels.numba.formulas import info
from bayesneg.kernels.numba.scoring import dot
from bayesneg.kernels.reference.choices.srns import FromMemory


@chooses(FromMemory, remembers=True)
def _from_memory(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    b, w = example.b, factors.users[example.user]
    size = 0
    while size < rule.memory.shape[1] and rule.memory[example.user, size] >= 0:
        size += 1
    memory = rule.memory[example.user, :size]
    for k in range(size):
        x[k] = dot(w, factors.items[memory[k]])
    past, past_positive = np.empty((rule.n_past, size), dtype=np.float32), np.empty(rule.n_past, dtype=np.float32)
    for t in range(rule.n_past):
        past_w = rule.past_users[t, example.user]
        past_positive[t] = dot(past_w, rule.past_items[t, example.positive])
        for k in range(size):
            past[t, k] = dot(past_w, rule.past_items[t, memory[k]])
    x_positive = dot(w, factors.items[example.positive])
    chosen = memory[choose_from_memory(x[:size], x_positive, past, past_positive, rule.variance_weight)]
    fresh = np.empty(draws.candidates.shape[1] - rule.memory.shape[1], dtype=np.int32)
    n_fresh = 0
    for k in range(draws.sizes[b]):
        item = draws.candidates[b, k]
        if n_fresh < len(fresh) and not np.any(memory == item):
            fresh[n_fresh] = item
            x[size + n_fresh] = dot(w, factors.items[item])
            n_fresh += 1
    if example.refresh:
        refresh_memory(memory, fresh[:n_fresh], x[: size + n_fresh], rule.temperature, draws.uniforms[b])
    return chosen


@kernel
def choose_from_memory(
    x: np.ndarray, x_positive: float, past: np.ndarray, past_positive: np.ndarray, variance_weight: float
) -> int:
    """``past`` (t, S) and ``past_positive`` (t,) are the scores at the last epoch ends."""
    n_past = len(past_positive)
    best, most = 0, -np.inf
    for slot in range(len(x)):
        mean, spread = 0.0, 0.0
        for t in range(n_past):
            mean += info(past_positive[t], past[t, slot]) / n_past
        for t in range(n_past):
            spread += (info(past_positive[t], past[t, slot]) - mean) ** 2 / n_past
        merit = info(x_positive, x[slot]) + variance_weight * np.sqrt(spread)
        if merit > most:
            best, most = slot, merit
    return best


@kernel
def refresh_memory(
    memory: np.ndarray, fresh: np.ndarray, x: np.ndarray, temperature: float, uniforms: np.ndarray
) -> None:
    """Changes ``memory`` in place; ``x`` holds the scores of the memory, then of the fresh items."""
    size = len(memory)
    keys = np.empty(len(x))
    for k in range(len(x)):
        keys[k] = np.float64(x[k]) / temperature - np.log(-np.log(max(uniforms[k], 1e-300)))
    kept = np.argsort(-keys, kind="mergesort")[:size]
    stays = np.zeros(size, dtype=np.bool_)
    for k in kept:
        if k < size:
            stays[k] = True
    slot = 0
    for k in kept:
        if k >= size:
            while stays[slot]:
                slot += 1
            memory[slot] = fresh[k - size]
            slot += 1
