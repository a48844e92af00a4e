"""Synthetic data (numba): the preference of any pair, and users who look at items until they like enough of them.

Nothing users × items is stored: whether a user likes an item follows from a hash of (key, user, item),
so that it can be computed at any time, in any order, with the same result. The hash is the finalizer of
SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).

Every function takes a world's preferences as four arrays: user_vectors (n_users, dim), item_vectors (n_items, dim),
user_offsets (n_users,), item_offsets (n_items,).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFT_1, SHIFT_2, SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
TO_53_BITS, UNIT = np.uint64(11), 2.0**-53


@njit(cache=True, nogil=True)
def mixed(bits: np.uint64) -> np.uint64:
    """One 64-bit number scrambled into another, one to one."""
    bits = (bits ^ (bits >> SHIFT_1)) * MIX_1
    bits = (bits ^ (bits >> SHIFT_2)) * MIX_2
    return bits ^ (bits >> SHIFT_3)


@njit(cache=True, nogil=True)
def uniform(key: np.uint64, first: int, second: int) -> float:
    """The uniform number in [0, 1) that belongs to (key, first, second)."""
    row = mixed(key + GOLDEN * (np.uint64(first) + np.uint64(1)))
    return (mixed(row + GOLDEN * (np.uint64(second) + np.uint64(1))) >> TO_53_BITS) * UNIT


@njit(cache=True, nogil=True)
def preference(
    user: int,
    item: int,
    user_vectors: np.ndarray,
    item_vectors: np.ndarray,
    user_offsets: np.ndarray,
    item_offsets: np.ndarray,
) -> float:
    """P(user likes item) = σ(b_u + b_i + p_u · q_i), added up in double precision."""
    logit = np.float64(user_offsets[user]) + np.float64(item_offsets[item])
    for f in range(user_vectors.shape[1]):
        logit += np.float64(user_vectors[user, f]) * np.float64(item_vectors[item, f])
    return 1.0 / (1.0 + math.exp(-logit))


@njit(cache=True, nogil=True)
def preferences(
    users: np.ndarray,
    items: np.ndarray,
    user_vectors: np.ndarray,
    item_vectors: np.ndarray,
    user_offsets: np.ndarray,
    item_offsets: np.ndarray,
) -> np.ndarray:
    """:func:`preference` of each pair: users (n,), items (n,) → probabilities (n,)."""
    out = np.empty(len(users), dtype=np.float64)
    for n in range(len(users)):
        out[n] = preference(users[n], items[n], user_vectors, item_vectors, user_offsets, item_offsets)
    return out


@njit(cache=True, nogil=True)
def likes(
    users: np.ndarray,
    items: np.ndarray,
    user_vectors: np.ndarray,
    item_vectors: np.ndarray,
    user_offsets: np.ndarray,
    item_offsets: np.ndarray,
    key: np.uint64,
) -> np.ndarray:
    """Whether the user likes the item: users (n,), items (n,) → bool (n,)."""
    out = np.empty(len(users), dtype=np.bool_)
    for n in range(len(users)):
        chance = preference(users[n], items[n], user_vectors, item_vectors, user_offsets, item_offsets)
        out[n] = uniform(key, users[n], items[n]) < chance
    return out


@njit(cache=True, nogil=True)
def watch(
    targets: np.ndarray,
    limits: np.ndarray,
    exposure_cdf: np.ndarray,
    user_vectors: np.ndarray,
    item_vectors: np.ndarray,
    user_offsets: np.ndarray,
    item_offsets: np.ndarray,
    key: np.uint64,
    exposure_key: np.uint64,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Show each user u items drawn by exposure until ``targets[u]`` are liked or ``limits[u]`` were shown.

    targets, limits (n_users,), exposure_cdf (n_items,) → items (Σ targets,) in the order seen, user u's from
    Σ targets[:u] on; looks (Σ targets,), the number of the look at each; found (n_users,), how
    many were liked; shown (n_users,), how many looks it took.
    """
    n_users, n_items = len(targets), len(exposure_cdf)
    items = np.empty(targets.sum(), dtype=np.int32)
    looks = np.empty(len(items), dtype=np.int32)
    found = np.zeros(n_users, dtype=np.int64)
    shown = np.zeros(n_users, dtype=np.int64)
    last_shown_to = np.full(n_items, -1, dtype=np.int64)  # one user's marks, which the next user overwrites
    start = 0
    for user in range(n_users):
        while found[user] < targets[user] and shown[user] < limits[user]:
            spot = uniform(exposure_key, user, shown[user]) * exposure_cdf[-1]
            item = min(np.searchsorted(exposure_cdf, spot, side="right"), n_items - 1)
            shown[user] += 1
            if last_shown_to[item] == user:
                continue
            last_shown_to[item] = user
            chance = preference(user, item, user_vectors, item_vectors, user_offsets, item_offsets)
            if uniform(key, user, item) < chance:
                items[start + found[user]] = item
                looks[start + found[user]] = shown[user]
                found[user] += 1
        start += targets[user]
    return items, looks, found, shown
