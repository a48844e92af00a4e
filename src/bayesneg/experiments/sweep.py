"""Many cells in processes of their own: finished ones are kept as they come, a lost worker costs its cell a second try.

Only this process writes the ledger. Workers are fresh interpreters that compute with one thread each, so that the
numbers and the load of the machine do not depend on how many there are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, Final

from bayesneg.errors import BayesnegError, InputError
from bayesneg.experiments.cells import Cell
from bayesneg.experiments.datasets import Source
from bayesneg.progress import sweep_bar
from bayesneg.runs import ledger

ONE_THREAD: Final = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
        "POLARS_MAX_THREADS",
    ),
    "1",
)
TRIES: Final = 2  # of a cell whose worker was lost
STARTS: Final = 4  # of workers in a row that were lost before they were ready
PATIENCE: Final = 5.0  # seconds a worker has to end when asked to


@dataclass(frozen=True)
class Failure:
    """A cell that could not be finished, and why."""

    cell: Cell
    why: str

    def __str__(self) -> str:
        return f"{self.cell}: {self.why}"


def sweep(
    cells: Sequence[Cell],
    path: Path,
    source: Source,
    *,
    jobs: int = 1,
    resume: bool = True,
    progress: bool = True,
) -> list[Failure]:
    """Run every cell that the ledger at ``path`` does not hold yet; what could not be run is returned, not raised.

    Args:
        cells: run in this order; of two with the same key one is run.
        path: the ledger; the folder is made if it is missing.
        source: where the splits come from.
        jobs: processes at a time; never changes a number but the seconds.
        resume: keep finished cells; otherwise every cell is run again, and its later line counts.
        progress: one bar over all cells, with the time left.
    """
    if jobs < 1:
        raise InputError(f"jobs must be at least 1, got {jobs}")
    path.parent.mkdir(parents=True, exist_ok=True)
    known = ledger.read(path) if resume else {}
    todo = [cell for cell in {cell.key: cell for cell in cells}.values() if cell.key not in known]
    if not todo:
        return []
    kinds: Counter[str] = Counter()
    for cell in todo:
        kinds[_kind(cell)] += cell.epochs
    with sweep_bar(progress, kinds, jobs=jobs, n_cells=len(todo)) as bar, _workers(source) as crew:
        return _Sweep(deque(todo), path, crew, bar).run(min(jobs, len(todo)))


def _kind(cell: Cell) -> str:
    """Cells whose epochs take about as long."""
    return f"{cell.dataset} {cell.model} {cell.label}"


@dataclass
class _Sweep:
    """Where a sweep stands."""

    todo: deque[Cell]
    path: Path
    crew: _Crew
    bar: Any
    tries: Counter[str] = field(default_factory=Counter)
    lost_starts: list[int] = field(default_factory=list)  # exit codes since a worker was last ready
    has_begun: bool = False  # a worker was ready once
    failures: list[Failure] = field(default_factory=list)

    def run(self, jobs: int) -> list[Failure]:
        for _ in range(jobs):
            self.crew.hire()
        while self.crew.workers:
            worker, said = self.crew.answers.get()
            if said is None:
                self._lost(worker)
            elif "epoch" in said and worker.cell is not None:
                self.bar.advance(_kind(worker.cell), worker.lap(), f"{worker.cell.label} {said['last']}")
            else:
                self._ended(worker, said)
        if self.todo:
            self._abandon()
        return self.failures

    def _abandon(self) -> None:
        """No worker starts any more: what is left is reported, or, if none ever did, what is wrong is raised."""
        n_lost, code = len(self.lost_starts), self.lost_starts[-1]
        why = f"{n_lost} worker processes in a row ended before they were ready (exit code {code})"
        if not self.has_begun:
            raise BayesnegError(why)
        self.failures += [Failure(cell, why) for cell in self.todo]
        for _ in self.todo:
            self.bar.finish(failed=True)

    def _ended(self, worker: _Worker, said: dict[str, Any]) -> None:
        """The worker is free: keep what it answered and give it the next cell, or let it go."""
        if "ready" in said:
            self.lost_starts, self.has_begun = [], True
        elif "done" in said:
            ledger.append(self.path, said["done"])
            self.bar.finish(failed=False)
        elif "failed" in said and worker.cell is not None:
            self.failures.append(Failure(worker.cell, said["failed"]))
            self.bar.finish(failed=True)
        if self.todo:
            worker.give(self.todo.popleft())
        else:
            self.crew.dismiss(worker)

    def _lost(self, worker: _Worker) -> None:
        """A worker ended: if it was killed, another takes its place, and its cell is tried once more."""
        self.crew.forget(worker)
        if worker.cell is not None:
            self._take_back(worker, worker.cell)
        elif worker.ready:
            return  # there was nothing more to do for it
        else:
            self.lost_starts.append(worker.process.returncode)
        if self.todo and len(self.lost_starts) < STARTS:
            self.crew.hire()

    def _take_back(self, worker: _Worker, cell: Cell) -> None:
        """The cell goes back to the head of the queue, once."""
        self.tries[cell.key] += 1
        self.bar.take_back(_kind(cell), worker.n_epochs)
        if self.tries[cell.key] < TRIES:
            self.todo.appendleft(cell)
        else:
            why = f"its worker was lost {TRIES} times (exit code {worker.process.returncode}); is memory short?"
            self.failures.append(Failure(cell, why))
            self.bar.finish(failed=True)


@dataclass(eq=False)
class _Worker:
    """One process, the cell it is at, and how far it is."""

    process: subprocess.Popen[str]
    ready: bool = False
    cell: Cell | None = None
    n_epochs: int = 0
    since: float = 0.0

    def give(self, cell: Cell) -> None:
        self.cell, self.n_epochs, self.since = cell, 0, time.monotonic()
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it is gone already; its silence will say so
            self.process.stdin.write(json.dumps(cell.to_dict()) + "\n")
            self.process.stdin.flush()

    def hang_up(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def lap(self) -> float:
        """Seconds since the last epoch."""
        now = time.monotonic()
        taken, self.since = now - self.since, now
        self.n_epochs += 1
        return taken


@dataclass
class _Crew:
    """The workers, and everything they say in one queue; None is what a worker says last."""

    source: Source
    workers: list[_Worker] = field(default_factory=list)
    answers: Queue[tuple[_Worker, dict[str, Any] | None]] = field(default_factory=Queue)

    def hire(self) -> None:
        where = {"--data": self.source.data_dir, "--arrays": self.source.arrays}
        options = [part for name, path in where.items() if path is not None for part in (name, str(path))]
        process = subprocess.Popen(
            [sys.executable, "-m", "bayesneg.experiments.worker", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, **ONE_THREAD},
            start_new_session=True,  # a terminal's Ctrl-C is for this process, which then stops its workers
        )
        worker = _Worker(process)
        self.workers.append(worker)
        Thread(target=self._listen, args=(worker,), daemon=True).start()

    def _listen(self, worker: _Worker) -> None:
        assert worker.process.stdout is not None
        with worker.process.stdout as lines:
            for line in lines:
                with suppress(ValueError):  # killed in the middle of a line
                    said = json.loads(line)
                    worker.ready = True
                    self.answers.put((worker, said))
        worker.process.wait()
        self.answers.put((worker, None))

    def dismiss(self, worker: _Worker) -> None:
        """It ends by itself when there is nothing more to read."""
        worker.cell = None
        worker.hang_up()

    def forget(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.hang_up()

    def stop(self) -> None:
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.hang_up()
            try:
                worker.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                worker.process.kill()


@contextmanager
def _workers(source: Source) -> Iterator[_Crew]:
    """A crew that is gone when the sweep ends, however it ends."""
    crew = _Crew(source)
    try:
        yield crew
    finally:
        crew.stop()
