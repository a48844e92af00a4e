"""BNS with a learned prior and a consistent likelihood against EASE and the paper's rows, on settings chosen blindly.

    BAYESNEG_DATA=… python benchmarks/beyond.py search ml-100k mf [--jobs 2]
    BAYESNEG_DATA=… python benchmarks/beyond.py finalists ml-100k mf [--jobs 2]
    BAYESNEG_DATA=… python benchmarks/beyond.py final  ml-100k mf [--jobs 2] [--seeds 10]
    BAYESNEG_DATA=… python benchmarks/beyond.py curve  ml-100k mf [--jobs 2] [--seeds 3]
    BAYESNEG_DATA=… python benchmarks/beyond.py sizes  ml-100k mf [--jobs 2] [--seeds 3]
    python benchmarks/beyond.py pack FOLDER search ml-1m lightgcn       (for sweep.py run on another machine)

``search`` trains every setting of the grid on nine tenths of the training part and judges it on the tenth: the test
labels are not in that split. ``finalists`` trains the best four there, and EASE, on two other tenths as well. ``final``
takes the setting and the epoch that were best there, trains on the whole training part with ten seeds and looks at the
test labels; beside it stand the baselines, EASE with every l2, so that it can be compared with the one chosen on
validation and with the one that is best in hindsight. ``curve`` trains with more and more candidates, by the chosen
prior and by the paper's. ``sizes`` trains with less and less data, beside EASE. Records go to results/beyond/; a part
that is interrupted goes on where it was. beyond_page.py writes docs/beyond.md from them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from bayesneg.experiments.cells import Cell, View
from bayesneg.experiments.datasets import TENTHS, Source, pack
from bayesneg.experiments.sweep import sweep
from bayesneg.runs import ledger
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord

PARTS: Final = ("search", "finalists", "final", "curve", "sizes")
RESULTS: Final = Path(__file__).parent / "results" / "beyond"
MAIN: Final = "ndcg@20"
EPOCHS: Final = {"mf": 100, "lightgcn": 45}
EVERY: Final = 5  # epochs between two looks at validation
MODELS: Final[Mapping[tuple[str, str], dict[str, Any]]] = {("ml-1m", "lightgcn"): {"batch_size": 1024}}
CDF: Final = {"ml-1m": {"cdf": "refreshed"}}  # on MF; exact F takes four times as long there
L2: Final = (100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0)
CURVE: Final = (2, 5, 10, 20, 50)  # candidates
SIZES: Final = (20, 40, 60, 80, 100)  # per cent of the training part
LEARNED: Final = {"prior": "learned"}
OWN: Final = "chosen on validation"  # labels of final runs and of curves
SIZED: Final = "chosen on validation, with less data"
PRIORS: Final = ("learned prior", "the paper's prior")
FINALISTS: Final = 4  # settings that are tried on the other tenths too
RINGS: Final[Mapping[str, list[dict[str, Any]]]] = {
    "mf": [{"dim": 64}, {"dim": 128}]
    + [
        {"dim": dim, "learning_rate": 0.02, "regularization": penalty, "init_scale": 0.1}
        for dim, penalty in product((64, 128), (0.01, 0.02, 0.03))
    ],
    "lightgcn": [{"dim": 64}, {"regularization": 5e-6}, {"regularization": 2e-5}],
}

Setting = tuple[dict[str, Any], dict[str, Any]]  # of the sampler, of the model


def grid(dataset: str, model: str) -> list[Setting]:
    """What is tried: samplers with the model's own settings, then the middle one with other settings of the model.

    On the smallest study every m is tried with every λ, and then one thing changed at a time; elsewhere the middle.
    """
    base = {**LEARNED, "likelihood": "mixture"}
    middle = {**base, "candidates": 10, "weight": 10.0}
    found: list[Setting] = []
    if (dataset, model) == ("ml-100k", "mf"):
        found += [({**base, "candidates": m, "weight": w}, {}) for m, w in product((5, 10, 20), (5.0, 10.0, 20.0))]
        others: tuple[dict[str, Any], ...] = ({"hidden": 0.25}, {"strength": 0.5}, {"strength": 2.0})
        found += [({**middle, **other}, {}) for other in (*others, {"l2": 200.0}, {"l2": 800.0})]
        found += [({**middle, "likelihood": "empirical"}, {})]
    else:
        found += [(dict(middle), {}), ({**middle, "candidates": 20}, {})]
    found += [({**middle, "likelihood": "paper"}, {})]
    return found + [(dict(middle), ring) for ring in RINGS[model]]


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
            evaluate_every=EVERY if view in TENTHS else epochs,
            model_settings={**MODELS.get((dataset, model), {}), **of_model},
            sampler_settings={**(CDF.get(dataset, {}) if model == "mf" else {}), **of_sampler},
        )
        for label, (of_sampler, of_model), epochs in settings
        for seed in range(seeds)
    ]


def baselines_of(source: Source, dataset: str, view: View, l2: Sequence[float]) -> list[Cell]:
    kinds: list[tuple[str, dict[str, Any]]] = [("ease", {"l2": value}) for value in l2]
    if view not in TENTHS:
        kinds += [("item-knn", {}), ("popularity", {})]
    return [
        Cell(dataset, source.fingerprint(dataset, view), view, name, "", name, 1, 0, model_settings=settings)
        for name, settings in kinds
    ]


def written(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items()) or "as it is"


def searched(source: Source, dataset: str, model: str) -> list[Cell]:
    rows = [(written(both[0] | both[1]), both, EPOCHS[model]) for both in grid(dataset, model)]
    rows.append(("the paper's", ({}, {}), EPOCHS[model]))
    return cells_of(source, dataset, model, "blind", rows, seeds=1) + baselines_of(source, dataset, "blind", L2)


def finalists(source: Source, dataset: str, model: str, found: Iterable[Entry]) -> list[Cell]:
    """The best settings of the grid on other tenths: on one alone they cannot be told apart. So is EASE."""
    best = sorted(tried(found), key=lambda one: -best_epoch({"blind": one[1]["blind"][:1]})[0])[:FINALISTS]
    rows = [(written(setting[0] | setting[1]), setting, EPOCHS[model]) for setting, _ in best]
    cells = [cell for view in TENTHS for cell in cells_of(source, dataset, model, view, rows, seeds=1)]
    return [*cells, *(cell for view in TENTHS for cell in baselines_of(source, dataset, view, L2))]


Runs = dict[str, list[RunRecord]]  # tenth → runs judged on it, the first seed first


def tried(found: Iterable[Entry], *, kind: str = "") -> list[tuple[Setting, Runs]]:
    """Every setting that was judged on validation; of a baseline, where ``kind`` names one."""
    by_setting: dict[str, tuple[Setting, Runs]] = {}
    for entry in sorted(found, key=lambda entry: entry.cell["seed"]):
        own = entry.cell["model"] == kind if kind else bool(entry.cell["sampler"])
        if entry.cell["view"] in TENTHS and own:
            runs = by_setting.setdefault(json.dumps(setting_of(entry), sort_keys=True), (setting_of(entry), {}))[1]
            runs.setdefault(entry.cell["view"], []).append(entry.record)
    return list(by_setting.values())


def setting_of(entry: Entry) -> Setting:
    return dict(entry.cell["sampler_settings"]), dict(entry.cell["model_settings"])


def best_epoch(runs: Runs) -> tuple[float, int]:
    """The highest mean over the tenths (each the mean of its runs), and the first epoch that has it."""
    tenths = [[_curve(record) for record in records] for records in runs.values()]
    epochs = tenths[0][0]
    mean = {at: fmean(fmean(curve[at] for curve in curves) for curves in tenths) for at in epochs}
    epoch = max(mean, key=lambda at: (mean[at], -at))
    return mean[epoch], epoch


def _curve(record: RunRecord) -> dict[int, float]:
    return {int(line["epoch"]): float(line[MAIN]) for line in record.epochs if MAIN in line}


def best_of(settings: Sequence[tuple[Setting, Runs]]) -> tuple[Setting, Runs]:
    """The best on validation among those judged on the most tenths; the first of equals."""
    most = max(len(runs) for _, runs in settings)
    return max((one for one in settings if len(one[1]) == most), key=lambda one: best_epoch(one[1])[0])


def chosen(found: Sequence[Entry]) -> tuple[Setting, int, float]:
    """The setting, the epoch and EASE's l2 that were best on validation."""
    trained, solved = tried(found), tried(found, kind="ease")
    if not trained or not solved:
        raise SystemExit("nothing has been searched yet; run `beyond.py search` first")
    setting, runs = best_of(trained)
    (_, ease), _ = best_of(solved)
    return setting, best_epoch(runs)[1], float(ease["l2"])


def final(source: Source, dataset: str, model: str, found: Sequence[Entry], seeds: int) -> list[Cell]:
    setting, epoch, _ = chosen(found)
    rows = [(OWN, setting, epoch), ("the paper's BNS", ({}, {}), EPOCHS[model])]
    return baselines_of(source, dataset, "last", L2) + cells_of(source, dataset, model, "last", rows, seeds)


def curve(source: Source, dataset: str, model: str, found: Sequence[Entry], seeds: int) -> list[Cell]:
    (of_sampler, of_model), epoch, _ = chosen(found)
    rows = [
        (f"{name}, m = {m}", ({**settings, "candidates": m}, of_model), epoch)
        for name, settings in zip(PRIORS, (of_sampler, {"weight": of_sampler["weight"]}), strict=True)
        for m in CURVE
    ]
    return cells_of(source, dataset, model, "last", rows, seeds)


def sizes(source: Source, dataset: str, model: str, found: Sequence[Entry], seeds: int) -> list[Cell]:
    """The chosen setting and EASE with less and less training data, judged on the same test part."""
    setting, epoch, _ = chosen(found)
    names = [f"{dataset}@{percent}" for percent in SIZES]
    rows = [cells_of(source, name, model, "last", [(SIZED, setting, epoch)], seeds) for name in names]
    solved = [baselines_of(source, name, "last", L2) for name in names]
    return [cell for cells in (*solved, *rows) for cell in cells if cell.model in (model, "ease")]


def records_of(dataset: str, model: str) -> Path:
    return RESULTS / f"{dataset}-{model}.jsonl"


def planned(part: str, source: Source, dataset: str, model: str, seeds: int | None) -> list[Cell]:
    found = list(ledger.read(records_of(dataset, model)).values())
    if part == "search":
        return searched(source, dataset, model)
    if part == "finalists":
        return finalists(source, dataset, model, found)
    if part == "final":
        return final(source, dataset, model, found, seeds or 10)
    made = curve if part == "curve" else sizes
    return made(source, dataset, model, found, seeds or 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+", help="[pack FOLDER] PART DATASET MODEL")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int)
    given = parser.parse_args()
    folder = Path(given.words[1]) if given.words[0] == "pack" else None
    part, dataset, model = given.words[-3:]
    if part not in PARTS:
        raise SystemExit(f"{part} is no part of this; valid: {', '.join(PARTS)}")
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
