"""Ctrl-C ends an epoch, not a run."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Any

from bayesneg.cli.output import say

Show = Callable[[dict[str, Any]], None]


@contextmanager
def resumable(out: Path | None) -> Iterator[Callable[[Show], Show]]:
    """Gives a wrapper for the function called after each epoch, where the first Ctrl-C takes effect, so that the
    checkpoint is that of a whole epoch. A second Ctrl-C takes effect at once.
    """
    stop = Event()
    before = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        stop.set()
        say("\nstopping after this epoch; Ctrl-C once more stops at once")

    def stopping(show: Show) -> Show:
        def after_epoch(line: dict[str, Any]) -> None:
            show(line)
            if stop.is_set():
                raise KeyboardInterrupt

        return after_epoch

    if before is signal.default_int_handler and current_thread() is main_thread():
        signal.signal(signal.SIGINT, ask)
    try:
        with interruptible(out):
            yield stopping
    finally:
        if signal.getsignal(signal.SIGINT) is ask:
            signal.signal(signal.SIGINT, before)


@contextmanager
def interruptible(out: Path | None, kept: str = "what was trained") -> Iterator[None]:
    """Says after Ctrl-C what is kept, and how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        if out is None:
            say("interrupted; nothing is kept without --out")
        else:
            say(f"interrupted; {out} keeps {kept}; resume with the same command and --resume")
        raise
