"""The command line, as ``bayesneg`` and as ``python -m bayesneg``."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command and exit. Ctrl-C while the libraries are imported ends it without a traceback, as later."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, _leave)
    from bayesneg.cli import main as command

    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command()
    except KeyboardInterrupt:
        _leave(signal.SIGINT, None)


def _leave(number: int, frame: FrameType | None) -> None:
    """Nothing was begun; an exception might be caught by a library that is half imported."""
    os.write(sys.stderr.fileno(), b"\ninterrupted\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
