"""The ledger of an audit or a sweep: a file of JSON lines, one for each finished run.

A line is written at once and whole, with its sha256. Half a line of a killed process is skipped when the file is read,
and its run is trained again; of two lines of the same key the later counts. One process at a time writes to the file.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesneg.errors import InputError, first_line, naming
from bayesneg.integrity.digests import check_seal, sealed
from bayesneg.integrity.locks import FileLock
from bayesneg.runs.record import SCHEMA as SCHEMA
from bayesneg.runs.record import RunRecord, check_schema, jsonable
from bayesneg.whole_files import check_regular, without_links

KEPT_PER_USER: Final = ("ndcg@20",)  # the metrics by which samplers are compared user by user
DECIMALS: Final = 6  # of a value per user


@dataclass(frozen=True)
class Entry:
    """A finished run.

    Args:
        key: A digest of all that decides the results.
        cell: What was to be run, in plain values.
        record: The record of the run.
    """

    key: str
    cell: Mapping[str, Any]
    record: RunRecord

    def to_dict(self) -> dict[str, Any]:
        """In plain values for JSON, with the schema; of the values per user those of ``KEPT_PER_USER``."""
        values = self.record.per_user or {}
        kept = {name: np.round(values[name], DECIMALS).tolist() for name in KEPT_PER_USER if name in values}
        record = {**self.record.to_dict(), "per_user": kept}
        return {"schema": SCHEMA, "key": self.key, "cell": jsonable(self.cell), "record": record}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Entry:
        """From what :meth:`to_dict` gave."""
        return cls(stored["key"], stored["cell"], RunRecord.from_dict(stored["record"]))


def read(paths: Path | Iterable[Path]) -> dict[str, Entry]:
    """Every finished run of the files by its key; a file that does not exist holds none."""
    found = {}
    for path in [paths] if isinstance(paths, Path) else paths:
        for number, line in enumerate(path.read_bytes().split(b"\n") if path.exists() else (), 1):
            try:
                stored = json.loads(line)  # which may be cut, even inside a character
                is_entry = {"key", "cell", "record"} <= stored.keys()
            except (ValueError, AttributeError, RecursionError):
                continue
            if is_entry:
                check_seal(stored, path, way_out=f"delete line {number}, its run is trained again")
                check_schema(stored.get("schema"), path)
                found[str(stored["key"])] = _entry(stored, f"{path} line {number}")
    return found


def _entry(stored: Mapping[str, Any], where: str) -> Entry:
    """A line whose values are not those of a run is named: what it says must not be taken for a result."""
    try:
        if not isinstance(stored["cell"], Mapping):
            raise TypeError(f"cell is {stored['cell']!r:.40}")
        return Entry.from_dict(stored)
    except Exception as error:
        said = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"{where} is damaged ({said}); delete the line, its run is trained again") from error


class Writer:
    """Adds entries to a file, from several threads of one process; a context manager, which holds the file."""

    def __init__(self, path: Path) -> None:
        self._path, self._one = path, threading.Lock()
        check_regular(path)
        with naming(path):
            path.touch()
        self._lock = FileLock(path, way_out="wait until it ends, or choose another file")

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._path.exists() and self._path.stat().st_size == 0:  # no run was finished
            self._path.unlink()
        self._lock.release()

    def add(self, entry: Entry) -> Entry:
        """Write the entry as a line, and return it as it will be read."""
        line = json.dumps(sealed(entry.to_dict()), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        with self._one, naming(self._path), open(self._path, "a+b", opener=without_links) as file:
            if file.tell() > 0:
                file.seek(-1, 2)
                if file.read(1) != b"\n":  # half a line of a killed process
                    file.write(b"\n")
            file.write(f"{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        return Entry.from_dict(json.loads(line))
