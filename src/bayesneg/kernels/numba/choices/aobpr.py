"""The rules of AOBPR, compiled."""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.binning import choose_at_rank
from bayesneg.kernels.numba.choices.base import chooses
from bayesneg.kernels.numba.compiling import kernel
from bayesneg.kernels.numba.early_stop import NOTHING, sweep
from bayesneg.kernels.numba.formulas import truncated_rank
from bayesneg.kernels.reference.choices.aobpr import FACTOR_TRIES, AtFactorRank, AtScoreRank
from bayesneg.kernels.reference.formulas import UNOBSERVED


@chooses(AtScoreRank, sweeps=True)
def _at_score_rank(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    n = len(factors.items) - (example.stop - example.start)
    sweep(NOTHING, UNOBSERVED, example, factors, x)
    rank = truncated_rank(draws.uniforms[example.b, 0], rule.scale, n)
    return choose_at_rank(x[: len(factors.items)], factors.tiled.layout.items, rank)


@chooses(AtFactorRank)
def _at_factor_rank(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    if rule.clock[0] % rule.period == 0:
        sort_factors(factors.items, rule.orders, rule.spreads)
    rule.clock[0] += 1
    w, row = factors.users[example.user], indices[example.start : example.stop]
    return choose_at_factor_rank(w, rule.scale, rule.orders, rule.spreads, row, draws.uniforms[example.b])


@kernel
def sort_factors(items: np.ndarray, orders: np.ndarray, spreads: np.ndarray) -> None:
    for f in range(items.shape[1]):
        column = -items[:, f]
        orders[f] = np.argsort(column, kind="mergesort").astype(np.int32)
        spreads[f] = np.std(column.astype(np.float64))


@kernel
def choose_at_factor_rank(
    w: np.ndarray, scale: float, orders: np.ndarray, spreads: np.ndarray, row: np.ndarray, uniforms: np.ndarray
) -> int:
    d, n_items = orders.shape
    total = 0.0
    for f in range(d):
        total += np.abs(np.float64(w[f])) * spreads[f]
    rank, factor = 0, 0
    for attempt in range(FACTOR_TRIES):
        rank = truncated_rank(uniforms[2 * attempt], scale, n_items)
        target = uniforms[2 * attempt + 1] * total
        mass = 0.0
        for f in range(d):
            mass += np.abs(np.float64(w[f])) * spreads[f]
            factor = f
            if mass > target:
                break
        item = orders[factor, rank] if w[factor] > 0 else orders[factor, n_items - 1 - rank]
        if not contains(row, item):
            return item
    for step in range(n_items):
        place = (rank + step) % n_items
        item = orders[factor, place] if w[factor] > 0 else orders[factor, n_items - 1 - place]
        if not contains(row, item):
            return item
    return -1


@kernel
def contains(row: np.ndarray, item: int) -> bool:
    found = np.searchsorted(row, item)
    return bool(found < len(row) and row[found] == item)
