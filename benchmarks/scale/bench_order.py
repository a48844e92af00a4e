"""The order of the pairs in several processes: a permutation in each of them against a keyed one.

    python -m benchmarks.scale.bench_order [--pairs 20000000]

Prepares generated pairs (``bn.prepare``) and goes through the mini-batches of an epoch, without training, in 1, 2 and 4
processes: with the permutation that every process holds, and with the keyed order of larger data. Samples the anonymous
memory of each process (Linux, RssAnon) and takes its peak above what it holds before. Times the orders alone, too.
Writes results/scale/bench_order.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import bayesneg as bn
from benchmarks.machine import write_result
from benchmarks.scale.processes import finished, torchrun

SIZES, USERS, ITEMS, BATCH = (1, 2, 4), 500_000, 100_000, 65_536
ORDERS = {"permutation": 1 << 40, "keyed": 0}  # the number of pairs up to which processes hold a permutation


def anonymous() -> float:
    """MiB of this process that no file stands behind."""
    found = re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))
    return int(found[1]) / 2**10 if found else float("nan")


class Peak:
    """The most memory that this process has in a block."""

    def __enter__(self) -> Peak:
        self.before = self.most = anonymous()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.005):
            self.most = max(self.most, anonymous())

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def work(folder: str) -> dict[str, Any]:
    """What one process does: an epoch in each order."""
    from bayesneg.distributed.sharding import order
    from bayesneg.interfaces import BPR_LOSS
    from bayesneg.seeding import stream
    from bayesneg.training.processes import begun

    split, found = bn.split(bn.load(folder), test=0.01, seed=0), {}
    model = bn.TorchMF(dim=4, batch_size=BATCH, device="cpu")
    group, learner = begun(model, split, bn.RNS(), BPR_LOSS, split.train, stream(0, "init"), None)
    n = len(split.train)

    def epoch(most_held: int) -> int:
        order.MOST_HELD = most_held
        pairs, rng = order.order_of(stream(0, "order", 1), n), stream(0, "sampler", 1)
        given: dict[str, Any] = {"epoch": 1, "rng": rng, "scorer": learner, "threads": 1}
        blocks = learner.pairs.blocks(pairs, BATCH, BATCH, threads=1)
        return sum(len(learner.pairs.part(block, BATCH, **given).batch.users) for block in blocks)

    epoch(0)  # compiles, and makes what is kept
    for name, most_held in ORDERS.items():
        group.wait()
        with Peak() as peak:
            begun_at = time.perf_counter()
            own = epoch(most_held)
            seconds = time.perf_counter() - begun_at
        if sum(group.objects(own)) != n:
            raise SystemExit("pairs are missing")
        found[name] = {"MiB": max(group.objects(peak.most - peak.before)), "epoch, s": max(group.objects(seconds))}
    first, last = (int(bound) for bound in learner.pairs.bounds[group.rank : group.rank + 2])
    keyed, starts = order.KeyedOrder(n, 1), [time.perf_counter()]
    places = keyed.places(first, last)
    starts.append(time.perf_counter())
    keyed.pairs(places)
    starts.append(time.perf_counter())
    stream(0, "order", 1).permutation(n)
    starts.append(time.perf_counter())
    names = ("places of own pairs, s", "pairs at them, s", "permutation of all, s")
    return {**found, "own pairs": last - first, **dict(zip(names, np.diff(starts).tolist(), strict=True))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=20_000_000)
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        from bayesneg.distributed.group import begin, end

        begin("cpu", 1800.0)
        found = work(asked.work)
        if os.environ["RANK"] == "0":
            print(json.dumps(found))
        end()
        return
    scratch, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    users = (rng.random(asked.pairs) ** 1.5 * USERS).astype(np.int32)
    items = (rng.random(asked.pairs) ** 2 * ITEMS).astype(np.int32)
    pl.DataFrame({"user": users, "item": items}).write_parquet(scratch / "pairs.parquet")
    data = bn.prepare(scratch / "pairs.parquet", scratch / "prepared")
    bn.split(data, test=0.01, seed=0)
    result: dict[str, Any] = {"pairs": len(data)}
    for size in SIZES:
        process = torchrun(size, "-m", "benchmarks.scale.bench_order", "--work", scratch / "prepared")
        result[str(size)] = json.loads(finished(process).strip().splitlines()[-1])
        print(size, json.dumps(result[str(size)]), flush=True)
    shutil.rmtree(scratch)
    print(write_result(__file__, result))


if __name__ == "__main__":
    main()
