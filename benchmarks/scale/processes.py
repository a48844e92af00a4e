"""Processes as ``torchrun`` starts them, for the benchmarks of this room."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from benchmarks.machine import ROOT


def torchrun(n: int, *arguments: Any, restarts: int = 0) -> subprocess.Popen[str]:
    """Start n processes on this host, each with one thread."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n)]
    command += ["--max-restarts", str(restarts), *map(str, arguments)]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> str:
    """What the processes wrote; an error where they failed."""
    out, err = process.communicate()
    if process.returncode:
        raise SystemExit(err[-3000:])
    return out
