"""The weights of all processes in one ordinary safetensors file, written in place, each process its rows."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.distributed.catalogue import ShardedScorer
from bayesneg.distributed.group import raised_by_all
from bayesneg.errors import BayesnegError, naming
from bayesneg.models.scorers import cold_in
from bayesneg.models.serialization import COLD
from bayesneg.whole_files import check_regular, create, sync, without_links

KINDS = {"float32": "F32", "bool": "BOOL"}
BYTES = 1 << 26  # written at once


def write_weights(path: Path, scorer: ShardedScorer, train: Interactions) -> None:
    """Write the embeddings, and what is known of cold users and items, as one process would.

    Args:
        path: The file, on a disk that all processes share.
        scorer: The trained model.
        train: The training pairs of all processes.
    """
    group, part = scorer.group, path.with_name(f".{path.name}.part")
    tables = {"users": scorer.plain_users, "items": scorer.plain_items}
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "users": ("F32", (scorer.n_users, tables["users"].shape[1])),
        "items": ("F32", (scorer.n_items, tables["items"].shape[1])),
    }
    cold = cold_in(train, scorer.known)
    small = {} if cold is None else dict(zip(COLD, cold, strict=True))
    shapes |= {name: (KINDS[str(array.dtype)], array.shape) for name, array in small.items()}
    header, starts = _header(shapes)

    def begin() -> None:
        if group.rank != 0:
            return
        check_regular(path)
        part.unlink(missing_ok=True)  # of processes that were killed
        with naming(path):
            create(part)
        with naming(path), open(part, "r+b", opener=without_links) as out:
            out.write(header)
            out.truncate(max(starts.values(), default=len(header)) + 8)
            for name, array in small.items():
                out.seek(starts[name])
                out.write(np.ascontiguousarray(array).tobytes())
            end = max(starts[name] + _size(*shapes[name]) for name in shapes)
            out.truncate(end)

    def write() -> None:
        with naming(path), open(part, "r+b", opener=without_links) as out:
            for name, first in (("users", scorer.first), ("items", scorer.exchange.first)):
                rows = tables[name].cpu().numpy()
                out.seek(starts[name] + first * rows.shape[1] * 4)
                step = max(1, BYTES // (4 * max(1, rows.shape[1])))
                for start in range(0, len(rows), step):
                    out.write(np.ascontiguousarray(rows[start : start + step]).tobytes())
            out.flush()
            os.fsync(out.fileno())

    def put_in_place() -> None:
        if group.rank == 0:
            part.replace(path)
            sync(path.parent)

    try:
        for work in (begin, write, put_in_place):
            raised_by_all(work)
    except BayesnegError:
        if group.rank == 0:
            part.unlink(missing_ok=True)  # what fills a disk is not left on it
        raise


def _header(shapes: dict[str, tuple[str, tuple[int, ...]]]) -> tuple[bytes, dict[str, int]]:
    """The head of a safetensors file, and where each array begins in it."""
    described: dict[str, Any] = {}
    place = 0
    for name in sorted(shapes, key=lambda name: (shapes[name][0] != "F32", name)):
        kind, shape = shapes[name]
        end = place + _size(kind, shape)
        described[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(described).encode()
    text += b" " * (-len(text) % 8)
    head = struct.pack("<Q", len(text)) + text
    return head, {name: len(head) + int(one["data_offsets"][0]) for name, one in described.items()}


def _size(kind: str, shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64)) * (4 if kind == "F32" else 1)
