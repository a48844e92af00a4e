"""Are the published test parts of Gowalla and Yelp2018 a random fifth of each user's items?

    BAYESNEG_DATA=… python -m benchmarks.quality.published_splits

An item's test share scatters around that of all pairs. The variance of the number of an item's test pairs is set
against what it is when as many items of each user are drawn at random (mean of some draws). 1 is a random split. Writes
results/quality/published_splits.json.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

import bayesneg as bn
from benchmarks.machine import write_result
from benchmarks.studies.splits import StudySource

DRAWS: Final = 5
POPULARITY: Final = ((10, 20), (20, 40), (40, 100), (100, 1 << 30))  # interactions of an item, from and below


def main() -> None:
    source, found = StudySource(), {}
    for name in ("gowalla", "yelp2018", "ml-1m"):
        split = source.split(name, "last")
        found[name] = dispersions(split.train, split.test)
        print(name, found[name], file=sys.stderr)
    print(f"wrote {write_result(__file__, {'draws': DRAWS, 'data': found})}")


def dispersions(train: bn.Interactions, test: bn.Interactions) -> list[dict[str, Any]]:
    """By the popularity of items: their test share, and the variance of their test pairs against a random split."""
    users = np.concatenate((train.users, test.users))
    items = np.concatenate((train.indices, test.indices))
    is_test = np.concatenate((np.zeros(len(train), dtype=bool), np.ones(len(test), dtype=bool)))
    total = np.bincount(items, minlength=train.n_items)
    n_test = np.bincount(items[is_test], minlength=train.n_items)
    random = [random_counts(users, items, test.counts, seed) for seed in range(DRAWS)]
    lines = []
    for low, high in POPULARITY:
        some = (total >= low) & (total < high)
        variance = [scatter(counts[some], total[some]) for counts in random]
        lines.append(
            {
                "interactions": [low, high],
                "items": int(some.sum()),
                "test_share": float(n_test[some].sum() / total[some].sum()),
                "variance_ratio": scatter(n_test[some], total[some]) / float(np.mean(variance)),
                "variance_ratio_of_draws": [value / float(np.mean(variance)) for value in variance],
            }
        )
    return lines


def scatter(counts: np.ndarray, total: np.ndarray) -> float:
    """The mean square of an item's test pairs minus what its popularity lets expect."""
    return float(((counts - total * counts.sum() / total.sum()) ** 2).mean())


def random_counts(users: np.ndarray, items: np.ndarray, n_test: np.ndarray, seed: int) -> np.ndarray:
    """The test pairs of each item (n_items,) where ``n_test`` (n_users,) of each user's are drawn at random."""
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(users)), users))
    counts = np.bincount(users, minlength=len(n_test))
    rank = np.arange(len(users)) - np.repeat(np.cumsum(counts) - counts, counts)
    drawn = rank < n_test[users[order]]
    return np.bincount(items[order][drawn], minlength=int(items.max()) + 1)


if __name__ == "__main__":
    main()
