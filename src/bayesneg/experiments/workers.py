"""Worker processes: one for each thread that asks, with one compute thread each.

Results and the load of the machine then do not depend on how many there are. A process that dies, for want of memory
say, takes no other with it: it is replaced, and its work is tried once more. Importing this module loads nothing that
computes, so that a worker's environment is set before NumPy is loaded.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Lock, Thread, local
from typing import Any, Final, TypeVar

from bayesneg.errors import BayesnegError
from bayesneg.progress import ShowEpoch

Done = TypeVar("Done")

ONE_THREAD: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "POLARS_MAX_THREADS",
)
TRIES: Final = 2  # of work whose process dies
STARTS: Final = 4  # processes in a row that may die before they are ready
ENDED: Final = "ended"  # in place of a report


class _OfThread(local):
    worker: _Worker | None = None


class Workers:
    """Runs work in the process of the calling thread. Leave the ``workers()`` block to end all processes."""

    def __init__(self) -> None:
        self._of_thread, self._lock = _OfThread(), Lock()
        self._all: list[_Worker] = []
        self._lost_starts = 0
        self._closed = False

    def run(self, work: Callable[[ShowEpoch], Done], show: ShowEpoch) -> Done:
        """What ``work(show)`` returns; the work and its result are pickled, and of a shown line the numbers arrive.

        Raises:
            BayesnegError: its process died twice, or no process starts.
        """
        for _ in range(TRIES):
            try:
                return self._ready_worker().run(work, show)
            except BrokenProcessPool:
                self._forget()
        raise BayesnegError(f"its worker process died {TRIES} times; is memory short?")

    def close(self) -> None:
        """Terminate all processes immediately, running work included."""
        with self._lock:
            self._closed = True
            for worker in self._all:
                worker.lifeline.close()

    def _ready_worker(self) -> _Worker:
        """The thread's process; one that died while it started is replaced."""
        while True:
            worker = self._of_thread.worker
            if worker is not None:
                return worker
            with self._lock:
                if self._closed:
                    raise KeyboardInterrupt
                if self._lost_starts >= STARTS:
                    raise BayesnegError(f"{STARTS} worker processes in a row died before they were ready")
                self._of_thread.worker = worker = _Worker()
                self._all.append(worker)
            with suppress(BrokenProcessPool):
                worker.start()
                self._lost_starts = 0
                return worker
            self._lost_starts += 1
            self._forget()

    def _forget(self) -> None:
        worker, self._of_thread.worker = self._of_thread.worker, None
        assert worker is not None
        with self._lock:
            if self._closed:
                raise KeyboardInterrupt
            self._all.remove(worker)
        worker.end()

    def end(self) -> None:
        for worker in self._all:
            worker.end()


@contextmanager
def workers() -> Iterator[Workers]:
    """Worker processes that are gone when the block ends, however it ends."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # processes inherit them; what is loaded here does not look again
    found = Workers()
    try:
        yield found
    except BaseException:
        found.close()
        raise
    finally:
        found.end()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Worker:
    """A pool of one process, a pipe for what it reports, and one whose end it does not outlive."""

    def __init__(self) -> None:
        spawn = get_context("spawn")
        self._reports, self._send = spawn.Pipe(duplex=False)
        self._life, self.lifeline = spawn.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(1, spawn, initializer=_begin, initargs=(self._send, self._life))

    def start(self) -> None:
        """Wait until the process is there."""
        with _sigint_blocked():
            self._pool.submit(os.getpid).result()

    def run(self, work: Callable[[ShowEpoch], Done], show: ShowEpoch) -> Done:
        future = self._pool.submit(_do, work)
        future.add_done_callback(lambda _: self._send.send(ENDED))  # after the process' last report
        while (report := self._reports.recv()) != ENDED:
            show(report)
        return future.result()

    def end(self) -> None:
        self._pool.shutdown(wait=True)
        for each in (self._reports, self._send, self._life, self.lifeline):
            each.close()


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """A process started here inherits the mask: the terminal's Ctrl-C reaches the parent alone, which ends it."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_report: Connection  # of this process, where it is a worker


def _begin(send: Connection, life: Connection) -> None:
    """The first thing a worker process does."""
    global _report
    _report = send
    os.environ["NUMBA_NUM_THREADS"] = "1"
    Thread(target=_end_with, args=(life,), daemon=True).start()


def _end_with(life: Connection) -> None:
    """End this process when the other end of ``life`` is closed, as it is when the parent dies."""
    with suppress(EOFError, OSError):
        life.recv()
    os._exit(1)


def _do(work: Callable[[ShowEpoch], Done]) -> Done:
    return work(_show)


def _show(line: dict[str, Any]) -> None:
    """Numbers alone: a short message is written as a whole, even if the process is killed."""
    _report.send({key: value for key, value in line.items() if isinstance(value, int | float)})
