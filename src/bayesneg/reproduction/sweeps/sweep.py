"""Many cells in worker processes: finished ones are kept in a ledger as they come, failed ones are reported."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from bayesneg.checks import whole
from bayesneg.errors import BayesnegError
from bayesneg.experiments.datasets import Source
from bayesneg.experiments.runner import run_all
from bayesneg.experiments.workers import workers
from bayesneg.progress import ShowEpoch, SweepProgress, bars, metrics_text
from bayesneg.reproduction.sweeps.cells import Cell, run_cell
from bayesneg.runs import ledger
from bayesneg.runs.record import RunRecord


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
    """Run every cell that the ledger at ``path`` does not hold yet.

    Args:
        cells: Run in this order; of two with the same key one is run.
        path: The ledger; its folder is made if it is missing.
        source: Where the splits come from; worker processes get a copy.
        jobs: Worker processes. Results do not depend on it.
        resume: Keep finished cells; otherwise every cell is run again, and its later line counts.
        progress: Show one bar over all cells, with the time left.

    Returns:
        The cells that could not be finished; nothing is raised for them.
    """
    whole("jobs", jobs)
    path.parent.mkdir(parents=True, exist_ok=True)
    known = ledger.read(path) if resume else {}
    todo = [cell for cell in {cell.key: cell for cell in cells}.values() if cell.key not in known]
    if not todo:
        return []
    failures: list[Failure] = []
    kinds, epochs = [f"{cell.dataset} {cell.model} {cell.label}" for cell in todo], [cell.epochs for cell in todo]
    with ledger.Writer(path) as writer, workers() as crew, bars(progress, {"sweep": sum(epochs)}) as update:
        state = SweepProgress(kinds, epochs, jobs, update)

        def one(position: int, show: ShowEpoch) -> None:
            cell = todo[position]
            since[position] = time.monotonic()
            try:
                found = crew.run(partial(_outcome, cell, source), show)
            except BayesnegError as error:
                found = str(error)
            if isinstance(found, str):
                failures.append(Failure(cell, found))
            else:
                writer.add(ledger.Entry(cell.key, cell.to_dict(), found))
            state.finish(position, failed=isinstance(found, str))

        def show(position: int, line: dict[str, Any]) -> None:
            now = time.monotonic()
            text = f"{todo[position].label} {metrics_text(line)}"
            state.advance(position, line["epoch"], now - since[position], text)
            since[position] = now

        since = [0.0] * len(todo)
        tasks = [partial(one, position) for position in range(len(todo))]
        run_all(tasks, jobs=min(jobs, len(todo)), show=show, on_stop=crew.close)
    return failures


def _outcome(cell: Cell, source: Source, show: ShowEpoch) -> RunRecord | str:
    """In a worker process: the record of a cell, or why there is none."""
    try:
        return run_cell(cell, _of_process(source).split(cell.dataset, cell.view), progress=show)
    except BayesnegError as error:
        return str(error)
    except Exception as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"


@lru_cache(maxsize=1)
def _of_process(source: Source) -> Source:
    """The first of equal sources, which keeps the splits it has read."""
    return source
