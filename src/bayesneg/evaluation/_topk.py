"""The k best items of each user (numba).

Items are ranked by score descending, then by item number ascending; NaN ranks as −inf. The catalogue is dealt out into
lanes. A threshold that k lanes' maxima reach is reached by the k best items and by few others: only the items above it
are sorted. The loops over lanes and blocks compile to vector instructions.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from bayesneg.kernels.numba.compiling import entry_point, kernel

BLOCK = 64  # scores compared with the threshold at once
BISECTIONS = 24  # float32 has a precision of 24 bits
LOWEST = np.float32(-np.inf)


def warn_of_nan(scores: np.ndarray) -> None:
    """A warning where a model gives no number: such items rank last, which must not pass for a result.

    Args:
        scores: Any scores; one pass without a copy.
    """
    with np.errstate(invalid="ignore"):
        has_nan = scores.size and np.isnan(scores.min())
    if has_nan:
        warnings.warn(
            "some scores of the model are no numbers (NaN) and rank last; look for infinite or huge embeddings",
            stacklevel=2,
        )


@kernel
def copy_scores(scores: np.ndarray, masked: np.ndarray, copy: np.ndarray) -> None:
    """Copy one user's ``scores``, NaN as −inf; the ``masked`` items then get NaN, which every comparison leaves out."""
    for item in range(len(scores)):
        copy[item] = scores[item] if scores[item] > LOWEST else LOWEST
    for item in masked:
        copy[np.uint32(item)] = np.nan


@kernel
def _select(scores: np.ndarray, lanes: np.ndarray, values: np.ndarray, above: np.ndarray, items: np.ndarray) -> None:
    """Fill ``items`` (k,) with the best that are not masked, best first, −1 where there are fewer than k."""
    _find_maxima(scores, lanes)
    threshold = _threshold(lanes, len(items))
    n_above = 0
    for start in range(0, len(scores), BLOCK):
        block = scores[start : start + BLOCK]
        if count_reaching(block, threshold) > 0:
            for position in range(len(block)):
                if block[position] > threshold:
                    values[n_above], above[n_above] = block[position], start + position
                    n_above += 1
    best = np.argsort(-values[:n_above], kind="mergesort")[: len(items)]  # stable: of equals, the lower number first
    n_listed = len(best)
    items[:n_listed] = above[best]
    items[n_listed:] = -1
    for item in range(len(scores)):
        if n_listed == len(items):
            break
        if scores[item] == threshold:
            items[n_listed] = item
            n_listed += 1


@kernel
def _find_maxima(scores: np.ndarray, lanes: np.ndarray) -> None:
    lanes[:] = LOWEST
    for start in range(0, len(scores), len(lanes)):
        part = scores[start : start + len(lanes)]
        for lane in range(len(part)):
            lanes[lane] = part[lane] if part[lane] > lanes[lane] else lanes[lane]


@kernel
def _threshold(lanes: np.ndarray, k: int) -> Any:
    """A score that at least k maxima reach, and hardly more, by bisection; −inf, to sort all, if some are infinite."""
    low, high = lanes.min(), lanes.max()
    if not high - low < np.inf:
        return LOWEST
    for _ in range(BISECTIONS):
        middle = low + (high - low) * np.float32(0.5)
        count = count_reaching(lanes, middle)
        if count < k:
            high = middle
            continue
        low = middle
        if count < k + 4:
            break
    return low


@kernel
def count_reaching(scores: np.ndarray, threshold: Any) -> Any:
    count = np.int32(0)
    for position in range(len(scores)):
        count += np.int32(scores[position] >= threshold)
    return count


@entry_point
def top_k(
    scores: np.ndarray,  # (B, n_items) float32
    users: np.ndarray,  # (B,) int64
    indptr: np.ndarray,  # (n_users + 1,) of the masked items
    indices: np.ndarray,
    k: int,
) -> np.ndarray:
    """The k best unmasked items of each user, best first: (B, k) int32, −1 where a user has fewer than k."""
    n_items = scores.shape[1]
    items = np.empty((len(users), k), dtype=np.int32)
    lanes = np.empty(-(-2 * k // BLOCK) * BLOCK, dtype=np.float32)
    copy, values = np.empty(n_items, dtype=np.float32), np.empty(n_items, dtype=np.float32)
    above = np.empty(n_items, dtype=np.int32)
    for row in range(len(users)):
        copy_scores(scores[row], indices[indptr[users[row]] : indptr[users[row] + 1]], copy)
        _select(copy, lanes, values, above, items[row])
    return items
