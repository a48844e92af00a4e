"""A process that trains cells: ``python -m bayesneg.experiments.worker [--data DIR | --arrays FILE]``.

It reads one cell a line on stdin and answers on stdout, one JSON object a line: ``{"ready": true}`` once,
``{"epoch": …}`` after each epoch, and ``{"done": line of the ledger}`` or ``{"failed": why}`` at the end of a cell. It
ends when stdin does, or when nobody reads its answers any more.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bayesneg.errors import BayesnegError
from bayesneg.experiments.cells import Cell, run_cell
from bayesneg.experiments.datasets import Source
from bayesneg.progress import last_numbers
from bayesneg.runs.ledger import Entry

Answer = Callable[[dict[str, Any]], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--arrays", type=Path)
    given = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else prints must not mix with the answers

    def answer(value: dict[str, Any]) -> None:
        try:
            answers.write(json.dumps(value) + "\n")
            answers.flush()
        except BrokenPipeError:
            os._exit(1)  # nobody is left who could read why

    source = Source(given.data, given.arrays)
    answer({"ready": True})
    for line in sys.stdin:
        _work(Cell.from_dict(json.loads(line)), source, answer)


def _work(cell: Cell, source: Source, answer: Answer) -> None:
    def show(line: dict[str, Any]) -> None:
        answer({"epoch": line["epoch"], "last": last_numbers(line)})

    try:
        record = run_cell(cell, source.split(cell.dataset, cell.view), progress=show)
    except BayesnegError as error:
        answer({"failed": str(error)})
    except Exception as error:
        traceback.print_exc()
        answer({"failed": f"{type(error).__name__}: {error}"})
    else:
        answer({"done": Entry(cell.key, cell.to_dict(), record).to_line()})


if __name__ == "__main__":
    main()
