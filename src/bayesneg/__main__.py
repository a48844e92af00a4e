"""The command line, as ``bayesneg`` and as ``python -m bayesneg``."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command and exit. Ctrl-C or SIGTERM while libraries are imported end it without a traceback, as later."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    replaced = {number: handler for number, handler in usual.items() if signal.getsignal(number) is handler}
    for number in replaced:
        signal.signal(number, _leave)
    from bayesneg.cli import main as command

    for number, handler in replaced.items():
        signal.signal(number, handler)
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
