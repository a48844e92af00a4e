"""Two checkouts of this repository against each other: their own benchmarks, taking turns, in one run.

    BAYESNEG_DATA=… python -m benchmarks.speed.against OLD_CHECKOUT [--rounds 3] [--only bench_epoch,bench_cdf]

Each round runs every benchmark of the old and of this checkout one after the other, in processes of their own; which
goes first alternates. For every number of seconds that both report the ratio new / old is that of the medians over the
rounds. Nothing is written to either checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.machine import ROOT

ARGUMENTS: Final = {
    "bench_epoch": ["--repeats", "1"],
    "bench_cdf": [],
    "bench_evaluation": ["--repeats", "3"],
}
LIMIT: Final = 1.1
# A benchmark as its checkout has it, in the package or as a script, with its result in another folder.
RUN: Final = """
import importlib, json, sys
from pathlib import Path
folder, name, sys.argv = Path(sys.argv[1]), sys.argv[2], sys.argv[2:]
is_package = Path("benchmarks/speed").is_dir()
sys.path.insert(0, "." if is_package else "benchmarks")
importlib.import_module("benchmarks.machine" if is_package else "machine").RESULTS = folder
module = importlib.import_module(f"benchmarks.speed.{name}" if is_package else name)
if name == "bench_cdf":  # its seconds alone
    found = module.times(module.train_part("ml-100k"), 20, list(module.CONTENDERS))
    (folder / "found.json").write_text(json.dumps(found))
else:
    module.main()
"""


def seconds_of(checkout: Path, name: str) -> dict[str, float]:
    """Every number of seconds that a benchmark of the checkout reports, by its path in the result."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout / "src"), str(checkout)])}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", RUN, folder, name, *ARGUMENTS[name]]
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{name} of {checkout} failed:\n{done.stderr}")
        (path,) = Path(folder).rglob("*.json")
        return dict(_seconds(json.loads(path.read_text(encoding="utf-8"))))


def _seconds(value: Any, *path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _seconds(item, *path, key)
    elif isinstance(value, list) and path[-1] == "cases":
        for item in value:
            yield from _seconds(item, f"{item['data']}, d = {item['dim']}")
    elif isinstance(value, float) and {"seconds", "seconds_per_epoch"} & set(path):
        yield ", ".join(part for part in path if part not in ("worlds", "seconds", "seconds_per_epoch")), value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, metavar="OLD_CHECKOUT")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(ARGUMENTS), help="names of benchmarks, separated by commas")
    given = parser.parse_args()
    sides = {"old": given.old.resolve(), "new": ROOT}
    for name in given.only.split(","):
        found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
        for turn in range(given.rounds):
            for side in sorted(sides, reverse=bool(turn % 2)):
                found[side].append(seconds_of(sides[side], name))
        print(f"{name}: median of {given.rounds} rounds", f"{'old, ms':>12}{'new, ms':>12}{'new / old':>12}", sep="\n")
        for label in (label for label in found["old"][0] if label in found["new"][0]):
            old, new = (1000 * median(one[label] for one in found[side]) for side in sides)
            mark = "" if new / old <= LIMIT else "  slower"
            print(f"{old:12.1f}{new:12.1f}{new / old:12.3f}  {label}{mark}", flush=True)


if __name__ == "__main__":
    main()
