"""A command in several processes, which ``torchrun`` starts: one of them speaks, and none is left hanging."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bayesneg.cli.output import say
from bayesneg.distributed import is_distributed
from bayesneg.models.torch.settings import require_torch
from bayesneg.progress import printable

if TYPE_CHECKING:
    from bayesneg.data.splits import Split
    from bayesneg.distributed.watch import Watch
    from bayesneg.runs.record import RunRecord
    from bayesneg.runs.run import Run

Found = TypeVar("Found")
TIMEOUT = 1800.0  # seconds that a process waits for the others
PATIENCE = 10.0  # seconds that a process waits for what another says; those that wait do not all give up at once
WATCHES: list[Watch] = []  # of this process, while it is in a group


def is_first() -> bool:
    """Whether this process speaks: the only one, or rank 0."""
    return os.environ.get("RANK", "0") == "0"


def is_started_by_torchrun() -> bool:
    """Whether torchrun has started this process."""
    return "WORLD_SIZE" in os.environ


def is_restarted() -> bool:
    """Whether torchrun has started the processes again after one of them died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") or 0) > 0


def join(device: str | None, timeout: float) -> None:
    """Join the other processes, where torchrun has started some.

    Args:
        device: That of the model, as on the command line.
        timeout: Seconds after which a process that waits for the others gives up.
    """
    if not is_started_by_torchrun() or is_distributed():
        return
    require_torch("torchrun")
    from bayesneg.distributed.group import begin, own_device, watched

    begin(device or "auto", timeout)
    if own_device().type == "cuda":
        WATCHES.append(watched(timeout, lambda text: say(f"error: {text}")))


def leave() -> None:
    """Leave the processes that were joined."""
    if is_distributed():
        from bayesneg.distributed.group import end

        while WATCHES:
            WATCHES.pop().stop()
        end()


def one_after_another(read: Callable[[], Found]) -> Found:
    """What ``read`` gives, called by rank 0 first, who may store something that the others find.

    An error of any process is raised by all, with the rank.

    Args:
        read: Reads data; the same in all processes.
    """
    if not is_distributed():
        return read()
    from bayesneg.distributed.group import raised_by_all

    found: Any = None
    for turn in (is_first(), not is_first()):
        answer = raised_by_all(read if turn else lambda: None)
        found = answer if turn else found
    return found


def say_once(text: str) -> None:
    """A note, by the process that speaks."""
    if is_first():
        say(text)


def say_error(text: str) -> None:
    """An error on one line, once: by rank 0, and by another process if rank 0 does not say the same."""
    text = printable(text, keep="")
    if not is_distributed():
        say(f"error: {text}")
        return
    from bayesneg.distributed.group import said_by_first

    is_said = said_by_first(text, PATIENCE)  # rank 0 tells the others, too
    if is_first():
        say(f"error: {text}")
    elif not is_said:
        say(f"error: rank {os.environ['RANK']}: {text}")


def is_of_collective(error: RuntimeError) -> bool:
    """Whether other processes are the reason."""
    return "gloo" in str(error).lower() or "nccl" in str(error).lower() or type(error).__name__.startswith("Dist")


def lost_contact(error: RuntimeError) -> str:
    """The sentence for a collective that failed: who did not answer."""
    from bayesneg.distributed.group import silent

    time.sleep(0.1)
    missing = silent(PATIENCE)
    who = f"no answer from rank {', '.join(map(str, missing))}" if missing else "lost contact with another process"
    said = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
    return f"{who}: it died, hangs or cannot be reached ({said}); start again with --resume, or torchrun --max-restarts"


def load_in_parts(folder: Path) -> Run:
    """A finished run of which each process reads its rows.

    Args:
        folder: The folder of the run.
    """
    from bayesneg.distributed.group import own_device
    from bayesneg.distributed.loading import load_sharded
    from bayesneg.runs import folder as files
    from bayesneg.runs.run import Run

    def read() -> tuple[RunRecord, Split]:
        with files.reading(folder):
            record = files.read_record(folder)
            split = files.split_of(folder, record)
            if is_first():
                files.checked(folder, files.WEIGHTS)  # for all
            return record, split

    record, split = one_after_another(read)
    return Run(load_sharded(folder / files.WEIGHTS, split.train, own_device()), split, record, folder=folder)


def sum_over_processes(value: int) -> int:
    """The sum of the values of all processes."""
    from bayesneg.distributed.group import ProcessGroup, own_device

    return sum(ProcessGroup(own_device()).objects(value))
