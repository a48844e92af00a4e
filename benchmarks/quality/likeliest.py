"""What a learned prior loses when a pool reads a few likeliest items per user and a base rate for the rest.

    BAYESNEG_DATA=… python -m benchmarks.quality.likeliest [--users 500]

ML-1M (a random 80/20 split, EASE) and Gowalla (neighbours), all unobserved pairs of some users. The error against the
probabilities of all pairs, and the Brier score against the test part of both. Writes results/quality/likeliest.json.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

import bayesneg as bn
from bayesneg.data.load import load, read_split
from bayesneg.samplers.priors.learned import CalibratedItemModel
from benchmarks.machine import data_folder, write_result

KEPT = (100, 250, 500, 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=500)
    n_users, folder = parser.parse_args().users, data_folder() / "gowalla"
    found = {}
    for name, split in (
        ("ml-1m", bn.split(load("ml-1m"), test=0.2, seed=0)),
        ("gowalla", read_split(folder / "train.txt", folder / "test.txt", name="gowalla")),
    ):
        found[name] = losses_of(split, n_users)
        for kept, line in found[name]["kept"].items():
            print(f"{name:10s}{kept:6d} {line}", file=sys.stderr)
    print(f"wrote {write_result(__file__, {'users': n_users, 'data': found})}")


def losses_of(split: bn.Split, n_users: int) -> dict[str, Any]:
    """The Brier score of the dense probabilities, and the errors of each number of items that is kept."""
    train, prior = split.train, bn.priors.Learned().fit(split.train)
    users = np.random.default_rng(0).choice(train.n_users, n_users, replace=False)
    items = np.arange(train.n_items)
    unobserved = ~train.contains(users[:, None], items[None, :])
    labels = split.test.contains(users[:, None], items[None, :])[unobserved]
    dense = prior.probability(users[:, None], items[None, :])[unobserved]
    kept = {}
    for number in KEPT:
        form = CalibratedItemModel(prior.model, prior.curve, train, cache=0, likeliest=number).form()
        sparse = np.repeat(form.base[users][:, None], train.n_items, axis=1)
        for row, user in zip(sparse, users, strict=True):
            place = slice(form.indptr[user], form.indptr[user + 1])
            row[form.items[place]] = form.values[place]
        error = sparse[unobserved] - dense
        kept[number] = {
            "root_mean_square": float(np.sqrt((error**2).mean())),
            "largest": float(np.abs(error).max()),
            "explained": float(1.0 - (error**2).mean() / dense.var()),
            "brier": float(((sparse[unobserved] - labels) ** 2).mean()),
            "expected_false_negatives": float(sparse[unobserved].sum() / dense.sum()),
        }
    return {"brier": float(((dense - labels) ** 2).mean()), "rate": float(labels.mean()), "kept": kept}


if __name__ == "__main__":
    main()
