"""Progress on stderr: bars on a terminal, a line now and then in a log."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from bayesneg.errors import InputError

ShowEpoch = Callable[[dict[str, Any]], None]  # takes an epoch's line of the record
Update = Callable[[str, int, str], None]  # takes a bar's label, how much of it is done, and a text beside it
COMPILING = "compiling kernels: the first run on a machine takes up to half a minute longer"
# what controls a terminal, and the direction of text
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
LOG_EVERY = 30.0  # seconds between two lines in a log


def printable(text: str, *, keep: str = "\n\t") -> str:
    """A text without characters that control a terminal: what comes from data or file names is shown, never obeyed.

    Args:
        text: Any text.
        keep: Control characters that stay.

    >>> printable("item\\x1b[31m\\x9b2J")
    'item\\\\x1b[31m\\\\x9b2J'
    """
    return CONTROL.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def tell(line: str) -> None:
    """A line on stderr, above the bars where there are any."""
    if line:
        print(printable(line), file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def bars(
    progress: bool,
    totals: Mapping[str, int],
    *,
    unit: str = "epochs",
    units: Mapping[str, str] | None = None,
    log_end: bool = False,
) -> Iterator[Update]:
    """One bar per label, of its total; in a log, at most a line every half minute.

    ``units`` are those of labels with another unit. ``log_end`` adds a line when a label is done. The function may be
    called from several threads. That kernels are compiled is said once: the first bar stands still meanwhile.
    """
    if not progress:
        yield lambda label, done, text: None
        return
    from bayesneg.kernels.numba.compiling import telling

    if not sys.stderr.isatty():
        log = Log(totals, unit=unit, units=units or {}, log_end=log_end)
        with telling(lambda: tell(COMPILING)):
            yield log.update
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        label = TextColumn("{task.description}", markup=False)
        text = TextColumn("{task.fields[text]}", markup=False)
        columns = (label, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), text)
        with Progress(*columns, console=Console(stderr=True)) as display, telling(lambda: display.print(COMPILING)):
            tasks = {label: display.add_task(printable(label), total=total, text="") for label, total in totals.items()}
            yield lambda label, done, text: display.update(tasks[label], completed=done, text=printable(text))


@dataclass
class Log:
    """Lines for a log instead of bars."""

    totals: Mapping[str, int]
    unit: str = "epochs"
    units: Mapping[str, str] = field(default_factory=dict)
    log_end: bool = False
    every: float = LOG_EVERY
    _lock: Lock = field(default_factory=Lock)
    _written: float = field(default_factory=time.monotonic)

    def update(self, label: str, done: int, text: str) -> None:
        with self._lock:
            ended = self.log_end and done == self.totals[label]
            if ended or time.monotonic() - self._written >= self.every:
                self._written = time.monotonic()
                unit, total = self.units.get(label, self.unit), self.totals[label]
                tell(f"{label}: {done} of {total} {unit if total != 1 else unit.removesuffix('s')}  {text}".rstrip())


@contextmanager
def epoch_bar(progress: bool | ShowEpoch, label: str, epochs: int, *, done: int = 0) -> Iterator[ShowEpoch]:
    """What to call with each epoch's line of one run; a caller's function is passed on."""
    if not isinstance(progress, bool):
        if not callable(progress):
            raise InputError(f"progress must be True, False or a function of each epoch's line, got {progress!r:.60}")
        yield progress
        return
    with bars(progress, {label: epochs}) as update:
        update(label, done, "")
        yield lambda line: update(label, line["epoch"], metrics_text(line))


@contextmanager
def run_bars(progress: bool, labels: Sequence[str], epochs: Sequence[int]) -> Iterator[Callable[[int, Any], None]]:
    """One bar per label over all its runs; called with a run's position and its epoch's line.

    A label whose runs have one epoch each, such as a baseline's, is counted in seeds.
    """
    totals: Counter[str] = Counter()
    for label, n_epochs in zip(labels, epochs, strict=True):
        totals[label] += n_epochs
    trained = {label for label, n_epochs in zip(labels, epochs, strict=True) if n_epochs > 1}
    units = {label: "seeds" for label in totals if label not in trained and totals[label] > 1}
    done, lock = [0] * len(labels), Lock()
    with bars(progress, totals, units=units, log_end=True) as update:

        def show(run: int, line: Mapping[str, Any]) -> None:
            with lock:
                done[run] = line["epoch"]
                of_label = sum(n for label, n in zip(labels, done, strict=True) if label == labels[run])
                update(labels[run], of_label, metrics_text(line))

        yield show


@dataclass
class SweepProgress:
    """Epochs done of all cells of a sweep, and the time left, from the mean epoch of each kind of cell."""

    kinds: Sequence[str]  # of each cell: epochs of one kind take about as long
    epochs: Sequence[int]  # of each cell
    jobs: int
    update: Update = lambda label, done, text: None
    _seconds: dict[str, list[float]] = field(default_factory=dict)  # kind → of each epoch
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.done, self.n_finished, self.n_failed = [0] * len(self.kinds), 0, 0

    def advance(self, cell: int, epoch: int, seconds: float, text: str = "") -> None:
        """An epoch took so long; a cell that starts again begins with epoch 1 again."""
        with self._lock:
            self._seconds.setdefault(self.kinds[cell], []).append(seconds)
            self.done[cell] = epoch
            self._show(text)

    def finish(self, cell: int, *, failed: bool) -> None:
        with self._lock:
            self.done[cell] = self.epochs[cell]
            self.n_finished, self.n_failed = self.n_finished + 1, self.n_failed + failed
            self._show("")

    def seconds_left(self) -> float:
        """A kind without an epoch so far is taken to be as fast as the mean of the others."""
        pace = {kind: sum(seconds) / len(seconds) for kind, seconds in self._seconds.items()}
        mean = sum(pace.values()) / len(pace) if pace else 0.0
        cells = zip(self.kinds, self.epochs, self.done, strict=True)
        return sum((n_epochs - done) * pace.get(kind, mean) for kind, n_epochs, done in cells) / self.jobs

    def _show(self, text: str) -> None:
        failed = f", {self.n_failed} failed" if self.n_failed else ""
        cells = f"{self.n_finished} of {len(self.kinds)} cells{failed}"
        left = f"about {_duration(self.seconds_left())} left"
        self.update("sweep", sum(self.done), "  ".join(filter(None, (cells, left, text))))


def _duration(seconds: float) -> str:
    """``50 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def metrics_text(line: Mapping[str, Any]) -> str:
    """The metrics of an epoch that a person would watch."""
    shown = [key for key in line if key.startswith("ndcg@")] + ["tnr"]
    return "  ".join(f"{key} {line[key]:.4f}" for key in shown if key in line)
