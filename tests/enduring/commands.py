"""Commands of bayesneg in processes of their own, a small world for them, and what of their results must be equal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

TIMES = re.compile(r"second|time|date|elapsed|memory|machine|path|report|^out$|version|created")
LIMIT = 600  # seconds of one command
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def world(path: Path, *, n_users: int = 90, n_items: int = 120, seed: int = 0) -> Path:
    """A CSV file of pairs of four groups of users."""
    rng = np.random.default_rng(seed)
    liked = rng.random((4, n_items)) < 0.25
    rows = [
        f"{user},{item}"
        for user in range(n_users)
        for item in np.flatnonzero((liked[user % 4] & (rng.random(n_items) < 0.7)) | (rng.random(n_items) < 0.03))
    ]
    path.write_text("user,item\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def started(arguments: list[Any], *, folder: Path, processes: int = 0) -> subprocess.Popen[str]:
    """Start a command in a folder; in several processes by torchrun."""
    launch = ["-m", "bayesneg"]
    if processes:
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), *launch]
    return subprocess.Popen(
        [sys.executable, *launch, *map(str, arguments)],
        env={**os.environ, **ONE_THREAD},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that all of its processes are killed together
    )


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What it wrote to stdout and stderr; an error unless it succeeded."""
    out, err = process.communicate(timeout=LIMIT)
    if process.returncode:
        raise RuntimeError(f"exit {process.returncode}: {err[-2000:]}")
    return out, err


def comparable(value: Any) -> Any:
    """A result without times, paths and what else differs between two equal runs."""
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in sorted(value.items()) if not TIMES.search(key)}
    return [comparable(each) for each in value] if isinstance(value, list) else value


def results_in(folder: Path) -> dict[str, Any]:
    """Weights, to the byte, and metrics of all runs in a folder."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("weights.safetensors")):
        found[str(path.relative_to(folder))] = path.read_bytes()
    for path in sorted(folder.rglob("metrics.json")):
        found[str(path.relative_to(folder))] = comparable(json.loads(path.read_text(encoding="utf-8")))
    return found
