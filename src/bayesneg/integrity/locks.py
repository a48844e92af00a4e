"""At most one process writes to a folder or a file: a second one is refused at once.

The lock is that of the system on the folder or file itself: that of a killed process is free, and no file is left.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bayesneg.errors import InputError


class FileLock:
    """Holds a folder or file until it is released; also a context manager.

    Args:
        path: The folder or file, which exists.
        way_out: What a second process is told, the end of the sentence.

    Raises:
        InputError: Another process holds it.
    """

    def __init__(self, path: Path, *, way_out: str) -> None:
        self._handle: int | None = None
        if sys.platform == "win32":
            return
        import fcntl

        handle = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise InputError(f"{path} is being written by another process; {way_out}") from None
        except OSError:  # a file system without locks, as some over a network
            os.close(handle)
            return
        self._handle = handle

    def release(self) -> None:
        """Free it; a second time nothing happens."""
        handle, self._handle = self._handle, None
        if handle is not None:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_UN)  # also of copies that child processes have
            os.close(handle)

    __del__ = release

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
