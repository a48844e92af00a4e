"""The errors a user can cause, each a sentence that names what is wrong and the way out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TRANSPORT = "transport error"  # as polars says of the end of a Parquet file that cannot be written


class BayesnegError(Exception):
    """Anything this library raises on purpose."""


class InputError(BayesnegError, ValueError):
    """The caller's input is wrong: an argument, a file, a column. The command line exits with code 2."""


class DataError(InputError):
    """A file or frame cannot be read as interactions; the message names the file and the line."""


class DamagedError(InputError):
    """A stored file is not as it was written; the message names the file, or the array in it."""


class StorageError(BayesnegError):
    """A store outside this process, such as a database, cannot be reached. The command line exits with code 1."""


class PanicError(ValueError):
    """A library written in Rust gave up on what it read."""


class DivergedError(BayesnegError, ArithmeticError):
    """Training left the finite numbers; the message names the epoch and what to lower."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """A failed write, such as that of a full disk, names its file.

    Args:
        path: The file that is written in the block.
    """
    try:
        yield
    except BayesnegError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        said = re.search(r"\(os error (\d+)\)", str(error))  # as polars writes it, also in errors of other types
        if said is None and not isinstance(error, OSError) and TRANSPORT not in str(error):
            raise
        number = int(said[1]) if said else error.errno if isinstance(error, OSError) else None
        raise OSError(number, os.strerror(number) if number else first_line(error), str(path)) from error


@contextmanager
def no_panic() -> Iterator[None]:
    """A panic of polars, as damaged Parquet may cause, is a ``PanicError``: it is no ``Exception`` by itself."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise PanicError(f"polars cannot read it: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """What an error says first, without the lines that libraries add for their developers.

    Args:
        error: Any error.
    """
    said = str(error).strip().splitlines()
    return said[0][:200] if said else type(error).__name__


def file_sentence(error: OSError) -> str:
    """The file, what is wrong with it, and the way out.

    Args:
        error: What the system said.
    """
    match error:
        case FileExistsError() | NotADirectoryError():
            way_out = "there is a file of this name; name another folder, or move the file away"
        case IsADirectoryError():
            way_out = "there is a folder of this name; name another file, or move the folder away"
        case FileNotFoundError():
            way_out = "check the path; its folder must exist"
        case PermissionError():
            way_out = "choose a place that you can read and write"
        case _:
            way_out = "check the path and the free disk space"
    return f"{error.filename}: {error.strerror}; {way_out}"
