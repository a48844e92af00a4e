"""Processes as ``torchrun`` starts them, none of which outlives its test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

HOME = Path(__file__).parents[2]
LIMIT = 300.0  # seconds: many times what an idle machine takes


def environment(**more: object) -> dict[str, str]:
    """That of a process that imports this package and has one core."""
    path = os.pathsep.join([str(HOME / "src"), os.environ.get("PYTHONPATH", "")])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
        **{key: str(value) for key, value in more.items()},
    }


def started(command: list[object], **more: object) -> subprocess.Popen[str]:
    """Start a command in a session of its own; ``more`` are variables of its environment."""
    return subprocess.Popen(
        list(map(str, command)),
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def torchrun(
    n: int, *arguments: object, restarts: int = 0, meeting: tuple[object, ...] = ("--standalone",)
) -> subprocess.Popen[str]:
    """Start n processes on this host, on a free port unless ``meeting`` has other options."""
    command = [sys.executable, "-m", "torch.distributed.run", *meeting, "--nproc-per-node", n]
    return started([*command, "--max-restarts", restarts, *arguments])


def finished(process: subprocess.Popen[str], seconds: float = LIMIT) -> tuple[str, str]:
    """What a command wrote until it ended; after too many seconds it fails, and nothing of it is left."""
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        kill(process)
        out, err = process.communicate(timeout=60)
        raise AssertionError(f"still running after {seconds:g} s:\n{out}\n{err}") from None


def children(pid: int) -> list[int]:
    """The processes that a process has started, in their order; Linux knows them."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:  # it has ended
        return []


def kill(process: subprocess.Popen[str]) -> None:
    """End a command and what it has started: torchrun starts each process in a session of its own."""
    found = [process.pid]
    for pid in found:
        found += children(pid)
    for pid in found:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL) if pid == os.getpgid(pid) else os.kill(pid, signal.SIGKILL)
