"""Digests, sha256: of files, in the manifest of a folder; of a JSON object, in itself; of arrays, in their file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesneg.errors import DamagedError

LARGE: Final = 4 << 20  # bytes of a file of which a sample is read where time matters
BLOCK, N_BLOCKS = 1 << 16, 64  # of a sample
SEAL: Final = "sha256"  # the key of an object's digest of its other keys


def file_digest(path: Path) -> str:
    """The sha256 of a file.

    Args:
        path: The file.

    Returns:
        64 hexadecimal digits.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sample_digest(path: Path) -> str:
    """The sha256 of a sample of a file: 64 blocks of 64 KiB, evenly spaced, the first and the last among them.

    A file that was cut off, overwritten or filled with zeros has another one; a single flipped bit is found only where
    it lies in a block.

    Args:
        path: The file, of at least a block.

    Returns:
        64 hexadecimal digits.
    """
    digest, last = hashlib.sha256(), max(0, path.stat().st_size - BLOCK)
    with path.open("rb") as file:
        for place in range(N_BLOCKS):
            file.seek(place * last // (N_BLOCKS - 1))
            digest.update(file.read(BLOCK))
    return digest.hexdigest()


def facts_of(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Size and digest of files of a folder, as a manifest lists them.

    Args:
        folder: The folder.
        names: The files' names.

    Returns:
        ``bytes`` and ``sha256``, by name; of a large file also ``sample_sha256``, by :func:`sample_digest`.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        size = (folder / name).stat().st_size
        found[name] = {"bytes": size, "sha256": file_digest(folder / name)}
        if size > LARGE:
            found[name]["sample_sha256"] = sample_digest(folder / name)
    return found


def check_file(path: Path, facts: Mapping[str, Any], *, way_out: str, content: bool = True) -> None:
    """Refuse a file that is not the one that was written.

    Args:
        path: The file.
        facts: Its entry in the manifest.
        way_out: What to do about it, the end of the sentence.
        content: Whether to read all of it; otherwise a sample of a large file, where its entry has the digest of one.
    """
    if not path.is_file():
        raise DamagedError(f"{path}: no such file, but the folder needs it; {way_out}")
    if path.stat().st_size != facts["bytes"]:
        wrong = f"it has {path.stat().st_size:,} bytes, and {facts['bytes']:,} were written"
        raise DamagedError(f"{path}: the file is cut off or damaged ({wrong}); {way_out}")
    if content or facts["bytes"] <= LARGE:
        is_whole = file_digest(path) == facts["sha256"]
    else:
        is_whole = "sample_sha256" not in facts or sample_digest(path) == facts["sample_sha256"]
    if not is_whole:
        raise DamagedError(f"{path}: the file is damaged (its sha256 is not that of what was written); {way_out}")


def sealed(values: Mapping[str, Any]) -> dict[str, Any]:
    """An object for a JSON file, with a digest of itself.

    Args:
        values: Plain values.

    Returns:
        The same with the key ``sha256``.
    """
    return {**values, SEAL: _digest_of(values)}


def check_seal(values: Any, path: Path, *, way_out: str) -> None:
    """Refuse an object that is not as it was sealed; one without a digest is of an earlier version.

    Args:
        values: What the JSON file holds.
        path: The file.
        way_out: What to do about it, the end of the sentence.
    """
    if not isinstance(values, dict):
        raise DamagedError(f"{path} is damaged: it holds no object; {way_out}")
    if SEAL in values and values[SEAL] != _digest_of({key: value for key, value in values.items() if key != SEAL}):
        raise DamagedError(f"{path} is damaged: its content does not have the sha256 that it says; {way_out}")


def _digest_of(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def digest_of_arrays(arrays: Mapping[str, np.ndarray]) -> str:
    """The sha256 of arrays: their names, types, shapes and values.

    Args:
        arrays: The arrays, by name.

    Returns:
        64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
    return digest.hexdigest()
