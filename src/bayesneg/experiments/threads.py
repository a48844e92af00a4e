"""Several runs at a time in the threads of one process, all of them stopped when one fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event
from typing import TypeVar

from bayesneg.errors import InputError
from bayesneg.models.torch.settings import TorchSettings, require_torch

Done = TypeVar("Done")


def chosen_seeds(seeds: int | Iterable[int]) -> list[int]:
    """0, 1, … for a number of seeds, or those that are given."""
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not chosen:
        raise InputError(f"seeds must be at least 1, or a list of them, got {seeds!r}")
    if len(set(chosen)) < len(chosen):
        raise InputError(f"seeds must differ, since the same seed gives the same run, got {chosen}")
    return chosen


def runs_at_once(model: object, jobs: int | None) -> int:
    """How many runs share the machine; a GPU records the steps of one run at a time."""
    if isinstance(model, TorchSettings):
        require_torch(type(model).__name__)
        from bayesneg.models.torch.device import pick_device

        if pick_device(model.device).type == "cuda":
            if jobs is not None and jobs > 1:
                raise InputError(f"jobs must be 1 on a GPU, which one run keeps busy, got {jobs}")
            return 1
    return jobs or os.cpu_count() or 1


def in_threads(tasks: Sequence[Callable[[], Done]], at_once: int, stop: Event) -> list[Done]:
    """What the tasks return, in their order; the first that fails raises at once, whichever it is.

    ``stop`` is set then: tasks that are under way look at it and end early.
    """
    with ThreadPoolExecutor(at_once) as pool:
        try:
            running = [pool.submit(task) for task in tasks]
            for done in as_completed(running):
                done.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        return [done.result() for done in running]
