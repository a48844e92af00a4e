"""Sorted runs on disk, and their merge into user-sorted rows: an external sort in bounded memory.

A pair is one integer, user · 2³² + item, so that sorted keys are sorted rows. Each chunk of the sources leaves one
sorted run. The merge takes a range of users at a time out of all runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bayesneg.data.blocks import released, row_blocks, user_blocks
from bayesneg.data.numbering import collapsed
from bayesneg.data.prepared.files import GrowingArray, mapped, write_array

ITEM_BITS = 32
Merged = tuple[int, int]  # users and interactions that are merged


def write_run(folder: Path, number: int, users: np.ndarray, items: np.ndarray, times: np.ndarray | None) -> int:
    """Sort pairs, collapse repeated ones, and store them; how many are left."""
    keys, stamps = collapsed((users.astype(np.int64) << ITEM_BITS) | items.astype(np.int64), times)
    if stamps is not None:
        write_array(_times(folder, number), stamps)
    write_array(_keys(folder, number), keys)
    return len(keys)


def merge_runs(
    folder: Path,
    runs: Sequence[int],
    out: Path,
    *,
    n_users: int,
    times: str | None,
    size: int,
    done: Merged,
    merged: Callable[[Merged], None],
) -> Merged:
    """The rows of all runs in ``out``: indptr, indices and, of the type ``times``, times.

    ``done`` users and interactions are there already; ``merged`` is called with the new counts whenever more are.
    """
    keys = [mapped(_keys(folder, number)) for number in runs]
    stamps = [mapped(_times(folder, number)) for number in runs] if times else []
    starts = np.concatenate(([0], np.cumsum(_counts(keys, n_users))))
    n_done, length = done
    with ExitStack() as files:
        indptr = files.enter_context(GrowingArray(out / "indptr.npy", "<i8", length=n_done + 1 if n_done else 0))
        indices = files.enter_context(GrowingArray(out / "indices.npy", "<i4", length=length))
        stamped = files.enter_context(GrowingArray(out / "times.npy", times, length=length)) if times else None
        if n_done == 0:
            indptr.append(np.zeros(1))
        for first, last in released(user_blocks(starts[n_done:], size), *keys, *stamps):
            users = range(n_done + first, n_done + last)
            parts = [_between(run, users) for run in keys]
            taken = np.concatenate([run[part] for run, part in zip(keys, parts, strict=True)])
            when = None
            if times:
                when = np.concatenate([run[part].astype(times) for run, part in zip(stamps, parts, strict=True)])
            kept, latest = collapsed(taken, when)
            counts = np.bincount((kept >> ITEM_BITS) - users.start, minlength=len(users))
            indptr.append(length + np.cumsum(counts))
            indices.append(kept & (2**ITEM_BITS - 1))
            if stamped is not None and latest is not None:
                stamped.append(latest)
                stamped.flush()
            indptr.flush()
            indices.flush()
            length += len(kept)
            merged((users.stop, length))
    return n_users, length


def _counts(runs: list[np.ndarray], n_users: int) -> np.ndarray:
    """Pairs of each user in all runs, repeated ones included."""
    counts = np.zeros(n_users, dtype=np.int64)
    for users in _users(runs):
        first = int(users[0])
        found = np.bincount(users - first)
        counts[first : first + len(found)] += found
    return counts


def _users(runs: list[np.ndarray]) -> Iterator[np.ndarray]:
    for run in runs:
        for part in released(row_blocks(len(run)), run):
            yield run[part] >> ITEM_BITS


def _between(run: np.ndarray, users: range) -> slice:
    low, high = np.searchsorted(run, [users.start << ITEM_BITS, users.stop << ITEM_BITS])
    return slice(int(low), int(high))


def _keys(folder: Path, number: int) -> Path:
    return folder / f"keys-{number:06}.npy"


def _times(folder: Path, number: int) -> Path:
    return folder / f"times-{number:06}.npy"
