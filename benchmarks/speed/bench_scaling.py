"""Seconds per epoch against the size of the catalogue, the number of candidates and the dimension.

    BAYESNEG_DATA=… python -m benchmarks.speed.bench_scaling [--repeats 3]

One thread. The catalogues are generated worlds of 5,000 users, 100,000 interactions and 1,000 to 1,000,000 items;
candidates and dimensions are varied on ML-100K. A point is the median over repeats of the mean of four epochs that
follow two others. Writes results/speed/bench_scaling.json.
"""

from __future__ import annotations

import argparse
import sys

import bayesneg as bn
from bayesneg.interfaces import NegativeSampler
from benchmarks.data import splits
from benchmarks.machine import write_result
from benchmarks.speed.contenders import DIM, Epoch, medians, our_epoch

ITEMS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
CANDIDATES = (1, 2, 5, 10, 20, 50)
DIMENSIONS = (8, 16, 32, 64, 128, 256)
EPOCHS = 4


def samplers(candidates: int = 5) -> dict[str, NegativeSampler]:
    return {
        "RNS": bn.RNS(),
        "DNS": bn.DNS(candidates=candidates),
        "BNS, refreshed F": bn.BNS(candidates=candidates, cdf="refreshed"),
        "BNS, exact F": bn.BNS(candidates=candidates, cdf="exact"),
    }


def measured(train: bn.Interactions, repeats: int, *, candidates: int = 5, dim: int = DIM) -> dict[str, float]:
    contenders = {name: _mean_epoch(train, sampler, dim) for name, sampler in samplers(candidates).items()}
    return medians(contenders, repeats)[0]


def _mean_epoch(train: bn.Interactions, sampler: NegativeSampler, dim: int) -> Epoch:
    def run() -> float:
        one = our_epoch(train, sampler, dim=dim)
        one()
        return sum(one() for _ in range(EPOCHS)) / EPOCHS

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    found: dict[str, dict[str, dict[str, float]]] = {"items": {}, "candidates": {}, "dimension": {}}
    for n_items in ITEMS:
        world = bn.synthetic(5_000, n_items, n_interactions=100_000, seed=0)
        found["items"][str(n_items)] = _shown("items", n_items, measured(world, repeats))
    train = splits(None)["ml-100k"].train
    for m in CANDIDATES:
        found["candidates"][str(m)] = _shown("candidates", m, measured(train, repeats, candidates=m))
    for dim in DIMENSIONS:
        found["dimension"][str(dim)] = _shown("dimension", dim, measured(train, repeats, dim=dim))
    print(f"wrote {write_result(__file__, found)}")


def _shown(what: str, value: int, seconds: dict[str, float]) -> dict[str, float]:
    print(what, value, {name: f"{1000 * s:.1f} ms" for name, s in seconds.items()}, file=sys.stderr)
    return seconds


if __name__ == "__main__":
    main()
