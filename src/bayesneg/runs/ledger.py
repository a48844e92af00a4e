"""The ledger of a sweep: a file of JSON lines, one for each finished cell, small enough to keep with the sources.

A line is written at once and whole. One that a killed process left unfinished is skipped when the file is read, and
its cell is run again; of two lines of the same key the later counts.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np

from bayesneg.runs.record import RunRecord, jsonable

KEPT_PER_USER: Final = ("ndcg@20",)  # what samplers are compared by, user by user
STEPS: Final = 65_535  # a value per user in [0, 1] is kept as one of so many steps


@dataclass(frozen=True)
class Entry:
    """One finished cell: its key, what it was, and the record of its run."""

    key: str
    cell: Mapping[str, Any]
    record: RunRecord

    def to_line(self) -> str:
        own = {"key": self.key, "cell": self.cell, "record": _packed(self.record)}
        return json.dumps(jsonable(own), ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Entry:
        own = json.loads(line)
        return cls(own["key"], own["cell"], _unpacked(own["record"]))


def read(paths: Path | Iterable[Path]) -> dict[str, Entry]:
    """Every finished cell of the files by its key; a file that is not there holds none."""
    found = {}
    for path in [paths] if isinstance(paths, Path) else paths:
        for line in path.read_bytes().split(b"\n") if path.exists() else ():
            try:
                entry = Entry.from_line(line.decode())  # which may have been cut inside a letter
            except (ValueError, KeyError, TypeError):
                continue
            found[entry.key] = entry
    return found


class Writer:
    """Adds entries to a file, from several threads."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()

    def add(self, entry: Entry) -> Entry:
        """Write the entry as a line, and return it as it will be read."""
        line = entry.to_line()
        with self._lock, self._path.open("a+b") as file:
            if file.tell() > 0:
                file.seek(-1, 2)
                if file.read(1) != b"\n":  # a killed process left half a line
                    file.write(b"\n")
            file.write(line.encode())
        return Entry.from_line(line)


def _packed(record: RunRecord) -> dict[str, Any]:
    """The record as JSON: epochs column by column, measured numbers rounded, values per user as text."""
    own = {key: value for key, value in record.to_dict().items() if key != "intervals"}
    values = record.per_user or {}
    per_user = {key: _as_text(values[key]) for key in KEPT_PER_USER if key in values}
    return {
        **own,
        "final": _rounded(own["final"]),
        "epochs": _columns(_rounded(own["epochs"], 5)),
        "per_user": per_user,
    }


def _unpacked(own: Mapping[str, Any]) -> RunRecord:
    return RunRecord(
        **{
            **own,
            "epochs": _rows(own["epochs"]),
            "final": {key: math.nan if value is None else value for key, value in own["final"].items()},
            "per_user": {key: _from_text(text) for key, text in own["per_user"].items()},
        }
    )


def _columns(epochs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A list over the epochs for each key; a mapping from the epoch where few have it; one number where all agree.

    >>> _columns([{"epoch": 1, "tnr": 0.9, "skipped": 0}, {"epoch": 2, "tnr": 0.8, "skipped": 0, "ndcg@20": 0.3}])
    {'epoch': [1, 2], 'tnr': [0.9, 0.8], 'skipped': 0, 'ndcg@20': {'2': 0.3}}
    """
    found: dict[str, dict[str, Any]] = {}
    for line in epochs:
        for key, value in line.items():
            found.setdefault(key, {})[str(line["epoch"])] = value
    return {key: _column(column, len(epochs)) for key, column in found.items()}


def _column(at_epochs: dict[str, Any], n_epochs: int) -> Any:
    values = list(at_epochs.values())
    if len(values) < n_epochs:
        return at_epochs
    same = n_epochs > 1 and all(value == values[0] for value in values)
    return values[0] if same and not isinstance(values[0], Mapping) else values


def _rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The epochs' lines again."""
    rows: dict[str, dict[str, Any]] = {str(epoch): {} for epoch in columns.get("epoch", ())}
    for key, column in columns.items():
        values = column if isinstance(column, list) else [column] * len(rows)
        at_epochs = column if isinstance(column, Mapping) else dict(zip(rows, values, strict=True))
        for epoch, value in at_epochs.items():
            rows[epoch][key] = value
    return list(rows.values())


def _rounded(value: Any, decimals: int = 6) -> Any:
    if isinstance(value, Mapping):
        return {key: _rounded(item, decimals) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item, decimals) for item in value]
    return round(value, decimals) if isinstance(value, float) else value


def _as_text(values: np.ndarray) -> str:
    """Values in [0, 1] as base64 of two bytes each; a ranking metric at 20 is defined for every user."""
    return base64.b64encode(np.round(np.asarray(values) * STEPS).astype("<u2").tobytes()).decode()


def _from_text(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<u2") / STEPS
