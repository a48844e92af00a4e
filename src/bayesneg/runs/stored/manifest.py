"""The manifest of a run: size and digest of its files, compared when they are read.

It is written when a run begins, with the head alone, and again when it ends, after everything else. A folder of an
earlier version has none: its files are read as they are, and arrays, the split and its fingerprint are checked as ever.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayesneg.errors import InputError
from bayesneg.integrity.digests import check_file, check_seal, facts_of, sealed
from bayesneg.runs.record import SCHEMA, check_schema
from bayesneg.runs.stored.names import HEAD, LISTED, MANIFEST, METRICS, WAY_OUT
from bayesneg.runs.stored.writing import write_json


def seal(folder: Path, names: Sequence[str] = LISTED) -> None:
    """Write the manifest of those files that are there.

    Args:
        folder: The folder of the run.
        names: What it lists: all files of a finished run, the head of one that is not.
    """
    found = [name for name in names if (folder / name).exists()]
    write_json(folder / MANIFEST, sealed({"schema": SCHEMA, "files": facts_of(folder, found)}))


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Size and digest of each listed file; None for a run of an earlier version, which has no manifest."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    manifest = json.loads(path.read_text(encoding="utf-8"))
    check_seal(manifest, path, way_out=WAY_OUT)
    check_schema(manifest.get("schema"), path)
    return dict(manifest["files"])


def checked(folder: Path, name: str) -> Path:
    """A file of a run, after its digest was compared; nothing is compared where the manifest does not list it."""
    listed = read_manifest(folder) or {}
    if name in listed:
        check_file(folder / name, listed[name], way_out=WAY_OUT)
    return folder / name


def check_finished(folder: Path) -> None:
    """An error unless the run has ended: its metrics are there, and listed where it has a manifest."""
    unfinished = InputError(f"{folder}: the run was not finished; finish it with the same command and --resume")
    if not (folder / METRICS).exists():
        raise unfinished
    listed = read_manifest(folder)
    if listed is None and "manifest" in json.loads((folder / HEAD).read_text(encoding="utf-8")):
        raise InputError(
            f"{folder}: {MANIFEST} is missing; copy it too, or finish the run with the same command and --resume"
        )
    if listed is not None and METRICS not in listed:
        raise unfinished
