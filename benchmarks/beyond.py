"""BNS with a learned prior and a consistent likelihood against EASE and the paper's rows, on settings chosen blindly.

    BAYESNEG_DATA=… python benchmarks/beyond.py search ml-100k mf [--jobs 2]
    BAYESNEG_DATA=… python benchmarks/beyond.py final  ml-100k mf [--jobs 2] [--seeds 10]
    BAYESNEG_DATA=… python benchmarks/beyond.py curve  ml-100k mf [--jobs 2] [--seeds 3]
    python benchmarks/beyond.py pack FOLDER search ml-1m lightgcn       (for sweep.py run on another machine)

``search`` trains every setting of the grid on nine tenths of the training part and judges it on the tenth: the test
labels are not in that split. ``final`` takes the setting and the epoch that were best there, trains on the whole
training part with ten seeds and looks at the test labels once; beside it stand the baselines, EASE with the l2 that was
best there. ``curve`` trains with more and more candidates, by the chosen prior and by the paper's. Records go to
results/beyond/; a part that is interrupted goes on where it was. beyond_page.py writes docs/beyond.md from them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

from bayesneg.experiments.cells import Cell, View
from bayesneg.experiments.datasets import Source, pack
from bayesneg.experiments.sweep import sweep
from bayesneg.runs import ledger
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord

RESULTS: Final = Path(__file__).parent / "results" / "beyond"
MAIN: Final = "ndcg@20"
EPOCHS: Final = {"mf": 100, "lightgcn": 45}
EVERY: Final = 5  # epochs between two looks at validation
MODELS: Final[Mapping[tuple[str, str], dict[str, Any]]] = {("ml-1m", "lightgcn"): {"batch_size": 1024}}
CDF: Final = {"ml-1m": {"cdf": "refreshed"}}  # on MF; exact F takes four times as long there
L2: Final = (100.0, 200.0, 400.0, 800.0, 1600.0)
CURVE: Final = (2, 5, 10, 20, 50)  # candidates
LEARNED: Final = {"prior": "learned"}

Setting = tuple[dict[str, Any], dict[str, Any]]  # of the sampler, of the model


def grid() -> list[Setting]:
    """What is tried: every m with every λ and the consistent likelihood, then one thing changed at a time."""
    base = {**LEARNED, "likelihood": "mixture"}
    found: list[Setting] = [
        ({**base, "candidates": m, "weight": weight}, {}) for m, weight in product((5, 10, 20), (5.0, 10.0, 20.0))
    ]
    middle = {**base, "candidates": 10, "weight": 10.0}
    found += [({**middle, **other}, {}) for other in ({"likelihood": "paper"}, {"likelihood": "empirical"})]
    found += [({**middle, **other}, {}) for other in ({"hidden": 0.25}, {"strength": 0.5}, {"strength": 2.0})]
    found += [({**middle, "l2": l2}, {}) for l2 in (200.0, 800.0)]
    found += [(dict(middle), {"dim": dim}) for dim in (64, 128)]
    return found


def cells_of(source: Source, dataset: str, model: str, view: View, settings: Iterable[tuple[str, Setting, int]],
             seeds: int) -> list[Cell]:  # fmt: skip
    return [
        Cell(
            dataset=dataset,
            fingerprint=source.fingerprint(dataset, view),
            view=view,
            model=model,
            sampler="bns",
            label=label,
            epochs=epochs,
            seed=seed,
            evaluate_every=EVERY if view == "blind" else epochs,
            model_settings={**MODELS.get((dataset, model), {}), **of_model},
            sampler_settings={**(CDF.get(dataset, {}) if model == "mf" else {}), **of_sampler},
        )
        for label, (of_sampler, of_model), epochs in settings
        for seed in range(seeds)
    ]


def baselines_of(source: Source, dataset: str, view: View, l2: Sequence[float]) -> list[Cell]:
    kinds: list[tuple[str, dict[str, Any]]] = [("ease", {"l2": value}) for value in l2]
    if view != "blind":
        kinds += [("item-knn", {}), ("popularity", {})]
    return [
        Cell(dataset, source.fingerprint(dataset, view), view, name, "", name, 1, 0, model_settings=settings)
        for name, settings in kinds
    ]


def written(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items()) or "as it is"


def searched(source: Source, dataset: str, model: str) -> list[Cell]:
    tried = [(written(both[0] | both[1]), both, EPOCHS[model]) for both in grid()]
    tried.append(("the paper's", ({}, {}), EPOCHS[model]))
    return cells_of(source, dataset, model, "blind", tried, seeds=1) + baselines_of(source, dataset, "blind", L2)


def best_epoch(record: RunRecord) -> tuple[float, int]:
    """The highest number on validation and the first epoch that has it."""
    curve = {int(line["epoch"]): float(line[MAIN]) for line in record.epochs if MAIN in line}
    epoch = max(curve, key=lambda at: (curve[at], -at))
    return curve[epoch], epoch


def chosen(found: Iterable[Entry]) -> tuple[Setting, int, float]:
    """The setting, the epoch and EASE's l2 that were best on validation."""
    entries = [entry for entry in found if entry.cell["view"] == "blind"]
    trained = [entry for entry in entries if entry.cell["sampler"]]
    solved = [entry for entry in entries if entry.cell["model"] == "ease"]
    if not trained or not solved:
        raise SystemExit("nothing has been searched yet; run `beyond.py search` first")
    best = max(trained, key=lambda entry: best_epoch(entry.record)[0])
    ease = max(solved, key=lambda entry: entry.record.final[MAIN] or 0.0)
    setting = (dict(best.cell["sampler_settings"]), dict(best.cell["model_settings"]))
    return setting, best_epoch(best.record)[1], float(ease.cell["model_settings"]["l2"])


def final(source: Source, dataset: str, model: str, found: Iterable[Entry], seeds: int) -> list[Cell]:
    setting, epoch, l2 = chosen(found)
    rows = [("chosen on validation", setting, epoch), ("the paper's BNS", ({}, {}), EPOCHS[model])]
    return baselines_of(source, dataset, "last", (l2,)) + cells_of(source, dataset, model, "last", rows, seeds)


def curve(source: Source, dataset: str, model: str, found: Iterable[Entry], seeds: int) -> list[Cell]:
    (of_sampler, of_model), epoch, _ = chosen(found)
    rows = [
        (f"{name}, m = {m}", ({**settings, "candidates": m}, of_model), epoch)
        for name, settings in (("learned prior", of_sampler), ("the paper's prior", {"weight": of_sampler["weight"]}))
        for m in CURVE
    ]
    return cells_of(source, dataset, model, "last", rows, seeds)


def records_of(dataset: str, model: str) -> Path:
    return RESULTS / f"{dataset}-{model}.jsonl"


def planned(part: str, source: Source, dataset: str, model: str, seeds: int | None) -> list[Cell]:
    found = list(ledger.read(records_of(dataset, model)).values())
    if part == "search":
        return searched(source, dataset, model)
    if part == "final":
        return final(source, dataset, model, found, seeds or 10)
    return curve(source, dataset, model, found, seeds or 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+", help="[pack FOLDER] PART DATASET MODEL")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int)
    given = parser.parse_args()
    folder = Path(given.words[1]) if given.words[0] == "pack" else None
    part, dataset, model = given.words[-3:]
    if part not in ("search", "final", "curve"):
        raise SystemExit(f"{part} is no part of this; valid: search, final, curve")
    source = Source()
    cells = planned(part, source, dataset, model, given.seeds)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cells.jsonl").write_text("".join(json.dumps(cell.to_dict()) + "\n" for cell in cells))
        pack(source, [dataset], folder / "data.npz")
        return
    failures = sweep(cells, records_of(dataset, model), source, jobs=given.jobs)
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
