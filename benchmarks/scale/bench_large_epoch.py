"""One epoch of BNS with a refreshed F on data prepared by ``bench_prepare``: seconds and peak memory of the process.

    python -m benchmarks.scale.bench_large_epoch FOLDER [--millions 20] [--dim 64]

FOLDER is that of ``bench_prepare``, which has run with as many rows. Everything is training data, so that nothing is
evaluated. The goal for 200 million rows of 5 million users and 1 million items is 10 GB, and at most 12 times the
processor time of 20 million rows of a tenth of the users. Writes results/scale/bench_large_epoch-MILLIONS.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.machine import write_result

CHILD = """
import json, os, re, sys, time
from dataclasses import replace
from pathlib import Path
import numpy as np
import bayesneg as bn
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 2**20
def processor():
    return os.times().user + os.times().system
def trained(data, dim):
    parts = {"indptr": np.zeros(data.n_users + 1, dtype=np.int64), "indices": np.empty(0, dtype=np.int32)}
    split = bn.Split(train=data, test=replace(data, **parts, times=None, prepared=None))
    sampler = bn.BNS(cdf="refreshed", prior=bn.priors.Popularity())
    return bn.fit(bn.MF(dim=dim, threads=os.cpu_count()), split, sampler, epochs=1, progress=False)
folder, dim = sys.argv[1], int(sys.argv[2])
trained(bn.synthetic(60, 80, seed=0), dim)  # compiled before anything is timed
before = peak()
started, used = time.perf_counter(), processor()
data = bn.load(folder)
run = trained(data, dim)
print(json.dumps({
    "seconds": time.perf_counter() - started, "processor seconds": processor() - used,
    "seconds of the epoch": run.record.epochs[-1]["seconds"], "peak resident, GiB": peak(),
    "peak before, GiB": before, "interactions": len(data), "users": data.n_users, "items": data.n_items, "dim": dim,
}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--millions", default="20", help="of rows")
    parser.add_argument("--dim", type=int, default=64)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    command = [sys.executable, "-c", CHILD, str(given.folder / f"prepared-{given.millions}"), str(given.dim)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = {**json.loads(done.stdout), "load of the machine before": load}
    print(json.dumps(found, indent=1))
    print(f"wrote {write_result(__file__, found, suffix=f'-{given.millions}')}")


if __name__ == "__main__":
    main()
