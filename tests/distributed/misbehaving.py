"""``bayesneg`` with a process that misbehaves at a known point: ``torchrun … misbehaving.py HOW ARGUMENTS``."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from bayesneg.cli import main
from bayesneg.cli.training import processes as speaking
from bayesneg.distributed.group import ProcessGroup
from bayesneg.recommendation import table_files
from bayesneg.training import processes
from bayesneg.training.state import TrainingState

RANK, EPOCH, SHORT = int(os.environ.get("RANK", "0")), 12, 3.0
IS_FIRST_ATTEMPT = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"


def at_epoch(what: signal.Signals) -> None:
    """Rank 1 gets a signal when it begins an epoch, the first time that it does."""
    advance = TrainingState.advance

    def signalled(self: TrainingState, **given: Any) -> Any:
        if RANK == 1 and IS_FIRST_ATTEMPT and self.epoch + 1 == EPOCH:
            os.kill(os.getpid(), what)
        return advance(self, **given)

    TrainingState.advance = signalled  # type: ignore[method-assign]


def never_waits() -> None:
    """Both ranks come to ``wait``; then rank 0 waits once more, for a short time, and rank 1 does not come."""
    wait = ProcessGroup.wait

    def once_more(self: ProcessGroup) -> None:
        wait(self)
        if RANK == 1:
            time.sleep(3600)
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=SHORT))
        began = time.monotonic()
        try:
            wait(self)
        finally:
            sys.stderr.write(f"waited {time.monotonic() - began:.1f} s\n")

    ProcessGroup.wait = once_more  # type: ignore[method-assign]


def full_disk() -> None:
    """The disk of rank 1 is full when it writes the second checkpoint, or recommendations."""
    save, write = processes.save, table_files.write_frames

    def limited(*given: Any, **more: Any) -> Any:
        if RANK == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))
        return write(*given, **more)

    def second(folder: Path, epoch: int, *rest: Any) -> None:
        if RANK == 1 and epoch == 20:
            resource.setrlimit(resource.RLIMIT_FSIZE, (500, resource.RLIM_INFINITY))
        save(folder, epoch, *rest)

    processes.save, table_files.write_frames = second, limited


HOW = {
    "dies": lambda: at_epoch(signal.SIGKILL),
    "stops": lambda: at_epoch(signal.SIGSTOP),
    "never waits": never_waits,
    "full disk": full_disk,
}

if __name__ == "__main__":
    speaking.PATIENCE = SHORT  # the other process is silent for good
    HOW[sys.argv[1]]()
    main(sys.argv[2:])
