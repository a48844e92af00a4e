"""How far long work is, on stderr: bars on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
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
def cell_bars(progress: bool, epochs: Mapping[str, int]) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    """One bar per label, of its ``epochs`` over all its seeds; safe to call from several threads."""
    if not progress:
        yield lambda label, line: None
    elif not sys.stderr.isatty():
        yield Log(dict(epochs), say_done=True).advance
    else:
        with _bars() as display:
            tasks = {label: display.add_task(label, total=total, last="") for label, total in epochs.items()}
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


@dataclass
class SweepBar:
    """How far a sweep is: epochs done of all its cells, and the time left from what an epoch of each kind takes."""

    todo: dict[str, int]  # kind of cell → epochs left
    jobs: int
    n_cells: int
    show: Callable[[int, str], None] = lambda done, text: None  # epochs done, and a line about the rest
    took: dict[str, tuple[int, float]] = field(default_factory=dict)  # kind → epochs, seconds
    done: int = 0
    finished: int = 0
    failed: int = 0

    def advance(self, kind: str, seconds: float, last: str) -> None:
        """One epoch more."""
        count, total = self.took.get(kind, (0, 0.0))
        self.took[kind] = (count + 1, total + seconds)
        self.todo[kind] -= 1
        self.done += 1
        self._show(last)

    def take_back(self, kind: str, epochs: int) -> None:
        """Epochs that were lost."""
        self.todo[kind] += epochs
        self.done -= epochs

    def finish(self, *, failed: bool) -> None:
        """One cell more."""
        self.finished += 1
        self.failed += failed
        self._show("")

    def seconds_left(self) -> float:
        """An epoch of a kind not seen yet is taken to last as long as the mean of those seen."""
        pace = {kind: seconds / count for kind, (count, seconds) in self.took.items()}
        usual = sum(pace.values()) / len(pace) if pace else 0.0
        return sum(epochs * pace.get(kind, usual) for kind, epochs in self.todo.items()) / self.jobs

    def _show(self, last: str) -> None:
        failed = f", {self.failed} failed" if self.failed else ""
        parts = (
            f"{self.finished} of {self.n_cells} cells{failed}",
            f"about {_duration(self.seconds_left())} left",
            last,
        )
        self.show(self.done, "  ".join(part for part in parts if part))


@contextmanager
def sweep_bar(progress: bool, epochs: Mapping[str, int], *, jobs: int, n_cells: int) -> Iterator[SweepBar]:
    """One bar for a whole sweep; ``epochs`` says how many each kind of cell has before it."""
    bar = SweepBar(dict(epochs), jobs, n_cells)
    total = sum(epochs.values())
    if not progress:
        yield bar
    elif not sys.stderr.isatty():
        bar.show = Now(total).show
        yield bar
    else:
        with _bars(timed=False) as display:
            task = display.add_task("sweep", total=total, last="starting")
            bar.show = lambda done, text: display.update(task, completed=done, last=text)
            yield bar


@dataclass
class Now:
    """A line in a log, at most every half minute and at the end."""

    total: int
    what: str = "epochs"
    every: float = EVERY
    _said: float = field(default_factory=time.monotonic)

    def show(self, done: int, text: str) -> None:
        if time.monotonic() - self._said >= self.every:
            self._said = time.monotonic()
            print(f"{done} of {self.total} {self.what}, {text}", file=sys.stderr, flush=True)  # noqa: T201


@dataclass
class SearchBar:
    """How far a search is: trials done, the one under way, and the best so far."""

    n_trials: int
    show: Callable[[int, str], None] = lambda done, text: None  # trials done, and a line about the rest
    done: int = 0
    best: str = ""

    def advance(self, label: str, line: dict[str, Any]) -> None:
        """One epoch more of the trial under way."""
        self._show(f"now {label}, epoch {line['epoch']}")

    def finish(self, n_done: int, best: str) -> None:
        """One trial more."""
        self.done, self.best = n_done, best
        self._show("")

    def _show(self, now: str) -> None:
        self.show(self.done, "  ".join(part for part in (self.best, now) if part))


@contextmanager
def search_bar(progress: bool, n_trials: int) -> Iterator[SearchBar]:
    """One bar over the trials of a search."""
    bar = SearchBar(n_trials)
    if not progress:
        yield bar
    elif not sys.stderr.isatty():
        bar.show = Now(n_trials, what="trials").show
        yield bar
    else:
        with _bars() as display:
            task = display.add_task("trials", total=n_trials, last="")
            bar.show = lambda done, text: display.update(task, completed=done, last=text)
            yield bar


def _duration(seconds: float) -> str:
    """``50 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def last_numbers(line: dict[str, Any]) -> str:
    """The numbers of an epoch a person would watch."""
    shown = [key for key in line if key.startswith("ndcg@")] + ["tnr"]
    return "  ".join(f"{key} {line[key]:.4f}" for key in shown if key in line)


def _bars(*, timed: bool = True) -> Any:
    """A rich progress display on stderr, with the time left where the pace of one bar gives it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        *([TimeRemainingColumn()] if timed else []),
        TextColumn("{task.fields[last]}", markup=False),
        console=Console(stderr=True),
    )
