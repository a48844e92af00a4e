"""Checkpoints of all processes, by torch's distributed checkpoint, stored as safetensors: no pickle is read.

Each process writes its rows. Their numbers are part of the key, ``model.users.rows@0-5000``, so that any number of
processes can read them: each takes what it owns from the parts that overlap. A checkpoint is written beside the others
and renamed when all processes are done, so that a folder with its final name is complete. A manifest in it has the size
and sha256 of each file; the checkpoint before stays, and is read where a file of the newest is damaged.
"""

from __future__ import annotations

import json
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
from bayesneg.errors import BayesnegError, DamagedError, naming
from bayesneg.integrity.digests import check_file, check_seal, facts_of, sealed
from bayesneg.whole_files import sync, write_text

MANIFEST = "manifest.json"
RANGED = re.compile(r"(?P<name>.*)@(?P<first>\d+)-(?P<last>\d+)$")
Ranges = Mapping[str, tuple[int, int]]


def save(folder: Path, epoch: int, arrays: Mapping[str, np.ndarray], ranges: Ranges, group: ProcessGroup) -> None:
    """Write a checkpoint, all processes together, and remove all older ones but the last.

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
    own = raised_by_all(lambda: _safe_on_disk(part, _files(part)[group.rank :: group.size]))
    listed = {name: facts for each in group.objects(own) for name, facts in each.items()}
    raised_by_all(lambda: _put_in_place(part, target, listed) if group.rank == 0 else None)


def _safe_on_disk(folder: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """Force this process's share of the files to the disk; their sizes and digests."""
    for name in names:
        with naming(folder / name):
            sync(folder / name)
    return facts_of(folder, names)


def _put_in_place(part: Path, target: Path, listed: Mapping[str, Any]) -> None:
    text = json.dumps(sealed({"files": dict(sorted(listed.items()))}), indent=1)
    write_text(part / MANIFEST, text + "\n")
    shutil.rmtree(target, ignore_errors=True)  # of a run that was resumed from an older one
    part.rename(target)
    sync(target.parent)
    found = _found(target.parent)
    before = [other for other in found if other < target][-1:]
    for other in found:
        if other not in (target, *before):
            shutil.rmtree(other, ignore_errors=True)


def usable(folder: Path, group: ProcessGroup) -> Path | None:
    """The newest checkpoint whose files are those that were written; each process reads its share of them.

    Args:
        folder: The folder of the run.
        group: The processes.

    Returns:
        The checkpoint; None where there is none.

    Raises:
        DamagedError: There are checkpoints, and all are damaged.
    """
    wrong = ""
    for checkpoint in reversed(_found(folder)):
        wrong = next(filter(None, group.objects(_damage(checkpoint, group))), "")
        if not wrong:
            return checkpoint
    if wrong:
        raise DamagedError(wrong)
    return None


def _damage(checkpoint: Path, group: ProcessGroup) -> str:
    """What is wrong with this process's share of the files; one of an earlier version has no manifest."""
    path, way_out = checkpoint / MANIFEST, "copy the run again from where it is whole, or train it again"
    if not path.exists():
        return ""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        check_seal(manifest, path, way_out=way_out)
        for name in sorted(manifest["files"])[group.rank :: group.size]:
            check_file(checkpoint / name, manifest["files"][name], way_out=way_out)
    except DamagedError as error:
        return str(error)
    except (ValueError, LookupError, TypeError, RecursionError, OSError) as error:
        return f"{path} is damaged ({type(error).__name__}: {error}); {way_out}"
    return ""


def _files(checkpoint: Path) -> list[str]:
    return sorted(path.name for path in checkpoint.iterdir() if path.is_file())


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
        raise DamagedError(f"{checkpoint}: the checkpoint is damaged ({type(error).__name__}: {error})") from error
    for name, n in missing.items():
        if n:
            raise DamagedError(f"{checkpoint}: the checkpoint is damaged ({n} rows of {name} are missing)")
    return whole


def _take(key: str, file: Any, ranges: Ranges, whole: dict[str, np.ndarray], missing: dict[str, int]) -> None:
    """Take over an array of a file, or those rows of it that are this process's; no others are read."""
    match = RANGED.match(key)
    if match is None:
        whole[key] = file.get_tensor(key)
        return
    name, first, last = match["name"], int(match["first"]), int(match["last"])
    rows_of_this = _rows(name, ranges)
    if rows_of_this is None:
        raise ValueError(f"{name} is no array that processes divide")
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
