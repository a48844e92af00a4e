"""How well the rank among in-batch negatives, corrected for the draw, estimates F: bias and standard error.

    python -m benchmarks.quality.in_batch_cdf [--pools 40] [--users 32]

A generated catalogue of 10,000 items whose popularity follows (rank + 10)^−0.8, 300,000 training pairs, and scores that
are correlated with the logarithm of popularity (0.5). A pool is the positives of a batch of random training pairs. For
each of its items and each of some users the estimate of F is compared with F counted over the user's unobserved items:
corrected by the probabilities of the draw as ``bn.samplers.InBatch`` does it, the plain rank, and the rank in a uniform
pool of the same size. Writes results/quality/in_batch_cdf.json.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

import numpy as np

import bayesneg as bn
from bayesneg.kernels.reference.pools import SharedPool, WeightsByPoolRank
from bayesneg.samplers.pools import uniform_pool
from benchmarks.machine import write_result

N_USERS, N_ITEMS, N_PAIRS = 3_000, 10_000, 300_000
CORRELATION = 0.5
SIZES: Final = (256, 1024, 2048)
BANDS: Final = {"0.5": (0.45, 0.55), "0.9": (0.88, 0.92), "0.99": (0.985, 0.995), "0.999": (0.998, 1.0)}  # of F
HOW: Final = ("corrected", "plain rank", "uniform pool")
# With a prior of ½ the posterior of a true negative is 1 − F.
SAMPLER: Final = bn.samplers.InBatch(weighting="posterior", prior=bn.priors.Flat(0.5))

Errors = dict[str, dict[str, list[np.ndarray]]]


class Scores:
    """Scores of some users for the whole catalogue."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    def score_all(self, users: np.ndarray) -> np.ndarray:
        return self.x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=int, default=40)
    parser.add_argument("--users", type=int, default=32)
    options = parser.parse_args()
    train = generated()
    found = {}
    for size in SIZES:
        errors = errors_of(train, size, options.pools, options.users)
        found[size] = {
            band: {how: {"bias": float(np.mean(e)), "standard_error": float(np.std(e))} for how, e in own.items()}
            for band, own in errors.items()
        }
        for band, own in found[size].items():
            print(f"{size:6d} F ≈ {band:6s} {own}", file=sys.stderr)
    settings = {"pools": options.pools, "users": options.users, "items": N_ITEMS, "correlation": CORRELATION}
    print(f"wrote {write_result(__file__, {**settings, 'sizes': found})}")


def generated() -> bn.Interactions:
    """Pairs whose items follow the law of popularity."""
    rng, law = np.random.default_rng(0), (np.arange(N_ITEMS) + 10.0) ** -0.8
    users, items = rng.integers(N_USERS, size=N_PAIRS), rng.choice(N_ITEMS, N_PAIRS, p=law / law.sum())
    users, items = np.unique(np.stack([users, items]), axis=1)
    return bn.Interactions.from_numbers(users, items, user_ids=np.arange(N_USERS), item_ids=np.arange(N_ITEMS))


def errors_of(train: bn.Interactions, size: int, n_pools: int, n_users: int) -> dict[str, dict[str, np.ndarray]]:
    """Estimate − F of every item that counts, by band of F and kind of estimate."""
    rng = np.random.default_rng(size)
    sampler = SAMPLER.prepare(train, rng=rng)
    popular = np.log1p(train.popularity)
    popular = (popular - popular.mean()) / popular.std()
    kept: Errors = {band: {how: [] for how in HOW} for band in BANDS}
    for _ in range(n_pools):
        users = rng.choice(N_USERS, n_users, replace=False).astype(np.int32)
        noise = rng.normal(size=(n_users, N_ITEMS))
        x = (CORRELATION * popular + np.sqrt(1 - CORRELATION**2) * noise).astype(np.float32)
        F = counted(x, users, train)
        pairs = rng.integers(len(train), size=size)
        drawn = bn.Batch(train.users[pairs], train.indices[pairs], pairs, 1, train, Scores(x), rng)  # type: ignore[arg-type]
        judged = bn.Batch(users, users, users, 1, train, Scores(x), rng)  # type: ignore[arg-type]
        pool, rule = sampler.pool(drawn), sampler.rule(drawn)
        assert isinstance(rule, WeightsByPoolRank)
        for how, given in zip(HOW, (pool, SharedPool(pool.items), uniform_pool(size, drawn)), strict=True):
            weights = rule.weigh(given, judged)  # 1 − F, and 0 for an item that does not count
            exact = F[:, given.items]
            for band, (low, high) in BANDS.items():
                there = (weights > 0) & (exact >= low) & (exact <= high)
                kept[band][how].append((1.0 - weights - exact)[there])
    return {band: {how: np.concatenate(parts) for how, parts in own.items()} for band, own in kept.items()}


def counted(x: np.ndarray, users: np.ndarray, train: bn.Interactions) -> np.ndarray:
    """F (B, n_items): the share of the user's unobserved items that score at most as high, of n + 1."""
    found = np.empty(x.shape)
    for row, user in enumerate(users):
        unobserved = np.ones(N_ITEMS, dtype=bool)
        unobserved[train.row(user)] = False
        ordered = np.sort(x[row, unobserved])
        found[row] = np.searchsorted(ordered, x[row], side="right") / (len(ordered) + 1)
    return found


if __name__ == "__main__":
    main()
