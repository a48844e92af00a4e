"""Files that are whole when they appear: every file that this library writes goes through here.

A file is written beside its target under a name that nobody can foresee, created by this process and nobody else,
forced to the disk, and renamed. A full disk, a killed process or a power cut leaves the old file or the new one.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bayesneg.errors import InputError, naming

NO_LINKS: Final = 0 if sys.platform == "win32" else os.O_NOFOLLOW
UNFINISHED: Final = re.compile(r"\..*\.[0-9a-f]{16}\.part")
KINDS: Final = {  # what a path may be, if it is no regular file
    stat.S_ISLNK: "a symbolic link",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISSOCK: "a socket",
}


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file so that a reader never sees half of it.

    Args:
        path: The file; what is there is replaced, if it is a regular file.
        write: Writes to the path that it is given, which is an empty file beside the target.
    """
    with replacing(path) as part:
        write(part)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives an empty file beside ``path``, which takes its place when the block ends and is removed where it fails.

    Args:
        path: The file; what is there is replaced, if it is a regular file.
    """
    check_regular(path)
    part = unfinished(path)
    try:
        with naming(path):
            create(part)
            yield part
            sync(part)
            part.replace(path)
            sync(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)  # what fills a disk is not left on it
        raise


def write_text(path: Path, text: str) -> None:
    """Write a file of UTF-8 text, with the line ends of the text.

    Args:
        path: The file.
        text: What it holds.
    """
    write_whole(path, lambda part: part.write_bytes(text.encode()))


def unfinished(path: Path) -> Path:
    """A new name beside ``path`` that nobody can foresee.

    Args:
        path: The file or folder to write.
    """
    return path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.part")


def is_unfinished(path: Path) -> bool:
    """Whether a killed process left the file.

    Args:
        path: Any file of a folder.
    """
    return UNFINISHED.fullmatch(path.name) is not None


def remove_unfinished(folder: Path) -> None:
    """Remove the files that killed processes left; for the only process that writes to the folder.

    Args:
        folder: The folder.
    """
    for path in folder.iterdir():
        if is_unfinished(path) and (path.is_symlink() or not path.is_dir()):
            path.unlink(missing_ok=True)


def check_regular(path: Path) -> None:
    """An error where the path is there and is neither a regular file nor a folder, which other errors name.

    Args:
        path: The file to write.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:
        return  # a new file, or a folder that cannot be reached, which writing names
    for is_kind, kind in KINDS.items():
        if is_kind(mode):
            way_out = f"name {path.resolve()} itself" if stat.S_ISLNK(mode) else "name a file"
            raise InputError(f"{path} is {kind}, which would be replaced; {way_out}, or remove it first")


def create(path: Path) -> None:
    """Make an empty file that was not there; neither a file nor a link of that name is used.

    Args:
        path: The file.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS, 0o666))


def without_links(path: str, flags: int) -> int:
    """An ``opener`` for ``open`` that follows no symbolic link at the end of the path.

    Args:
        path: The file.
        flags: Those of ``open``.
    """
    return os.open(path, flags | NO_LINKS, 0o666)


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk.

    Args:
        path: The file or folder.
    """
    if sys.platform == "win32":
        return  # where a file must be open for writing, and a folder cannot be opened
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():  # some network disks cannot sync a folder
            raise
    finally:
        os.close(handle)
