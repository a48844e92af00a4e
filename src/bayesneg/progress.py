"""How far long work is, on stderr: bars on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

Show = Callable[[dict[str, Any]], None]
EVERY = 30.0  # seconds between two lines in a log


@contextmanager
def epoch_bar(progress: bool | Show, label: str, epochs: int, *, done: int = 0) -> Iterator[Show]:
    """What to call with each epoch's line: the caller's own function, a bar, a line now and then, or nothing."""
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield lambda line: None
    elif not sys.stderr.isatty():
        log = Log({label: epochs}, done={label: done})
        yield lambda line: log.advance(label, line)
    else:
        with _bars() as display:
            task = display.add_task(label, total=epochs, completed=done, last="")
            yield lambda line: display.update(task, completed=line["epoch"], last=last_numbers(line))


@contextmanager
def cell_bars(progress: bool, labels: Sequence[str], epochs: int) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    """One bar per label, each of ``epochs`` epochs over all its seeds; safe to call from several threads."""
    if not progress:
        yield lambda label, line: None
    elif not sys.stderr.isatty():
        yield Log(dict.fromkeys(labels, epochs), say_done=True).advance
    else:
        with _bars() as display:
            tasks = {label: display.add_task(label, total=epochs, last="") for label in labels}
            yield lambda label, line: display.update(tasks[label], advance=1, last=last_numbers(line))


@dataclass
class Log:
    """A line at most every half minute, and, where asked for, one when a label is done."""

    totals: dict[str, int]
    done: dict[str, int] = field(default_factory=dict)
    say_done: bool = False
    every: float = EVERY
    _lock: Lock = field(default_factory=Lock)
    _said: float = field(default_factory=time.monotonic)

    def advance(self, label: str, line: dict[str, Any]) -> None:
        with self._lock:
            self.done[label] = done = self.done.get(label, 0) + 1
            finished = self.say_done and done == self.totals[label]
            if finished or time.monotonic() - self._said >= self.every:
                self._said = time.monotonic()
                text = f"{label}: {done} of {self.totals[label]} epochs  {last_numbers(line)}".rstrip()
                print(text, file=sys.stderr, flush=True)  # noqa: T201


def last_numbers(line: dict[str, Any]) -> str:
    """The numbers of an epoch a person would watch."""
    shown = [key for key in line if key.startswith("ndcg@")] + ["tnr"]
    return "  ".join(f"{key} {line[key]:.4f}" for key in shown if key in line)


def _bars() -> Any:
    """A rich progress display with time left, on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}", markup=False),
        console=Console(stderr=True),
    )
