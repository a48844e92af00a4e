"""``bayesneg data prepare`` on generated Parquet files: seconds and peak memory of the process, and loading the folder.

    python -m benchmarks.scale.bench_prepare FOLDER [--rows 20000000 --users 1000000 --items 200000] [--ids text]

FOLDER is scratch space, about 80 bytes a row with three splits. The files hold a user, an item and a time in the order
of time, with sparse whole-number ids; activity and popularity are skewed. The goal for 200 million rows of 5 million
users and 1 million items is 6 GB and 10 minutes on two cores, and at most 12 times the processor time of 20 million
rows: unlike seconds, it hardly depends on who else uses the machine. Writes results/scale/bench_prepare-MILLIONS.json
(-text with text ids).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.machine import write_result

PART_ROWS = 5_000_000
CHILD = """
import json, os, re, sys, time
from pathlib import Path
def processor():
    return os.times().user + os.times().system
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 2**20
last = 0.0
import bayesneg as bn
bn.load, bn.split, bn.prepare  # imported before anything is timed
started, used = time.perf_counter(), processor()
step, folder, how = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
found = {}
if step == "prepare":
    stages = {}
    def progress(stage, done, total):
        global last
        now = time.perf_counter()
        stages[stage], last = stages.get(stage, 0.0) + now - last, now
    last = time.perf_counter()
    data = bn.prepare(how["sources"], folder, progress=progress)
    stages["identifiers and fingerprint"] = time.perf_counter() - last
    found["stages"] = stages
elif step == "split":
    parts = bn.split(bn.load(folder), **how)
    data = parts.train
else:
    data = bn.load(folder)
    if how:
        data = bn.split(data, **how).train
found |= {"seconds": time.perf_counter() - started, "processor seconds": processor() - used,
          "peak resident, GiB": peak(), "interactions": len(data), "users": data.n_users, "items": data.n_items}
print(json.dumps(found))
"""


def write_sources(folder: Path, rows: int, users: int, items: int, ids: str) -> None:
    """Parts of rows in the order of time; ids are sparse integers, or text that has these."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, start in enumerate(range(0, rows, PART_ROWS)):
        n, rng = min(PART_ROWS, rows - start), np.random.default_rng(part)
        user = (rng.random(n) ** 1.5 * users).astype(np.int64)
        item = (rng.random(n) ** 3 * items).astype(np.int64)
        table = {
            "user": user * 7_368_787 % 9_999_999_967,
            "item": item * 104_729 % 1_000_000_007,
            "timestamp": 1_500_000_000 + start // 4 + np.sort(rng.integers(0, PART_ROWS // 4, n)),
        }
        frame = pl.DataFrame(table)
        if ids == "text":
            frame = frame.with_columns(pl.format("user-{}", "user"), pl.format("B{}", "item"))
        frame.write_parquet(folder / f"part-{part:04}.parquet")


def measured(step: str, folder: Path, how: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-c", CHILD, step, str(folder), json.dumps(how)]
    load = os.getloadavg()[0]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = {**json.loads(done.stdout), "load of the machine before": load}
    print(step, how, json.dumps(found), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--ids", choices=["integer", "text"], default="integer")
    parser.add_argument("--split-by", nargs="*", default=["interaction", "last", "time"])
    arguments = parser.parse_args()
    name = f"{arguments.rows / 1e6:g}" + ("" if arguments.ids == "integer" else "-text")
    sources, out = arguments.folder / f"sources-{name}", arguments.folder / f"prepared-{name}"
    shutil.rmtree(out, ignore_errors=True)
    if not sources.exists():
        started = time.perf_counter()
        write_sources(sources, arguments.rows, arguments.users, arguments.items, arguments.ids)
        print(f"generated in {time.perf_counter() - started:.0f} s", flush=True)
    found: dict[str, Any] = {"rows": arguments.rows, "prepare": measured("prepare", out, {"sources": str(sources)})}
    found["sources, GiB"] = sum(file.stat().st_size for file in sources.iterdir()) / 2**30
    found["folder, GiB"] = sum(file.stat().st_size for file in out.rglob("*") if file.is_file()) / 2**30
    found["load"] = measured("load", out, {})
    for by in arguments.split_by:
        found[f"split by {by}"] = measured("split", out, {"by": by, "validation": 0.1})
        found[f"load, split by {by}"] = measured("load", out, {"by": by, "validation": 0.1})
    print(f"wrote {write_result(__file__, found, suffix=f'-{name}')}")


if __name__ == "__main__":
    main()
