"""Bars on stderr for work that takes a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Show = Callable[[dict[str, Any]], None]


@contextmanager
def epoch_bar(progress: bool | Show, label: str, epochs: int, *, done: int = 0) -> Iterator[Show]:
    """What to call with each epoch's line: the caller's own function, a bar on a terminal, or nothing."""
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress or not sys.stderr.isatty():
        yield lambda line: None
        return
    with bar() as display:
        task = display.add_task(label, total=epochs, completed=done, last="")
        yield lambda line: display.update(task, completed=line["epoch"], last=last_numbers(line))


def bar() -> Any:
    """A rich progress display with time left, on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}"),
        console=Console(stderr=True),
    )


def last_numbers(line: dict[str, Any]) -> str:
    """The numbers of an epoch a person would watch."""
    shown = [key for key in line if key.startswith("ndcg@")] + ["tnr"]
    return "  ".join(f"{key} {line[key]:.4f}" for key in shown if key in line)


@contextmanager
def cell_bars(progress: bool, labels: list[str], epochs: int) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    """One bar per label, each of ``epochs`` epochs over all its seeds; safe to call from several threads."""
    if not progress:
        yield lambda label, line: None
        return
    with bar() as display:
        tasks = {label: display.add_task(label, total=epochs, last="") for label in labels}
        yield lambda label, line: display.update(tasks[label], advance=1, last=last_numbers(line))
