"""BNS with a learned prior and a consistent likelihood against EASE and the paper's rows, tuned on validation data.

    BAYESNEG_DATA=… python -m benchmarks.studies.beyond search ml-100k mf [--jobs 2]
    BAYESNEG_DATA=… python -m benchmarks.studies.beyond finalists ml-100k mf [--jobs 2]
    BAYESNEG_DATA=… python -m benchmarks.studies.beyond final  ml-100k mf [--jobs 2] [--seeds 10]
    BAYESNEG_DATA=… python -m benchmarks.studies.beyond curve  ml-100k mf [--jobs 2] [--seeds 3]
    BAYESNEG_DATA=… python -m benchmarks.studies.beyond sizes  ml-100k mf [--jobs 2] [--seeds 3]
    BAYESNEG_DATA=… python -m benchmarks.studies.beyond folds  ml-100k mf [--jobs 2] [--seeds 3]

On a machine that has torch but cannot read tables, with the data packed here:

    BAYESNEG_DATA=… python -m benchmarks.studies.beyond search ml-1m lightgcn --pack data.npz
    python -m benchmarks.studies.beyond search ml-1m lightgcn --arrays data.npz --jobs 6

``search`` trains every setting of the plan on nine tenths of the training part and evaluates it on the tenth; the test
labels are not in that split. ``finalists`` evaluates the best four, and EASE, on other tenths too. ``final`` takes the
best setting and epoch, trains on the whole training part with ten seeds and evaluates on the test labels, beside the
baselines: ALS with its best setting of the search (left out without the library ``implicit``) and EASE with every l2.
``curve`` varies the number of candidates, for the learned prior and for the paper's. ``sizes`` varies the size of the
training part, beside EASE. Both train the setting that the plan names, else the chosen one. ``folds`` trains the chosen
setting and EASE on other test parts: five folds, three times. Runs are appended to runs/beyond/ and an interrupted part
resumes; ``python -m benchmarks.archive`` adds them to results/beyond/.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from bayesneg.experiments.datasets import Source
from bayesneg.reproduction.sweeps.cells import Cell
from bayesneg.reproduction.sweeps.sweep import sweep
from bayesneg.runs import ledger
from bayesneg.runs.ledger import Entry
from benchmarks import archive, machine
from benchmarks.studies.choosing import Choice, Setting, UnsettledError, best_baseline, chosen, finalists
from benchmarks.studies.packing import PackedSource, pack
from benchmarks.studies.plans import PLANS, Settings, plan_of
from benchmarks.studies.splits import FOLDS, TENTHS, StudySource

RESULTS: Final = machine.RESULTS / "beyond"
RUNS: Final = machine.ROOT / "runs" / "beyond"
SAME_MODEL: Final = "the paper's BNS with that model"
RANDOM_SAME_MODEL: Final = "random negatives (m = 1) with that model"
EVERY: Final = 5  # epochs between two looks at validation
CURVE: Final = (2, 5, 10, 20, 50)  # candidates
DEALS: Final = 3  # of all pairs into test parts
SIZES: Final = (20, 40, 60, 80, 100)  # per cent of the training part


class Training(NamedTuple):
    """A training with any seed."""

    label: str
    dataset: str
    setting: Setting
    epochs: int


def row(label: str, dataset: str, model: str, setting: Setting, epochs: int) -> Training:
    """A row with what its dataset and model ask for."""
    return Training(label, dataset, plan_of(dataset, model).completed(setting), epochs)


def written(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items()) or "as it is"


# ------------------------------------------------------------------------------------------------- what is trained


def searched(dataset: str, model: str) -> list[Training]:
    plan = plan_of(dataset, model)
    settings = [*plan.grid(), ({}, {})]  # the last is the paper's
    return [row(written(one[0] | one[1]), dataset, model, one, plan.epochs) for one in settings]


def final(dataset: str, model: str, choice: Choice) -> list[Training]:
    plan = plan_of(dataset, model)
    beside = [row(label, dataset, model, (sampler, {}), plan.epochs) for label, sampler in plan.beside.items()]
    if choice.setting[1] != dict(plan.of_model):  # how much of it is the model's
        same = {SAME_MODEL: {}, RANDOM_SAME_MODEL: {"candidates": 1}}
        beside += [row(label, dataset, model, (own, choice.setting[1]), choice.epoch) for label, own in same.items()]
    return [row("chosen on validation", dataset, model, choice.setting, choice.epoch), *beside]


def studied(dataset: str, model: str, choice: Choice | None) -> tuple[Setting, int] | None:
    """What curve and sizes train, and for how long; None where the plan names nothing and nothing is chosen yet."""
    named = plan_of(dataset, model).studied
    return named if named or choice is None else (choice.setting, choice.epoch)


def curve(dataset: str, model: str, setting: Setting, epochs: int) -> dict[str, dict[int, Training]]:
    """For each prior a row with every number of candidates."""
    of_sampler, of_model = setting
    priors = {"learned prior": of_sampler, "the paper's prior": {"weight": of_sampler["weight"]}}
    return {
        name: {
            m: row(f"{name}, m = {m}", dataset, model, ({**settings, "candidates": m}, of_model), epochs) for m in CURVE
        }
        for name, settings in priors.items()
    }


def sizes(dataset: str, model: str, setting: Setting, epochs: int) -> dict[int, Training]:
    """A setting with a share of the training part."""
    return {
        percent: row(f"{percent}% of the data", f"{dataset}@{percent}", model, setting, epochs) for percent in SIZES
    }


def folds(dataset: str, model: str, choice: Choice) -> list[list[Training]]:
    """What is chosen, with other test parts, deal by deal."""
    named = {deal: range(deal * FOLDS + 1, (deal + 1) * FOLDS + 1) for deal in range(DEALS)}
    return [
        [row(f"part {one}", f"{dataset}#{one}", model, choice.setting, choice.epoch) for one in numbers]
        for numbers in named.values()
    ]


# ----------------------------------------------------------------------------------------------------------- cells


def cells_of(source: Source, model: str, view: str, rows: Iterable[Training], seeds: int) -> list[Cell]:
    return [
        Cell(
            dataset=one.dataset,
            fingerprint=source.fingerprint(one.dataset, view),
            view=view,
            model=model,
            sampler="bns",
            label=one.label,
            epochs=one.epochs,
            seed=seed,
            evaluate_every=EVERY if view in TENTHS else one.epochs,
            model_settings=one.setting[1],
            sampler_settings=one.setting[0],
        )
        for one in rows
        for seed in range(seeds)
    ]


def solved(source: Source, dataset: str, model: str, view: str, *others: str) -> list[Cell]:
    """EASE with every l2 of the model's plan, and other baselines as they are."""
    ease = baseline(source, dataset, view, "ease", *plan_of(dataset, model).solved())
    return ease + [cell for name in others for cell in baseline(source, dataset, view, name, {})]


def baseline(source: Source, dataset: str, view: str, name: str, *settings: Settings) -> list[Cell]:
    """One cell for each of its settings."""
    fingerprint = source.fingerprint(dataset, view)
    return [Cell(dataset, fingerprint, view, name, "", name, 1, 0, model_settings=one) for one in settings]


def planned(part: str, source: Source, dataset: str, model: str, seeds: int | None) -> list[Cell]:
    """The cells of a part; an error where an earlier part is missing."""
    plan = plan_of(dataset, model)
    space = plan.space()
    if part == "search":
        als = [cell for view in space.first for cell in baseline(source, dataset, view, "als", *plan.als)]
        return _on(space.first, source, model, searched(dataset, model), dataset) + als
    found = list(finished(dataset, model).values())
    if part == "finalists":
        best = [one.setting for one in finalists(found, space)]
        rows = [row(written(one[0] | one[1]), dataset, model, one, space.epochs) for one in best]
        return _on(space.all, source, model, rows, dataset)
    if part == "final":
        judged = cells_of(source, model, "last", final(dataset, model, chosen(found, space)), seeds or 10)
        factors = best_baseline(found, "als", plan.als, space)
        als = baseline(source, dataset, "last", "als", factors) if factors else []
        return solved(source, dataset, model, "last", "item-knn", "popularity") + als + judged
    if part == "folds":
        choice = chosen(found, space)
        own = [one for deal in folds(dataset, model, choice) for one in deal]
        ease = [cell for one in own for cell in solved(source, one.dataset, model, "last")]
        beside = [cell for cell in ease if cell.model_settings["l2"] == choice.l2]
        return beside + cells_of(source, model, "last", own, seeds or 3)
    setting, epochs = studied(dataset, model, None) or chosen(found, space)[:2]
    if part == "curve":
        rows = [one for own in curve(dataset, model, setting, epochs).values() for one in own.values()]
        return cells_of(source, model, "last", rows, seeds or 3)
    thinned = sizes(dataset, model, setting, epochs).values()
    baselines = [cell for one in thinned for cell in solved(source, one.dataset, model, "last")]
    return baselines + cells_of(source, model, "last", thinned, seeds or 3)


def _on(views: Iterable[str], source: Source, model: str, rows: Sequence[Training], dataset: str) -> list[Cell]:
    """Rows, and EASE, on several tenths."""
    return [
        cell
        for view in views
        for cell in (*solved(source, dataset, model, view), *cells_of(source, model, view, rows, 1))
    ]


def finished(dataset: str, model: str) -> dict[str, Entry]:
    """What was run, archived or not."""
    return {**archived(dataset, model), **ledger.read(ledger_of(dataset, model))}


def archived(dataset: str, model: str) -> dict[str, Entry]:
    """The model's runs, and those of the baselines that the studies of both models have in common."""
    own = RESULTS / f"{dataset}-{model}.parquet"
    return archive.read(own, archive.shared_of(own))


def ledger_of(dataset: str, model: str) -> Path:
    return RUNS / f"{dataset}-{model}.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("search", "finalists", "final", "curve", "sizes", "folds"))
    parser.add_argument("dataset", choices=sorted({dataset for dataset, _ in PLANS}))
    parser.add_argument("model", choices=sorted({model for _, model in PLANS}))
    parser.add_argument("--seeds", type=int, help="of final (10), curve, sizes and folds (3)")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time")
    packed = parser.add_mutually_exclusive_group()
    packed.add_argument("--pack", type=Path, metavar="FILE", help="run no part; write the data there for --arrays")
    packed.add_argument("--arrays", type=Path, metavar="FILE", help="read the data from there")
    given = parser.parse_args()
    if given.seeds is not None and given.part in ("search", "finalists"):
        parser.error(f"{given.part} takes one seed on each tenth; drop --seeds")
    plan_of(given.dataset, given.model)
    source = StudySource() if given.arrays is None else PackedSource(arrays=given.arrays)
    if given.pack is not None:
        pack(source, [given.dataset], given.pack)
        return
    try:
        cells = planned(given.part, source, given.dataset, given.model, given.seeds)
    except UnsettledError as reason:
        raise SystemExit(str(reason)) from None
    known, path = finished(given.dataset, given.model), ledger_of(given.dataset, given.model)
    failures = sweep([cell for cell in cells if cell.key not in known], path, source, jobs=given.jobs)
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
