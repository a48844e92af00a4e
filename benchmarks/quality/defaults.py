"""Which defaults are good out of the box: candidates against four baselines at their defaults, on six datasets.

    BAYESNEG_DATA=… python -m benchmarks.quality.defaults [ml-100k,kuairec] [--only "learned prior"]

Candidates were chosen by the test parts of two datasets, CHOSEN_BY; the others were measured after the choice. A random
80/20 split with a tenth of the training part for validation, early stopping on it, one seed. Adds to
results/quality/defaults.json what is not there yet.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

import bayesneg as bn
from bayesneg.data.load import load, read_split
from benchmarks.machine import data_folder, machine, read_result, write_result

DATASETS: Final = ("ml-100k", "kuairec", "gowalla-5k", "ml-1m", "yelp2018-5k", "synthetic")
CHOSEN_BY: Final = ("ml-100k", "gowalla-5k")  # whose results were known when the candidate was chosen
USERS: Final = 5000  # of a part of a large dataset
LEAST: Final = 5  # interactions of an item in it
CANDIDATES: Final[Mapping[str, tuple[bn.MF, Any]]] = {
    "until now": (bn.MF(dim=32, learning_rate=0.01, regularization=0.01), bn.BNS(candidates=5)),
    "wider, learned prior": (bn.MF.recommended(), bn.BNS.recommended()),
    "wider, learned prior, 5 candidates": (bn.MF.recommended(), bn.BNS.recommended(candidates=5)),
    "wider, learned prior, lower rate": (
        bn.MF.recommended(learning_rate=0.015), bn.BNS.recommended()
    ),
    "wider, popularity prior": (bn.MF.recommended(), bn.BNS(candidates=10, cdf="refreshed")),
}  # fmt: skip
BASELINES: Final[Mapping[str, bn.baselines.Baseline]] = {
    "popularity": bn.baselines.MostPopular(),
    "item-knn": bn.baselines.ItemKNN(),
    "ease": bn.baselines.EASE(),
    "als": bn.baselines.ALS(),
}
RECOMMENDED: Final = "wider, learned prior"
EPOCHS: Final[Mapping[str, Any]] = {"epochs": 200, "patience": 10, "evaluate_users": 1000, "progress": False}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="?", default=",".join(DATASETS))
    parser.add_argument("--only", default="", help="of them, separated by semicolons; all unless given")
    given = parser.parse_args()
    found = (read_result("quality/defaults") or {"data": {}})["data"]
    for name in given.datasets.split(","):
        split, lines = data_of(name), found.setdefault(name, {"methods": {}})
        lines |= {"users": split.train.n_users, "items": split.train.n_items, "interactions": len(split.known)}
        for label in given.only.split(";") if given.only else (*BASELINES, *CANDIDATES):
            if label not in lines["methods"]:
                lines["methods"][label] = {**measured(label, split), "machine": machine()}
                print(name, label, lines["methods"][label], file=sys.stderr)
                write_result(__file__, {"data": found})


def measured(label: str, split: bn.Split) -> dict[str, Any]:
    began = time.perf_counter()
    if label in BASELINES:
        run = bn.fit(BASELINES[label], split, select="last", progress=False)
    else:
        model, sampler = CANDIDATES[label]
        run = bn.fit(model, split, sampler, seed=0, **EPOCHS)
    return {
        "ndcg@20": run.record.final["ndcg@20"],
        "epoch": run.record.reported_epoch,
        "epochs": len(run.record.epochs),
        "seconds": time.perf_counter() - began,
    }


def data_of(name: str) -> bn.Split:
    """A dataset, or the interactions of some users of a large one, split at random."""
    if not name.endswith("-5k"):
        data = load("synthetic") if name == "synthetic" else load(name, data_dir=data_folder())
        return bn.split(data, test=0.2, validation=0.1, seed=0)
    folder = data_folder() / name.removesuffix("-5k")
    whole = read_split(folder / "train.txt", folder / "test.txt", name=name).known
    users = np.random.default_rng(0).permutation(whole.n_users)[:USERS]
    kept = np.isin(whole.users, users)
    kept &= np.bincount(whole.indices[kept], minlength=whole.n_items)[whole.indices] >= LEAST
    data = bn.Interactions.from_pairs(whole.users[kept], whole.indices[kept], name=name)
    return bn.split(data, test=0.2, validation=0.1, seed=0)


if __name__ == "__main__":
    main()
