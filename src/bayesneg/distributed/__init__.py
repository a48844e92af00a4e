"""Training in several processes, launched by ``torchrun``: tables of embeddings sharded by row, plain collectives.

A user, with its training pairs and its embedding, belongs to one process; items are divided by number. All processes
see the same mini-batches and each trains the examples of its users. Rows of items are fetched from their owners and
gradients are sent back, for each mini-batch.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

CHECKPOINTS = "checkpoint-"  # how the folders of checkpoints begin; the number of epochs done follows
JOB = "torchrun-job"  # the file of a run's folder that names the job of torchrun which trains it


def is_distributed() -> bool:
    """Whether this process is one of a group of torch; torch is not imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized()


def has_checkpoints(folder: Path) -> bool:
    """Whether several processes have written checkpoints there."""
    return any(folder.glob(f"{CHECKPOINTS}*"))


def this_job() -> str:
    """A name of the job that torchrun runs, the same when it starts the processes again."""
    named = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    return named if named not in ("", "none") else f"{socket.gethostname()} {os.getppid()}"


def is_of_this_job(folder: Path) -> bool:
    """Whether this job has begun, or resumed, the run in a folder."""
    try:
        return (folder / JOB).read_text(encoding="utf-8") == this_job()
    except OSError:
        return False
