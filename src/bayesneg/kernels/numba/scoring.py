"""Inner products, compiled.

For rules that score the whole catalogue the item embeddings are kept a second time in tiles, popular items first:
within a tile the values of one factor are adjacent, so that the scores of a tile take a few vector instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesneg.kernels.numba.compiling import kernel, reordering_kernel

TILE = 64  # items per tile


class TileLayout(NamedTuple):
    """The slot of each item in the tiles: its rank by popularity, so that high scores tend to come first."""

    slots: np.ndarray  # (n_items,) int32, the slot of each item
    items: np.ndarray  # (n_items,) int32, the item in each slot
    rows: np.ndarray  # (n,) int32, the slots of each user's training items, ascending within the user


class TiledItems(NamedTuple):
    """The item embeddings in tiles; empty where the rule does not sweep the catalogue."""

    values: np.ndarray  # (n_tiles · d · TILE,) float32
    layout: TileLayout


class Factors(NamedTuple):
    """The embeddings that compiled code reads and changes."""

    users: np.ndarray  # (n_users, d) float32
    items: np.ndarray  # (n_items, d) float32
    tiled: TiledItems  # the items again, where the rule sweeps the catalogue


def tile_layout(users: np.ndarray, indices: np.ndarray, n_items: int) -> TileLayout:
    """The layout for training pairs (users, indices), given user by user."""
    order = np.argsort(-np.bincount(indices, minlength=n_items), kind="stable").astype(np.int32)
    slots = np.empty(n_items, dtype=np.int32)
    slots[order] = np.arange(n_items, dtype=np.int32)
    keys = users.astype(np.int64) * n_items + slots[indices]
    keys.sort()
    return TileLayout(slots, order, (keys % n_items).astype(np.int32))


def tile_items(items: np.ndarray, layout: TileLayout) -> TiledItems:
    """The embeddings ``items`` (n_items, d) in tiles."""
    n_items, d = items.shape
    n_tiles = -(-n_items // TILE)
    tiles = np.zeros((n_tiles, TILE, d), dtype=np.float32)
    tiles.reshape(-1, d)[:n_items] = items[layout.items]
    return TiledItems(np.ascontiguousarray(tiles.transpose(0, 2, 1)).ravel(), layout)


def no_tiles() -> TiledItems:
    """No tiles, for rules that do not sweep the catalogue."""
    nothing = np.empty(0, dtype=np.int32)
    return TiledItems(np.empty(0, dtype=np.float32), TileLayout(nothing, nothing, nothing))


@reordering_kernel
def dot(a: np.ndarray, b: np.ndarray) -> Any:
    total = np.float32(0.0)
    for f in range(len(a)):
        total += a[f] * b[f]
    return total


@reordering_kernel
def rounding(a: np.ndarray, b: np.ndarray) -> Any:
    """How far two orders of summing a · b can lie apart: 2·d·ε·Σ|a_f b_f|."""
    total = np.float32(0.0)
    for f in range(len(a)):
        total += np.abs(a[f] * b[f])
    return np.float64(total) * len(a) * 1.2e-7


@reordering_kernel
def score_tile(w: np.ndarray, tiles: np.ndarray, tile: int, x: np.ndarray) -> None:
    """Scores (TILE,) of one tile, sixteen factors at a time, so that x is read and written seldom."""
    d = len(w)
    whole = d - d % 16
    start = tile * d * TILE
    x[:] = 0.0
    for f in range(0, whole, 16):
        c = tiles[start + f * TILE : start + (f + 16) * TILE]
        w0, w1, w2, w3, w4, w5, w6, w7 = w[f], w[f + 1], w[f + 2], w[f + 3], w[f + 4], w[f + 5], w[f + 6], w[f + 7]
        v0, v1, v2, v3 = w[f + 8], w[f + 9], w[f + 10], w[f + 11]
        v4, v5, v6, v7 = w[f + 12], w[f + 13], w[f + 14], w[f + 15]
        for l in range(TILE):  # noqa: E741
            x[l] += (
                w0 * c[l]
                + w1 * c[TILE + l]
                + w2 * c[2 * TILE + l]
                + w3 * c[3 * TILE + l]
                + w4 * c[4 * TILE + l]
                + w5 * c[5 * TILE + l]
                + w6 * c[6 * TILE + l]
                + w7 * c[7 * TILE + l]
                + v0 * c[8 * TILE + l]
                + v1 * c[9 * TILE + l]
                + v2 * c[10 * TILE + l]
                + v3 * c[11 * TILE + l]
                + v4 * c[12 * TILE + l]
                + v5 * c[13 * TILE + l]
                + v6 * c[14 * TILE + l]
                + v7 * c[15 * TILE + l]
            )
    for f in range(whole, d):
        c = tiles[start + f * TILE : start + (f + 1) * TILE]
        wf = w[f]
        for l in range(TILE):  # noqa: E741
            x[l] += wf * c[l]


@kernel
def update_tile(tiled: TiledItems, item: int, h: np.ndarray) -> None:
    """Copy the new embedding of one item into its tile."""
    slot = tiled.layout.slots[item]
    start = (slot // TILE) * len(h) * TILE + slot % TILE
    for f in range(len(h)):
        tiled.values[start + f * TILE] = h[f]


@kernel
def count_above(x: np.ndarray, threshold: float) -> Any:
    """How many of a tile's scores lie above; NaN never does."""
    count = np.int32(0)
    for l in range(TILE):  # noqa: E741
        count += np.int32(x[l] > threshold)
    return count


@kernel
def score_candidates(w, items, candidates, x):  # type: ignore[no-untyped-def]
    """Scores into x; the position of the highest, the earlier on ties, its score and the next lower or equal one.

    Without branches: which candidate is ahead cannot be predicted, and a wrong guess costs more than three dots.
    """
    first, highest, second = 0, np.float32(-np.inf), np.float32(-np.inf)
    for k in range(len(candidates)):
        score = dot(w, items[candidates[k]])
        x[k] = score
        second = max(second, min(score, highest))
        first = k if score > highest else first
        highest = max(highest, score)
    return first, highest, second
