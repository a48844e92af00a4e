"""Exact against refreshed F in a bare MF loop with ``bayesneg.torch.Sampler``: ML-100K and ML-1M, on a CPU.

    BAYESNEG_DATA=… python -m benchmarks.quality.drop_in_cdf [--seeds 3] [--data ml-100k,ml-1m]

BNS with five candidates and the BPR loss, d = 32, batches of 1,024, Adam. A tenth of the training part is held out and
evaluated after each epoch; the test part is not read. A run counts with its best epoch. The difference is paired by
seed, with a Student t interval. Writes results/quality/drop_in_cdf.json.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import torch

import bayesneg as bn
import bayesneg.torch as bnt
from bayesneg.data.splits import carve_validation
from bayesneg.evaluation.statistics import paired_difference
from bayesneg.experiments.datasets import VALIDATION_SHARE, blind
from bayesneg.models.scorers import EmbeddingScorer
from benchmarks.data import splits
from benchmarks.machine import write_result

SAMPLERS: Final = {
    "exact": bn.BNS(candidates=5, cdf="exact"),
    "refreshed": bn.BNS(candidates=5, cdf="refreshed"),
}
EPOCHS: Final = {"ml-100k": 30, "ml-1m": 20}
DIM, BATCH, RATE = 32, 1024, 0.005
MEASURE = "ndcg@20"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", default=",".join(EPOCHS))
    options = parser.parse_args()
    found, whole = {}, splits(None)
    for name in options.data.split(","):
        split = blind(carve_validation(whole[name], VALIDATION_SHARE, seed=0))
        runs: dict[str, list[list[float]]] = {label: [] for label in SAMPLERS}
        for seed in range(options.seeds):
            for label, sampler in SAMPLERS.items():
                runs[label].append(trained(sampler, split, seed, EPOCHS[name]))
                print(f"{name:10s}{label:12s}{seed:3d} {max(runs[label][-1]):.4f}", file=sys.stderr, flush=True)
        found[name] = summary(runs)
    settings = {"dim": DIM, "batch": BATCH, "learning_rate": RATE, "measure": MEASURE}
    print(f"wrote {write_result(__file__, {**settings, 'data': found})}")


def summary(runs: dict[str, list[list[float]]]) -> dict[str, Any]:
    """What the epochs of every run amount to."""
    best = {label: np.array([max(values) for values in own]) for label, own in runs.items()}
    difference = paired_difference(best["refreshed"], best["exact"], over="seeds")
    means = {label: float(values.mean()) for label, values in best.items()}
    return {"mean": means, "refreshed − exact": asdict(difference), "by_epoch": runs}


def trained(sampler: bn.NegativeSampler, split: bn.Split, seed: int, epochs: int) -> list[float]:
    """NDCG@20 on the held-out tenth, after each epoch."""
    train, generator = split.train, torch.Generator().manual_seed(seed)
    U, V = (
        torch.nn.Parameter(0.1 * torch.randn(rows, DIM, generator=generator)) for rows in (train.n_users, train.n_items)
    )
    optimizer, bound = torch.optim.Adam([U, V], lr=RATE), bnt.Sampler(sampler, train, seed=seed)
    users, items = (torch.from_numpy(part.astype(np.int64)) for part in (train.users, train.indices))
    values = []
    for _ in range(epochs):
        for batch in torch.randperm(len(users), generator=generator).split(BATCH):  # type: ignore[no-untyped-call]
            which, positives = users[batch], items[batch]
            loss = bnt.losses.bpr(U[which], V[positives], V, bound(which, positives, U, V))
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
        bound.end_epoch(U, V)
        scorer = EmbeddingScorer(U.detach().numpy(), V.detach().numpy())
        values.append(float(bn.evaluate(scorer, split, k=20, metrics="ndcg").mean[MEASURE]))
    return values


if __name__ == "__main__":
    main()
