"""Cells of a table or figure on a machine that has torch but cannot read tables (no polars, no pydantic).

    BAYESNEG_DATA=… python -m benchmarks.studies.packed_sweep pack FOLDER table2 --dataset ml-1m --model lightgcn …
    python -m benchmarks.studies.packed_sweep run FOLDER --jobs 6 --records records.jsonl

``pack`` writes cells.jsonl and data.npz to FOLDER; ``run`` needs NumPy, SciPy, numba and torch. What it records are the
lines that ``bayesneg reproduce`` would have: append them to its records.jsonl, or keep them in
results/reproduction/, from which docs/explanation/reproduction.md is made. An interrupted run resumes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bayesneg.experiments.datasets import Source
from bayesneg.reproduction.sweeps.cells import Cell
from bayesneg.reproduction.sweeps.sweep import sweep
from benchmarks.studies.packing import PackedSource, pack

CELLS, ARRAYS = "cells.jsonl", "data.npz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("folder", type=Path)
    packing.add_argument("name")
    for option in ("dataset", "model", "samplers", "view"):
        packing.add_argument(f"--{option}", type=_names, default=[])
    for option in ("seeds", "epochs"):
        packing.add_argument(f"--{option}", type=int)
    running = commands.add_parser("run")
    running.add_argument("folder", type=Path)
    running.add_argument("--jobs", type=int, default=1)
    running.add_argument("--records", type=Path, default=Path("records.jsonl"))
    given = parser.parse_args()
    _pack(given) if given.command == "pack" else _run(given)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _pack(given: argparse.Namespace) -> None:
    from bayesneg.reproduction.reproduce import recipe_of

    recipe = recipe_of(given.name).narrowed(
        datasets=given.dataset,
        models=given.model,
        samplers=given.samplers,
        views=given.view,
        seeds=given.seeds,
        epochs=given.epochs,
    )
    source = Source()
    cells = recipe.cells(source.fingerprint)
    given.folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(cell.to_dict()) + "\n" for cell in cells)
    (given.folder / CELLS).write_text(lines, encoding="utf-8")
    pack(source, recipe.datasets, given.folder / ARRAYS)
    print(f"{len(cells)} cells in {given.folder}")


def _run(given: argparse.Namespace) -> None:
    lines = (given.folder / CELLS).read_text(encoding="utf-8").splitlines()
    cells = [Cell.from_dict(json.loads(line)) for line in lines]
    failures = sweep(cells, given.records, PackedSource(arrays=given.folder / ARRAYS), jobs=given.jobs)
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
