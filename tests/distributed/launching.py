"""Processes as ``torchrun`` starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parents[2]


def torchrun(n: int, *arguments: object, restarts: int = 0) -> subprocess.Popen[str]:
    """Start n processes on this host, on a free port."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n)]
    command += ["--max-restarts", str(restarts), *map(str, arguments)]
    path = os.pathsep.join([str(HOME / "src"), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
