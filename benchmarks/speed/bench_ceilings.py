"""What limits each kernel: its time beside what the machine could do with the same vectors, numbers and products.

    BAYESNEG_DATA=… python -m benchmarks.speed.bench_ceilings [--repeats 5]

Three ceilings are measured first, on one core: vectors of 32 numbers read in random order and multiplied (from tables
as large as those of the data), numbers read one after another, and the arithmetic of a large matrix product. A kernel's
floor is the slowest of what it needs of the three. Writes results/speed/bench_ceilings.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

import bayesneg as bn
from bayesneg.interfaces import Batch
from bayesneg.seeding import stream
from benchmarks.data import splits
from benchmarks.machine import write_result
from benchmarks.speed.contenders import DIM, medians, our_epoch

CANDIDATES = 5


class Work(NamedTuple):
    """What a kernel cannot do without."""

    vectors: float = 0.0  # read in random order
    numbers: float = 0.0  # float32, read one after another
    products: float = 0.0  # multiply-adds of a matrix product


@njit(fastmath={"reassoc", "contract", "nsz"})
def _dots(table: np.ndarray, rows: np.ndarray, w: np.ndarray) -> Any:
    total = np.float32(0.0)
    for place in range(len(rows)):
        row = rows[place]
        for f in range(len(w)):
            total += table[row, f] * w[f]
    return total


@njit(fastmath={"reassoc", "contract", "nsz"})
def _sum(numbers: np.ndarray) -> Any:
    total = np.float32(0.0)
    for place in range(len(numbers)):
        total += numbers[place]
    return total


def _timed(work: Callable[[], Any]) -> Callable[[], float]:
    def run() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    run()
    return run


def ceilings(n_vectors: int) -> dict[str, Callable[[], float]]:
    """Seconds per vector, number and product, the vectors from a table of ``n_vectors``."""
    rng = np.random.default_rng(0)
    table, w = rng.random((n_vectors, DIM), np.float32), rng.random(DIM, np.float32)
    rows = rng.integers(0, n_vectors, 2_000_000)
    many = np.ones(1 << 26, np.float32)
    square = rng.random((1024, 1024), np.float32)
    parts = {
        "vectors": (_timed(lambda: _dots(table, rows, w)), len(rows)),
        "numbers": (_timed(lambda: _sum(many)), many.size),
        "products": (_timed(lambda: square @ square), square.size * 1024),
    }
    return {name: lambda run=run, n=n: run() / n for name, (run, n) in parts.items()}  # type: ignore[misc]


def kernels(parts: bn.Split) -> dict[str, tuple[Callable[[], float], Work]]:
    train, test = parts.train, parts.test
    n, m = len(train), CANDIDATES
    order = stream(0, "order").permutation(n)
    learner = bn.MF.paper(dim=DIM).start(train, rng=stream(0, "init"))
    batch = Batch(train.users[order], train.indices[order], order, 1, train, learner, stream(0, "draws"))
    evaluated = int((test.counts > 0).sum())
    return {
        "draws, 5 candidates": (_timed(lambda: bn.DNS(candidates=m).draws(batch)), Work(numbers=n * m)),
        "epoch of RNS": (our_epoch(train, bn.RNS()), Work(vectors=3 * n)),
        "epoch of DNS": (our_epoch(train, bn.DNS(candidates=m)), Work(vectors=(2 + m) * n)),
        "epoch of BNS, refreshed F": (our_epoch(train, bn.BNS(cdf="refreshed")), Work(vectors=(3 + m) * n)),
        "epoch of BNS, exact F": (our_epoch(train, bn.BNS(cdf="exact")), Work(vectors=(2 + m) * n)),
        "evaluation": (
            _timed(lambda: bn.evaluate(learner, parts, k=(5, 10, 20))),
            Work(products=evaluated * train.n_items * DIM),
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    found: dict[str, Any] = {}
    for name, parts in splits(None).items():
        own = kernels(parts)
        bounds = ceilings(parts.train.n_users + parts.train.n_items)
        median, _ = medians({**bounds, **{label: run for label, (run, _) in own.items()}}, repeats)
        rows = {}
        for label, (_, work) in own.items():
            floors = {kind: amount * median[kind] for kind, amount in work._asdict().items()}
            limit = max(floors, key=lambda kind: floors[kind])
            rows[label] = {
                "seconds": median[label],
                "floor": floors[limit],
                "limit": limit,
                "times the floor": median[label] / floors[limit],
            }
            print(name, label, rows[label], file=sys.stderr)
        found[name] = {"seconds per": {kind: median[kind] for kind in bounds}, "kernels": rows}
    print(f"wrote {write_result(__file__, found)}")


if __name__ == "__main__":
    main()
