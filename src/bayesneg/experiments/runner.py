"""The one runner: several trainings at a time in threads, all of them stopped when one fails.

Compiled kernels and torch release the interpreter's lock. A thread may hand its training to a worker process,
see :mod:`~bayesneg.experiments.workers`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from threading import Event
from typing import Any, TypeVar

from bayesneg.errors import BayesnegError, InputError
from bayesneg.models.torch.settings import TorchSettings, require_torch
from bayesneg.progress import ShowEpoch

Done = TypeVar("Done")


def chosen_seeds(seeds: int | Iterable[int]) -> list[int]:
    """0, 1, … for a number of seeds, or those given."""
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not chosen:
        raise InputError(f"seeds must be at least 1, or a list of them, got {seeds!r}")
    if len(set(chosen)) < len(chosen):
        raise InputError(f"seeds must differ, since the same seed gives the same run, got {chosen}")
    return chosen


def runs_at_once(models: Iterable[object], jobs: int | None) -> int:
    """How many runs share the machine; a GPU trains one at a time."""
    for model in models:
        if isinstance(model, TorchSettings):
            require_torch(type(model).__name__)
            from bayesneg.models.torch.device import pick_device

            if pick_device(model.device).type == "cuda":
                if jobs is not None and jobs > 1:
                    raise InputError(f"jobs must be 1 on a GPU, which one run keeps busy, got {jobs}")
                return 1
    return jobs or os.cpu_count() or 1


def run_all(
    tasks: Sequence[Callable[[ShowEpoch], Done]],
    *,
    jobs: int,
    show: Callable[[int, dict[str, Any]], None],
    on_stop: Callable[[], None] = lambda: None,
) -> list[Done]:
    """What the tasks return, in their order.

    The first exception, Ctrl-C included, is raised as soon as the tasks under way have ended, which they do after
    their current epoch; the other tasks are not started.

    Args:
        tasks: Functions that train and call their argument with each epoch's line.
        jobs: Tasks at a time.
        show: Called with the position of a task and its epoch's line, from several threads.
        on_stop: Called when the tasks are to end early.
    """
    stop = Event()

    def run(position: int) -> Done:
        def after_epoch(line: dict[str, Any]) -> None:
            show(position, line)
            if stop.is_set():
                raise KeyboardInterrupt  # between two epochs, so that the checkpoint is whole

        return tasks[position](after_epoch)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            running = [pool.submit(run, position) for position in range(len(tasks))]
            for done in as_completed(running):
                done.result()
        except BaseException:
            stop.set()
            on_stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        return [done.result() for done in running]


@contextmanager
def naming(label: str, seed: int) -> Iterator[None]:
    """Errors say which run they are about."""
    try:
        yield
    except BayesnegError as error:
        error.args = (f"{label}, seed {seed}: {error}",)
        raise
