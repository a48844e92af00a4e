"""Reading 25 million interactions of CSV into ``Interactions``: seconds and peak memory, in a fresh process each time.

    python -m benchmarks.speed.bench_reading [--rows 25000000] [--repeats 3]

The file is generated: whole-number ids of 160,000 users and 60,000 items, a rating and a time, as MovieLens-25M has.
The goal is 15 s and 3 GB. Writes results/speed/bench_reading.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.machine import write_result

READ = """
import json, resource, sys, time
import bayesneg as bn
started = time.perf_counter()
data = bn.load(sys.argv[1])
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "peak resident, GiB": peak / 2**20,
                  "interactions": len(data), "users": data.n_users, "items": data.n_items}))
"""


def write_ratings(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    table = {
        "userId": (rng.random(rows) ** 2 * 160_000).astype(np.int64) + 1,
        "movieId": (rng.random(rows) ** 3 * 60_000).astype(np.int64) + 1,
        "rating": rng.integers(1, 11, rows) / 2,
        "timestamp": rng.integers(800_000_000, 1_600_000_000, rows),
    }
    pl.DataFrame(table).write_csv(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=25_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        write_ratings(path, arguments.rows)
        size = path.stat().st_size / 2**20
        runs = []
        for _ in range(arguments.repeats):
            done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
            runs.append(json.loads(done.stdout))
            print(runs[-1])
    median = {key: float(np.median([run[key] for run in runs])) for key in ("seconds", "peak resident, GiB")}
    found = {"rows": arguments.rows, "file, MiB": size, "median": median, "runs": runs}
    print(f"wrote {write_result(__file__, found)}")


if __name__ == "__main__":
    main()
