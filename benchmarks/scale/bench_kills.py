"""Processes killed at random moments: every run ends in the bytes of the uninterrupted one.

    python -m benchmarks.scale.bench_kills [--kills 10] [--processes 2]

Trains TorchMF with BNS by ``torchrun --max-restarts``, and kills one process in each run, a random one, a random part
of a second after a random epoch. Compares weights, metrics and the lines of all epochs with a run that nobody killed.
Writes results/scale/bench_kills.json.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

import bayesneg as bn
from benchmarks.machine import write_result
from benchmarks.scale.processes import finished, torchrun

EPOCHS = 40


def command(data: Path, out: Path) -> tuple[Any, ...]:
    train = ("-m", "bayesneg", "train", data, "--model", "torch-mf", "--device", "cpu", "--sampler", "bns")
    return (*train, "--epochs", EPOCHS, "--out", out, "--set", "dim=16", "--set", "batch_size=256",
            "--baselines", "none", "--select", "last")  # fmt: skip


def lines(run: bn.Run) -> list[dict[str, Any]]:
    return [{**line, "seconds": 0} for line in run.record.epochs]


def epochs_done(out: Path) -> int:
    """Epochs that the run has recorded."""
    path = out / "epochs.jsonl"
    return path.read_text(encoding="utf-8").count("\n") if path.exists() else 0


def children(process: subprocess.Popen[str]) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    scratch, rng = Path(tempfile.mkdtemp()), random.Random(0)
    data = bn.synthetic(400, 600, seed=0)
    pl.DataFrame({"user": data.users, "item": data.indices}).write_csv(scratch / "pairs.csv")
    started = time.monotonic()
    finished(torchrun(asked.processes, *command(scratch / "pairs.csv", scratch / "whole")))
    usual, whole = time.monotonic() - started, bn.load_run(scratch / "whole")
    found = []
    for number in range(asked.kills):
        out = scratch / f"killed {number}"
        process = torchrun(asked.processes, *command(scratch / "pairs.csv", out), restarts=3)
        victim, epochs = rng.randrange(asked.processes), rng.randrange(EPOCHS - 1)
        while epochs_done(out) < epochs and process.poll() is None:
            time.sleep(0.02)
        time.sleep(rng.random() / 2)
        done = epochs_done(out)
        if process.poll() is not None:
            raise SystemExit("the run ended before it was killed; raise EPOCHS")
        os.kill(children(process)[victim], signal.SIGKILL)
        finished(process)
        run = bn.load_run(out)
        same = (out / "weights.safetensors").read_bytes() == (scratch / "whole" / "weights.safetensors").read_bytes()
        same = same and run.record.final == whole.record.final and lines(run) == lines(whole)
        found.append({"rank": victim, "epochs done": done, "same bytes": same})
        print(found[-1], flush=True)
    shutil.rmtree(scratch)
    write_result(__file__, {"processes": asked.processes, "epochs": EPOCHS, "uninterrupted, s": usual, "runs": found})


if __name__ == "__main__":
    main()
