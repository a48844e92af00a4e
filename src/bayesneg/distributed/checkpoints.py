"""Checkpoints of all processes, by torch's distributed checkpoint, stored as safetensors: no pickle is read.

Each process writes its rows. Their numbers are part of the key, ``model.users.rows@0-5000``, so that any number of
processes can read them: each takes what it owns from the parts that overlap. A checkpoint is written beside the others
and renamed when all processes are done, so that a folder with its final name is complete.
"""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_saver import save as save_state

from bayesneg.distributed import CHECKPOINTS
from bayesneg.distributed.group import ProcessGroup, raised_by_all
from bayesneg.errors import BayesnegError, InputError

RANGED = re.compile(r"(?P<name>.*)@(?P<first>\d+)-(?P<last>\d+)$")
Ranges = Mapping[str, tuple[int, int]]


def save(folder: Path, epoch: int, arrays: Mapping[str, np.ndarray], ranges: Ranges, group: ProcessGroup) -> None:
    """Write a checkpoint, all processes together, and remove the older ones.

    Args:
        folder: The folder of the run, on a disk that all processes share.
        epoch: The epochs done.
        arrays: The state of this process.
        ranges: The rows of this process, by the first words of a key, ``model.users``; other arrays, and single
            numbers, are the same in all processes.
        group: The processes.
    """
    target = folder / f"{CHECKPOINTS}{epoch:06d}"
    part = folder / f".{target.name}.part"
    if group.rank == 0:
        shutil.rmtree(part, ignore_errors=True)
    group.wait()
    state = {}
    for key, value in arrays.items():
        rows = _rows(key, ranges) if np.ndim(value) else None
        if rows is not None:
            if rows[0] == rows[1]:
                continue  # a process without rows of it
            state[f"{key}@{rows[0]}-{rows[1]}"] = _tensor(value)
        elif group.rank == 0:
            state[key] = _tensor(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's notes on its own functions
        try:
            save_state(state, storage_writer=_writer(part))
        except (CheckpointException, OSError) as error:  # one process's, raised by all
            if group.rank == 0:
                shutil.rmtree(part, ignore_errors=True)  # what fills a disk is not left on it
            raise BayesnegError(
                f"the checkpoint {target} could not be written ({_first(error)}); make room on the disk and start "
                "again with --resume, which goes on from the checkpoint before"
            ) from error
    raised_by_all(lambda: _put_in_place(part, target) if group.rank == 0 else None)


def _put_in_place(part: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)  # of a run that was resumed from an older one
    part.rename(target)
    for other in _found(target.parent):
        if other != target:
            shutil.rmtree(other, ignore_errors=True)


def newest(folder: Path) -> Path | None:
    """The newest complete checkpoint; None where there is none."""
    found = _found(folder)
    return found[-1] if found else None


def epochs_in(checkpoint: Path) -> int:
    """The epochs done when it was written."""
    return int(checkpoint.name.removeprefix(CHECKPOINTS))


def load(checkpoint: Path, ranges: Ranges) -> dict[str, np.ndarray]:
    """Read the state of this process, whatever number of processes wrote it.

    Args:
        checkpoint: The folder of the checkpoint.
        ranges: The rows of this process, as for :func:`save`.
    """
    whole: dict[str, np.ndarray] = {}
    missing: dict[str, int] = {}  # rows of this process that were not found yet
    try:
        for path in sorted(checkpoint.glob("*.safetensors")):
            with safe_open(path, "np") as file:
                for key in file.keys():  # noqa: SIM118 (it is no dictionary)
                    _take(key, file, ranges, whole, missing)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{checkpoint}: the checkpoint is damaged ({type(error).__name__}: {error})") from error
    for name, n in missing.items():
        if n:
            raise InputError(f"{checkpoint}: the checkpoint is damaged ({n} rows of {name} are missing)")
    return whole


def _take(key: str, file: Any, ranges: Ranges, whole: dict[str, np.ndarray], missing: dict[str, int]) -> None:
    """Take over an array of a file, or those rows of it that are this process's; no others are read."""
    match = RANGED.match(key)
    if match is None:
        whole[key] = file.get_tensor(key)
        return
    name, first, last = match["name"], int(match["first"]), int(match["last"])
    rows_of_this = _rows(name, ranges)
    assert rows_of_this is not None
    begin, end = rows_of_this
    low, high = max(begin, first), min(end, last)
    missing.setdefault(name, end - begin)
    stored = file.get_slice(key)
    if name not in whole:
        nothing = stored[0:0]
        whole[name] = np.empty((end - begin, *nothing.shape[1:]), dtype=nothing.dtype)
    if low < high:
        whole[name][low - begin : high - begin] = stored[low - first : high - first]
        missing[name] -= high - low


def _writer(path: Path) -> Any:
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter  # as group.check_torch asks for

    writer = HuggingFaceStorageWriter(path=str(path), save_distributed=True)
    writer.per_thread_copy_ahead = 0  # the state is in host memory; torch would begin to use a GPU that is there
    return writer


def remove_all(folder: Path) -> None:
    """Remove the checkpoints of a run, finished or not.

    Args:
        folder: The folder of the run.
    """
    for path in (*_found(folder), *folder.glob(f".{CHECKPOINTS}*.part")):
        shutil.rmtree(path, ignore_errors=True)


def _first(error: BaseException) -> str:
    """What went wrong in the first process that failed."""
    if isinstance(error, CheckpointException):
        rank, (cause, _) = next(iter(error.failures.items()))
        return f"rank {rank}: {type(cause).__name__}: {cause}"
    return f"{type(error).__name__}: {error}"


def _rows(key: str, ranges: Ranges) -> tuple[int, int] | None:
    """The rows of this process, by the most words that a key begins with; None for an array that all have."""
    words = key.split(".")
    found = (ranges.get(".".join(words[:n])) for n in range(len(words), 0, -1))
    return next((rows for rows in found if rows is not None), None)


def _tensor(value: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(value, order="C"))


def _found(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(f"{CHECKPOINTS}*") if path.is_dir())
