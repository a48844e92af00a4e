"""Which prior tells false negatives best: Brier scores of the priors of the study on its validation parts.

    BAYESNEG_DATA=… python -m benchmarks.quality.priors [gowalla,yelp2018] [--only gfcf,als] [--users 1000]
    python -m benchmarks.quality.priors gowalla,yelp2018 --only ease --solver dense --arrays data.npz    # on a GPU

All unobserved pairs of some users against the held-out ones; the same users for every prior. The curves of learned
priors are for as many hidden positives as are held out: test positives are hidden too, and are no labels here. Adds to
results/quality/priors.json what is not there yet; ``--again`` measures anew.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

import bayesneg as bn
from benchmarks.machine import machine, read_result, write_result
from benchmarks.studies.negatives.plan import BLIND, DATASETS, PRIORS
from benchmarks.studies.negatives.training import source_of

NAMES: Final = (*PRIORS, "ease")
USERS_AT_ONCE: Final = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="?", default=",".join(DATASETS), help=f"of {', '.join(DATASETS)}")
    parser.add_argument("--only", default=",".join(NAMES), help=f"of {', '.join(NAMES)}")
    parser.add_argument("--users", type=int, default=1000, help="whose unobserved pairs are looked at")
    parser.add_argument("--solver", default="auto", help="of EASE; dense needs a GPU")
    parser.add_argument("--arrays", type=Path, help="read the data from this file, as the study packs it")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    given = parser.parse_args()
    found = (read_result("quality/priors") or {"data": {}})["data"]
    for dataset in given.datasets.split(","):
        of_dataset = found.setdefault(dataset, {})
        split = source_of(given.arrays).split(dataset, BLIND[dataset])
        for name in given.only.split(","):
            if name in of_dataset and not given.again:
                continue
            prior = prior_of(name, len(split.test) / len(split.train), given.solver)
            of_dataset[name] = {**scores_of(prior, split, given.users), "machine": machine()}
            print(dataset, name, of_dataset[name], file=sys.stderr)
            write_result(__file__, {"data": found})


def prior_of(name: Any, hidden: float, solver: Any) -> bn.Prior:
    if name == "popularity":
        return bn.priors.Popularity()
    return bn.priors.Learned(item_model=name, hidden=hidden, solver=solver)


def scores_of(prior: bn.Prior, split: bn.Split, n_users: int) -> dict[str, Any]:
    """The Brier score of the probabilities of a false negative, and that of the base rate for all."""
    began = time.perf_counter()
    fitted = prior.fit(split.train)
    seconds = time.perf_counter() - began
    train = split.train
    users = np.random.default_rng(0).permutation(np.flatnonzero(split.test.counts))[:n_users]
    items, squares, predicted, false, pairs = np.arange(train.n_items), 0.0, 0.0, 0, 0
    for first in range(0, len(users), USERS_AT_ONCE):
        some = users[first : first + USERS_AT_ONCE, None]
        unobserved = ~train.contains(some, items[None, :])
        labels = split.test.contains(some, items[None, :])[unobserved]
        p = np.broadcast_to(fitted.probability(some, items[None, :]), unobserved.shape)[unobserved]
        squares += float(((p - labels) ** 2).sum())
        predicted, false, pairs = predicted + float(p.sum()), false + int(labels.sum()), pairs + len(labels)
    rate = false / pairs
    return {
        "brier": squares / pairs,
        "brier_of_base_rate": rate * (1.0 - rate),
        "mean_predicted": predicted / pairs,
        "false_negatives": rate,
        "users": len(users),
        "seconds_of_fit": seconds,
    }


if __name__ == "__main__":
    main()
