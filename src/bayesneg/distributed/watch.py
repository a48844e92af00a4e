"""A watch over processes that wait for one another where the backend would end them without a name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import Event, Thread

from torch.distributed.distributed_c10d import Store

PERIOD = 5.0  # seconds between two looks, at most


class Watch:
    """Names the processes that do not come to a collective in time, and ends this one.

    All processes make the same collectives in the same order. Each posts how many it has begun. One that began none for
    as long as the timeout, while others have begun fewer, waits for these.

    With NCCL a step only queues its collectives, and torch's own watchdog ends a process that waits too long by a
    signal, without the rank it waited for.

    Args:
        begun: How many collectives this process has begun.
        store: The store of the group.
        rank: The rank of this process.
        size: Number of processes.
        timeout: Seconds after which a process that waits for others gives up.
        say: Says the error; called in one process.
        end: Ends this process with an exit code; another thread waits in a collective and cannot raise.
    """

    def __init__(
        self,
        begun: Callable[[], int],
        store: Store,
        *,
        rank: int,
        size: int,
        timeout: float,
        say: Callable[[str], None],
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._begun, self._store, self._rank, self._size = begun, store, rank, size
        self._timeout, self._say, self._end = timeout, say, end
        self._over = Event()
        Thread(target=self._run, daemon=True, name="watch over the other processes").start()

    def stop(self) -> None:
        """End the watch."""
        self._over.set()

    def _run(self) -> None:
        period, last, since = min(PERIOD, self._timeout / 4), -1, time.monotonic()
        while not self._over.wait(period):
            begun = self._begun()
            if begun != last:
                last, since = begun, time.monotonic()
            try:
                self._store.set(f"begun/{self._rank}", str(begun))
                late = self._late(begun) if time.monotonic() - since > self._timeout else []
            except RuntimeError:  # the store is gone with the process that kept it, which torchrun has noticed
                return
            if late and not self._over.is_set():
                self._give_up(late)
                return

    def _late(self, begun: int) -> list[int]:
        """The ranks that have begun fewer collectives."""
        keys = [f"begun/{rank}" for rank in range(self._size)]
        return [
            rank for rank, key in enumerate(keys) if not self._store.check([key]) or int(self._store.get(key)) < begun
        ]

    def _give_up(self, late: list[int]) -> None:
        if self._store.add("given up", 1) == 1:
            names = ", ".join(map(str, late))
            self._say(
                f"no answer from rank {names} for {self._timeout:g} s: it hangs or cannot be reached; start again with "
                "--resume, or torchrun --max-restarts"
            )
        self._end(1)
