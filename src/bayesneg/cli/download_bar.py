"""A bar for bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def download_bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(name, total=None)
        yield lambda done, total: display.update(task, completed=done, total=total)
