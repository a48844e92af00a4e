"""Ctrl-C and SIGTERM: they end an epoch, not a run; what is kept is said, and the exit code tells which it was."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Final

import typer

from bayesneg.cli.output import say

Show = Callable[[dict[str, Any]], None]
SAID: Final = "the person was told what is kept"
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
UNDER_TORCHRUN: Final = "TORCHELASTIC_RUN_ID"  # torchrun ends its processes by SIGTERM, at once


class TerminateInterrupt(KeyboardInterrupt):
    """SIGTERM, which ends whatever Ctrl-C ends."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM is raised as an interrupt in this block, so that it leaves nothing half written and no process."""
    is_ours = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and current_thread() is main_thread()
    if not is_ours or UNDER_TORCHRUN in os.environ:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise TerminateInterrupt


def ending(function: Callable[..., None]) -> Callable[..., None]:
    """The command, which exits with 130 after Ctrl-C and 143 after SIGTERM, and with a sentence in either case."""

    @functools.wraps(function)
    def run(**given: Any) -> None:
        try:
            function(**given)
        except KeyboardInterrupt as error:
            if SAID not in _notes(error):
                say("interrupted; no file is left half written; to start over, run the command again")
            raise typer.Exit(128 + _number(error)) from error

    return run


def told(error: KeyboardInterrupt, text: str) -> None:
    """Say what an interrupted command keeps.

    Args:
        error: The interrupt, which is to be raised again.
        text: The sentence.
    """
    error.add_note(SAID)
    say(text)


@contextmanager
def resumable(out: Path | None) -> Iterator[Callable[[Show], Show]]:
    """Gives a wrapper for the function called after each epoch, where the first Ctrl-C or SIGTERM takes effect, so that
    the checkpoint is that of a whole epoch. A second one takes effect at once.
    """
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}
    waited_for = (signal.default_int_handler, _terminate)

    def ask(number: int, frame: FrameType | None) -> None:
        for each, handler in before.items():
            signal.signal(each, handler)
        came.append(number)
        say("\nstopping after this epoch; Ctrl-C once more stops at once")

    def stopping(show: Show) -> Show:
        def after_epoch(line: dict[str, Any]) -> None:
            show(line)
            if came:
                raise TerminateInterrupt if came[0] == signal.SIGTERM else KeyboardInterrupt

        return after_epoch

    if current_thread() is main_thread():
        for number in SIGNALS:
            if before[number] in waited_for:
                signal.signal(number, ask)
    try:
        with interruptible(out):
            yield stopping
    finally:
        for number in SIGNALS:
            if signal.getsignal(number) is ask:
                signal.signal(number, before[number])


@contextmanager
def interruptible(out: Path | None, kept: str = "what was trained") -> Iterator[None]:
    """Says after Ctrl-C or SIGTERM what is kept, and how to resume."""
    try:
        yield
    except KeyboardInterrupt as error:
        if out is None:
            told(error, "interrupted; nothing is kept without --out")
        else:
            told(error, f"interrupted; {out} keeps {kept}; resume with the same command and --resume")
        raise


def _number(error: KeyboardInterrupt) -> int:
    return signal.SIGTERM if isinstance(error, TerminateInterrupt) else signal.SIGINT


def _notes(error: BaseException) -> list[str]:
    return list(vars(error).get("__notes__", ()))
