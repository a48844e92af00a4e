"""Files of a prepared folder: arrays that grow at their end, small JSON, one writer at a time.

A file is complete or is not there under its name; an array that grows is as long as the journal says.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bayesneg.errors import DataError, InputError, naming, no_panic
from bayesneg.whole_files import remove_unfinished, replacing, without_links

ROW_GROUP = 1 << 20  # rows, so that the bytes of a Parquet file do not depend on threads


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """A file that is complete when it appears."""
    with replacing(path) as part:
        part.write_bytes(content)


def write_json(path: Path, value: Any) -> None:
    write_whole(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """The value of a JSON file; an error that names it where it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: this is not JSON ({error}); prepare the data into a new folder") from error


def write_array(path: Path, array: np.ndarray) -> None:
    stream = BytesIO()
    np.lib.format.write_array_header_1_0(stream, _header(array.dtype, len(array)))
    with replacing(path) as part, part.open("wb") as file:
        file.write(stream.getvalue())
        file.write(np.ascontiguousarray(array).data)


def write_table(path: Path, frame: pl.DataFrame) -> None:
    stream = BytesIO()
    frame.rechunk().write_parquet(stream, compression="zstd", row_group_size=ROW_GROUP)
    write_whole(path, stream.getbuffer())


def mapped(path: Path) -> np.ndarray:
    """An array that is read where it is used; nothing but the header is read now."""
    with _damage_named(path):
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def read_table(path: Path, column: str) -> pl.Series:
    """A column of a table."""
    with _damage_named(path):
        return pl.read_parquet(path, columns=[column])[column]


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """A file that cannot be read is named, with the way out: of a split, its folder is made again."""
    whole = path.parent.parent
    is_split = (whole / "split.json").is_file()
    way_out = f"delete {whole}, which is made again" if is_split else "prepare the data again, into a new folder"
    try:
        with no_panic():
            yield
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file, but the folder needs it; {way_out}") from error
    except (ValueError, EOFError, OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: the file is cut off or damaged ({str(error).splitlines()[0]}); {way_out}") from error


class GrowingArray:
    """An ``.npy`` file that grows at its end; ``length`` cuts off what a killed process wrote after it."""

    def __init__(self, path: Path, dtype: str, *, length: int = 0) -> None:
        self.path, self.dtype, self.length = path, np.dtype(dtype), length
        with naming(path):
            self._file = open(path, "r+b" if length else "wb", opener=without_links)  # noqa: SIM115
            self._write_header()
            self._file.truncate(self._start + length * self.dtype.itemsize)
            self._file.seek(0, os.SEEK_END)

    def append(self, values: np.ndarray) -> None:
        with naming(self.path):
            self._file.write(np.ascontiguousarray(values, dtype=self.dtype).data)
            self.length += len(values)

    def flush(self) -> None:
        """Everything appended is on the disk, whatever happens to this process or the machine."""
        with naming(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        with naming(self.path):
            self._write_header()
            self.flush()
            self._file.close()

    def __enter__(self) -> GrowingArray:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_header(self) -> None:
        """The header has room for any length, so that it can be written again in place."""
        self._file.seek(0)
        np.lib.format.write_array_header_1_0(self._file, _header(self.dtype, self.length))
        self._start = self._file.tell()


def _header(dtype: np.dtype[Any], length: int) -> dict[str, Any]:
    return {"descr": dtype.str, "fortran_order": False, "shape": (length,)}


@contextmanager
def scratch_array(path: Path, dtype: str, length: int) -> Iterator[np.ndarray]:
    """A mapped array of zeros that is deleted afterwards; its space is reserved, so a full disk is an error now."""
    size = max(1, length * np.dtype(dtype).itemsize)
    with naming(path), open(path, "wb", opener=without_links) as file:
        if sys.platform == "linux":
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
    try:
        yield np.memmap(path, dtype=dtype, mode="r+", shape=(length,)).view(np.ndarray)
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """At most one process writes here; the lock of a killed one is free."""
    path = folder / ".lock"
    with naming(path):
        file = open(path, "a", opener=without_links)  # noqa: SIM115
    with file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        remove_unfinished(folder)
        yield
