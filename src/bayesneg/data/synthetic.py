"""A synthetic dataset: what every user likes is known for every item, and only items seen and liked are observed.

    observed(u, i) = exposed(u, i) AND likes(u, i)
    P(likes(u, i)) = σ(b_u + b_i + p_u · q_i)

An unobserved item is disliked, or was never seen and may be a false negative. The constants make the default dataset
resemble MovieLens-100K in popularity, activity and learnability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.seeding import stream

ML_100K = (943, 1682, 100_000)  # users, items, interactions: the density and the users' activity of a synthetic world
TASTE, QUALITY = 5.0, 2.5  # standard deviations of p_u · q_i and of b_i
# The least active user of ML-100K has 20 interactions, the mean is 106; above the least it is log-normal.
LEAST_ACTIVITY, ACTIVITY_SPREAD = 0.19, 1.2
OPENNESS = 0.7  # how far the share of items a user likes grows with the user's activity
N_CALIBRATION_PAIRS = 1 << 16
LOOKS = 40  # a user gives up after this many looks per interaction aimed at, which also bounds the work
SECONDS_A_YEAR = 365 * 24 * 3600


@dataclass(frozen=True, eq=False)
class SyntheticWorld:
    """The ground truth of a synthetic dataset.

    Args:
        user_vectors: p_u, (n_users, dim).
        item_vectors: q_i, (n_items, dim).
        user_offsets: b_u, how easily a user likes any item, (n_users,).
        item_offsets: b_i, the quality of an item, (n_items,).
        groups: Group of each user, (n_users,).
        exposure: Probability that a look falls on an item, (n_items,).
        activity: Expected share of all interactions, (n_users,).
        key: Key of the hash that decides whether a user likes an item.

    >>> world = synthetic(50, 80, seed=0).truth
    >>> world.preference(3, np.arange(4)).round(3)
    array([0.087, 0.   , 0.   , 0.   ])
    >>> world.likes(np.arange(2)[:, None], np.arange(4))
    array([[ True, False, False, False],
           [ True, False,  True, False]])
    """

    user_vectors: np.ndarray
    item_vectors: np.ndarray
    user_offsets: np.ndarray
    item_offsets: np.ndarray
    groups: np.ndarray
    exposure: np.ndarray
    activity: np.ndarray
    key: int

    @property
    def n_users(self) -> int:
        return len(self.user_offsets)

    @property
    def n_items(self) -> int:
        return len(self.item_offsets)

    @property
    def parameters(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The four arrays that :mod:`bayesneg.data.synthetic_kernels` takes."""
        return self.user_vectors, self.item_vectors, self.user_offsets, self.item_offsets

    def preference(self, users: np.ndarray | int, items: np.ndarray | int) -> np.ndarray:
        """P(likes) of each pair; ``users`` and ``items`` broadcast."""
        from bayesneg.data.synthetic_kernels import preferences

        flat_users, flat_items, shape = self._pairs(users, items)
        return preferences(flat_users, flat_items, *self.parameters).reshape(shape)

    def likes(self, users: np.ndarray | int, items: np.ndarray | int) -> np.ndarray:
        """Whether the user likes the item, drawn once per pair; ``users`` and ``items`` broadcast."""
        from bayesneg.data.synthetic_kernels import likes

        flat_users, flat_items, shape = self._pairs(users, items)
        return likes(flat_users, flat_items, *self.parameters, np.uint64(self.key)).reshape(shape)

    def _pairs(
        self, users: np.ndarray | int, items: np.ndarray | int
    ) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
        for noun, numbers, size in (("users", users, self.n_users), ("items", items, self.n_items)):
            if np.size(numbers) and (np.min(numbers) < 0 or np.max(numbers) >= size):
                raise InputError(f"{noun} must be numbers from 0 to {size - 1}, got {numbers!r}")
        pairs = np.broadcast_arrays(np.asarray(users, dtype=np.int64), np.asarray(items, dtype=np.int64))
        return pairs[0].ravel(), pairs[1].ravel(), pairs[0].shape


def synthetic(
    n_users: int = 943,
    n_items: int = 1682,
    *,
    n_interactions: int | None = None,
    n_groups: int = 8,
    dim: int = 20,
    liked_share: float = 0.11,
    group_share: float = 0.5,
    exposure_skew: float = 1.8,
    exposure_quality: float = 0.7,
    seed: int = 0,
) -> Interactions:
    """Generate interactions whose ground truth, a :class:`SyntheticWorld`, is known.

    Each user looks at items drawn by exposure and interacts with those they like. Time and memory grow with the looks,
    not with users × items. Times fall within a year, so that every split rule works.

    Args:
        n_users: Number of users.
        n_items: Number of items.
        n_interactions: Number of interactions; by default as dense as ML-100K (6.3% of the pairs), but at most its 106
            per user: 100,000 at the default size.
        n_groups: Number of user groups, the user column ``group``.
        dim: Dimension of the users' and items' hidden vectors p_u and q_i.
        liked_share: Mean P(likes) over all pairs, strictly between 0 and 1.
        group_share: Share of the variance of p_u that users of a group have in common, 0 to 1.
        exposure_skew: Standard deviation of log exposure, 0 (uniform) to 5.
        exposure_quality: Correlation of log exposure with item quality b_i, 0 to 1.
        seed: Seed; the same seed gives the same bytes.

    Returns:
        The interactions; ``truth`` tells for every pair whether the user likes the item.

    Example:
        >>> data = synthetic(200, 300, seed=0)
        >>> len(data), data.user_ids[17], data.item_ids[42], data.user_columns["group"][17]
        (3783, 'u17', 'i42', 'g3')
        >>> bool(data.truth.likes(data.users, data.indices).all())
        True
    """
    for name, count in (("n_users", n_users), ("n_items", n_items), ("n_groups", n_groups), ("dim", dim)):
        _check_whole(name, count)
    _check_range("liked_share", liked_share, 0, 1, is_open=True)
    _check_range("group_share", group_share, 0, 1)
    _check_range("exposure_skew", exposure_skew, 0, 5)
    _check_range("exposure_quality", exposure_quality, 0, 1)
    wanted = _as_dense_as_ml_100k(n_users, n_items) if n_interactions is None else n_interactions
    _check_whole("n_interactions", wanted)
    rng = stream(seed, "world")
    groups, user_vectors = _grouped_vectors(n_users, n_groups, dim, group_share, rng)
    item_vectors = rng.standard_normal((n_items, dim), dtype=np.float32) * np.float32(TASTE / dim**0.5)
    quality = rng.standard_normal(n_items)
    activity = _activity(n_users, rng)
    item_offsets = (QUALITY * quality).astype(np.float32)
    world = SyntheticWorld(
        user_vectors=user_vectors,
        item_vectors=item_vectors,
        user_offsets=_user_offsets(user_vectors, item_vectors, item_offsets, activity, liked_share, rng),
        item_offsets=item_offsets,
        groups=groups,
        exposure=_exposure(quality, exposure_skew, exposure_quality, rng),
        activity=activity,
        key=int(rng.integers(1 << 63)),
    )
    users, items, times = _observed(world, wanted, liked_share, np.uint64(rng.integers(1 << 63)))
    return Interactions.from_numbers(
        users,
        items,
        user_ids=_named("u", n_users),
        item_ids=_named("i", n_items),
        times=times,
        user_columns={"group": _named("g", n_groups)[groups]},
        truth=world,
        name="synthetic",
    )


def _named(letter: str, n: int) -> np.ndarray:
    return np.array([f"{letter}{number}" for number in range(n)], dtype=object)


def _as_dense_as_ml_100k(n_users: int, n_items: int) -> int:
    users, items, interactions = ML_100K
    return max(1, round(interactions * n_users / users * min(1.0, n_items / items)))


def _grouped_vectors(
    n_users: int, n_groups: int, dim: int, group_share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Groups (n_users,) and p_u = √share · group centre + √(1 − share) · individual part, (n_users, dim)."""
    groups = rng.integers(n_groups, size=n_users)
    centres = rng.standard_normal((n_groups, dim), dtype=np.float32)
    individual = rng.standard_normal((n_users, dim), dtype=np.float32)
    return groups, np.float32(group_share**0.5) * centres[groups] + np.float32((1 - group_share) ** 0.5) * individual


def _activity(n_users: int, rng: np.random.Generator) -> np.ndarray:
    tail = np.exp(ACTIVITY_SPREAD * rng.standard_normal(n_users))
    return (LEAST_ACTIVITY + (1 - LEAST_ACTIVITY) * tail / tail.mean()) / n_users


def _exposure(quality: np.ndarray, skew: float, correlation: float, rng: np.random.Generator) -> np.ndarray:
    chance = rng.standard_normal(len(quality))
    weights = np.exp(skew * (correlation * quality + (1 - correlation**2) ** 0.5 * chance))
    return weights / weights.sum()


def _user_offsets(
    user_vectors: np.ndarray,
    item_vectors: np.ndarray,
    item_offsets: np.ndarray,
    activity: np.ndarray,
    liked_share: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """b_u (n_users,) such that busy users like more items, and all pairs together ``liked_share`` of them.

    Over items a user's logits are about normal with variance v, so the share liked is σ(b / √(1 + πv/8));
    what that misses is made up for by one intercept, fitted on a sample of pairs.
    """
    n_users, n_items = len(user_vectors), len(item_vectors)
    share = liked_share * (1 - OPENNESS + OPENNESS * n_users * activity)
    share = np.minimum(share, max(0.5, liked_share))
    variance = QUALITY**2 + TASTE**2 * np.mean(user_vectors**2, axis=1)
    offsets = np.sqrt(1 + np.pi / 8 * variance) * np.log(share / (1 - share))
    users, items = (rng.integers(n, size=N_CALIBRATION_PAIRS) for n in (n_users, n_items))
    logits = np.einsum("nf,nf->n", user_vectors[users], item_vectors[items]) + offsets[users] + item_offsets[items]
    return (offsets + _intercept(logits, liked_share)).astype(np.float32)


def _intercept(logits: np.ndarray, share: float) -> float:
    """The number that, added to the logits, makes their mean probability ``share``; by bisection."""
    low, high = -100.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = np.mean(1 / (1 + np.exp(-(logits + middle))))
        low, high = (middle, high) if mean < share else (low, middle)
    return (low + high) / 2


def _observed(
    world: SyntheticWorld, wanted: int, liked_share: float, exposure_key: np.uint64
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users, items, times, each (wanted,): everyone aims too high, then the surplus is dropped."""
    from bayesneg.data.synthetic_kernels import watch

    _check_reachable(wanted, math.ceil(liked_share * world.n_users * world.n_items), liked_share)
    for slack in (1.1, 1.5, 3.0):
        targets = np.minimum(np.ceil(slack * wanted * world.activity).astype(np.int64) + 1, world.n_items)
        cdf = np.cumsum(world.exposure)
        items, looks, found, shown = watch(
            targets, LOOKS * targets + 1000, cdf, *world.parameters, np.uint64(world.key), exposure_key
        )
        if found.sum() >= wanted:
            break
    _check_reachable(wanted, int(found.sum()), liked_share)
    counts = _allocated(wanted, world.activity, found)  # (n_users,)
    users = np.repeat(np.arange(world.n_users), counts)
    starts = np.cumsum(targets) - targets - (np.cumsum(counts) - counts)
    kept = np.arange(len(users)) + starts[users]
    times = (SECONDS_A_YEAR * (looks[kept] / (shown[users] + 1))).astype(np.int64)
    return users, items[kept], times


def _allocated(total: int, weights: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Whole numbers (n,) that add up to ``total``, proportional to ``weights`` where there is ``room``."""
    low, high = 0.0, total / weights.min()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * weights, room).sum() < total else (low, middle)
    exact = np.minimum(high * weights, room)
    whole = np.floor(exact).astype(np.int64)
    largest_remainders = np.argsort(whole - exact, kind="stable")[: total - whole.sum()]
    whole[largest_remainders] += 1
    return whole


def _check_reachable(wanted: int, reachable: int, liked_share: float) -> None:
    if wanted > reachable:
        raise InputError(
            f"n_interactions must be at most what users see and like, about {reachable:,} here, "
            f"got {wanted:,}; lower it, or raise liked_share ({liked_share}), n_users or n_items"
        )


def _check_whole(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, got {value!r}")


def _check_range(name: str, value: float, low: float, high: float, *, is_open: bool = False) -> None:
    inside = low < value < high if is_open else low <= value <= high
    if not inside:
        how = "strictly between" if is_open else "between"
        raise InputError(f"{name} must be {how} {low} and {high}, got {value!r}")
