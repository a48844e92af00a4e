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
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load as load_state
from torch.distributed.checkpoint.state_dict_saver import save as save_state

from bayesneg.distributed.group import ProcessGroup, raised_by_all
from bayesneg.errors import BayesnegError, InputError

PREFIX = "checkpoint-"
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
    target = folder / f"{PREFIX}{epoch:06d}"
    part = folder / f".{target.name}.part"
    if group.rank == 0:
        part.unlink() if part.is_symlink() else shutil.rmtree(part, ignore_errors=True)  # not written through
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
    return int(checkpoint.name.removeprefix(PREFIX))


def load(checkpoint: Path, ranges: Ranges) -> dict[str, np.ndarray]:
    """Read the state of this process, whatever number of processes wrote it.

    Args:
        checkpoint: The folder of the checkpoint.
        ranges: The rows of this process, as for :func:`save`.
    """
    try:
        stored = _reader(checkpoint).read_metadata().state_dict_metadata
    except Exception as error:
        raise InputError(f"{checkpoint}: the checkpoint is damaged ({_first(error)})") from error
    whole: dict[str, np.ndarray] = {}
    for key in sorted(stored):
        match = RANGED.match(key)
        if match is None:
            whole[key] = _read(checkpoint, key, stored[key])
            continue
        name, first, last = match["name"], int(match["first"]), int(match["last"])
        rows_of_this = _rows(name, ranges)
        assert rows_of_this is not None
        begin, end = rows_of_this
        low, high = max(begin, first), min(end, last)
        if begin == end:
            whole[name] = _read(checkpoint, key, stored[key])[:0]
        if low >= high:
            continue
        rows = _read(checkpoint, key, stored[key])
        if name not in whole:
            whole[name] = np.empty((end - begin, *rows.shape[1:]), dtype=rows.dtype)
        whole[name][low - begin : high - begin] = rows[low - first : high - first]
    return whole


def _read(checkpoint: Path, key: str, described: object) -> np.ndarray:
    size, kind = described.size, described.properties.dtype  # type: ignore[attr-defined]
    state = {key: torch.empty(size, dtype=kind)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that one process reads by itself
        try:
            load_state(state, storage_reader=_reader(checkpoint), no_dist=True)
        except (CheckpointException, Exception) as error:  # torch's is no Exception
            raise InputError(f"{checkpoint}: the checkpoint is damaged ({_first(error)})") from error
    return state[key].numpy()


def _writer(path: Path) -> Any:
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter  # as group.check_torch asks for

    return HuggingFaceStorageWriter(path=str(path), save_distributed=True)


def _reader(path: Path) -> Any:
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

    return HuggingFaceStorageReader(path=str(path))


def remove_all(folder: Path) -> None:
    """Remove the checkpoints of a run, finished or not.

    Args:
        folder: The folder of the run.
    """
    for path in (*_found(folder), *folder.glob(f".{PREFIX}*.part")):
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
    return sorted(path for path in folder.glob(f"{PREFIX}*") if path.is_dir())
