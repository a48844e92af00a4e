"""The score CDF over a part of the catalogue: compiled.

A score is computed by ``score_tile`` wherever it is needed, so that it has the same bits in every process: that of a
candidate, from a row that was fetched, and that of the same item where it is counted.
"""

from __future__ import annotations

import numpy as np

from bayesneg.kernels.numba.compiling import entry_point
from bayesneg.kernels.numba.scoring import TILE, score_tile


def tiled_rows(rows: np.ndarray) -> np.ndarray:
    """Embeddings (n, d) in tiles, (n_tiles · d · TILE,), zeros after the last."""
    n, d = rows.shape
    tiles = np.zeros((-(-n // TILE), TILE, d), dtype=np.float32)
    tiles.reshape(-1, d)[:n] = rows
    return np.ascontiguousarray(tiles.transpose(0, 2, 1)).ravel()


def scores_of_rows(users: np.ndarray, rows: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Scores (B, m) of users (B, d) with the rows (k, d) at ``places`` (B, m)."""
    x = np.empty(places.shape, dtype=np.float32)
    score_places(users, rows, places, x)
    return x


def counts_at_most(
    users: np.ndarray, tiles: np.ndarray, n_rows: int, starts: np.ndarray, hidden: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """#{rows that score at most x_l} (B, m) int32, without hidden rows.

    Args:
        users: Embeddings of users (B, d).
        tiles: Rows of items in tiles.
        n_rows: Number of these rows.
        starts: Where the hidden rows of each user begin, (B + 1,).
        hidden: Hidden rows, ascending for each user.
        x: Scores (B, m) to compare with; NaN counts nothing.
    """
    counts = np.empty(x.shape, dtype=np.int32)
    count_tiles(users, tiles, n_rows, starts, hidden, x, counts)
    return counts


def scores_of_shard(
    users: np.ndarray, tiles: np.ndarray, n_rows: int, starts: np.ndarray, hidden: np.ndarray
) -> np.ndarray:
    """Scores (B, n_rows) of all rows, NaN for hidden ones; the arguments are those of :func:`counts_at_most`."""
    x = np.empty((len(users), n_rows), dtype=np.float32)
    score_tiles(users, tiles, starts, hidden, x)
    return x


@entry_point
def score_tiles(users, tiles, starts, hidden, x):  # type: ignore[no-untyped-def]
    found, n_rows = np.empty(TILE, dtype=np.float32), x.shape[1]
    for b in range(len(users)):
        for tile in range((n_rows + TILE - 1) // TILE):
            low = tile * TILE
            score_tile(users[b], tiles, tile, found)
            x[b, low : low + TILE] = found[: min(TILE, n_rows - low)]
        for place in range(starts[b], starts[b + 1]):
            x[b, hidden[place]] = np.nan


@entry_point
def score_places(users, rows, places, x):  # type: ignore[no-untyped-def]
    d, m = rows.shape[1], places.shape[1]
    tile, found = np.zeros(d * TILE, dtype=np.float32), np.empty(TILE, dtype=np.float32)
    for b in range(len(users)):
        for first in range(0, m, TILE):
            last = min(first + TILE, m)
            for k in range(first, last):
                row = rows[places[b, k]]
                for f in range(d):
                    tile[f * TILE + k - first] = row[f]
            score_tile(users[b], tile, 0, found)
            for k in range(first, last):
                x[b, k] = found[k - first]


@entry_point
def count_tiles(users, tiles, n_rows, starts, hidden, x, counts):  # type: ignore[no-untyped-def]
    found = np.empty(TILE, dtype=np.float32)
    for b in range(len(users)):
        counts[b] = 0
        place = starts[b]
        for tile in range((n_rows + TILE - 1) // TILE):
            low = tile * TILE
            score_tile(users[b], tiles, tile, found)
            while place < starts[b + 1] and hidden[place] < low + TILE:
                found[hidden[place] - low] = np.nan
                place += 1
            for beyond in range(n_rows - low, TILE):  # of the last tile
                found[beyond] = np.nan
            for k in range(x.shape[1]):
                threshold = x[b, k]
                count = np.int32(0)
                for l in range(TILE):  # noqa: E741
                    count += np.int32(found[l] <= threshold)
                counts[b, k] += count
