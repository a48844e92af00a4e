"""Which settings to recommend: candidates on validation parts, then the chosen ones beside baselines on test parts.

    BAYESNEG_DATA=… python -m benchmarks.quality.defaults [ml-100k,kuairec] [--only "recommended"]

A random 80/20 split with a tenth of the training part for validation, early stopping on it, one seed. The candidates
are compared on the validation parts of CHOOSING. The test metrics of the recommended settings and of the baselines at
their defaults are kept, no others; the datasets of HELD_BACK are measured after the choice. Adds to
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

CHOOSING: Final = ("ml-100k", "kuairec", "gowalla-5k", "yelp2018-5k", "gowalla-sparse", "synthetic")
HELD_BACK: Final = ("ml-1m", "yelp2018-sparse", "kuairec-sparse", "ml-1m-sparse")
DATASETS: Final = (*CHOOSING, *HELD_BACK)
USERS: Final = 5000  # of a part of a large dataset
LEAST: Final = 5  # interactions of an item in it
SPARSE: Final[Mapping[str, float]] = {  # share of the interactions that is kept
    "gowalla-sparse": 0.15,
    "yelp2018-sparse": 0.1,
    "kuairec-sparse": 0.03,
    "ml-1m-sparse": 0.02,
}
SPARSE_USERS: Final = 20_000
SPARSE_LEAST: Final = 3
RECOMMENDED: Final = "recommended"


def _candidate(model: Mapping[str, Any] = {}, **sampler: Any) -> tuple[bn.MF, Any]:
    """The recommended settings with changes."""
    return bn.MF.recommended(**model), bn.BNS.recommended(**sampler)


CANDIDATES: Final[Mapping[str, tuple[bn.MF, Any]]] = {
    RECOMMENDED: _candidate(),
    "random start": _candidate({"init": "normal", "init_scale": 0.1}),
    "64 dimensions": _candidate({"dim": 64}),
    "256 dimensions": _candidate({"dim": 256}),
    "5 candidates": _candidate(candidates=5),
    "20 candidates": _candidate(candidates=20),
    "prior from EASE": _candidate(prior=bn.priors.Learned()),
    "prior from popularity": _candidate(prior=bn.priors.Popularity()),
    "learning rate 0.03": _candidate({"learning_rate": 0.03}),
    "random negatives": (bn.MF.recommended(), bn.RNS()),
    "plain defaults": (bn.MF(), bn.BNS()),
}
BASELINES: Final[Mapping[str, bn.baselines.Baseline]] = {
    "popularity": bn.baselines.MostPopular(),
    "item-knn": bn.baselines.ItemKNN(),
    "ease": bn.baselines.EASE(),
    "als": bn.baselines.ALS(),
}
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
        for label in given.only.split(";") if given.only else methods_of(name):
            if label not in lines["methods"]:
                lines["methods"][label] = {**measured(label, split), "machine": machine()}
                print(name, label, lines["methods"][label], file=sys.stderr)
                write_result(__file__, {"data": found})


def methods_of(name: str) -> tuple[str, ...]:
    return (*BASELINES, *CANDIDATES) if name in CHOOSING else (*BASELINES, RECOMMENDED)


def measured(label: str, split: bn.Split) -> dict[str, Any]:
    began = time.perf_counter()
    if label in BASELINES:
        run = bn.fit(BASELINES[label], split, select="last", progress=False)
    else:
        model, sampler = CANDIDATES[label]
        run = bn.fit(model, split, sampler, seed=0, **EPOCHS)
    seconds = time.perf_counter() - began
    assert split.validation is not None
    validation = bn.evaluate(run.scorer, bn.Split(train=split.train, test=split.validation))  # of all users
    return {
        "validation_ndcg@20": validation.mean["ndcg@20"],
        **({"ndcg@20": run.record.final["ndcg@20"]} if label in (*BASELINES, RECOMMENDED) else {}),
        "epoch": run.record.reported_epoch,
        "epochs": len(run.record.epochs),
        "seconds": seconds,
    }


def data_of(name: str) -> bn.Split:
    """A dataset, or a part of a large one, split at random."""
    if name in DATASETS and name.rpartition("-")[2] not in ("5k", "sparse"):
        data = load("synthetic") if name == "synthetic" else load(name, data_dir=data_folder())
        return bn.split(data, test=0.2, validation=0.1, seed=0)
    whole, rng = interactions_of(name.rpartition("-")[0]), np.random.default_rng(0)
    kept = np.isin(whole.users, rng.permutation(whole.n_users)[: SPARSE_USERS if name in SPARSE else USERS])
    if name in SPARSE:
        kept &= rng.random(len(whole)) < SPARSE[name]
    least = SPARSE_LEAST if name in SPARSE else LEAST
    kept &= np.bincount(whole.indices[kept], minlength=whole.n_items)[whole.indices] >= least
    data = bn.Interactions.from_pairs(whole.users[kept], whole.indices[kept], name=name)
    return bn.split(data, test=0.2, validation=0.1, seed=0)


def interactions_of(name: str) -> bn.Interactions:
    folder = data_folder() / name
    if not (folder / "train.txt").exists():
        return load(name, data_dir=data_folder())
    return read_split(folder / "train.txt", folder / "test.txt", name=name).known


if __name__ == "__main__":
    main()
