"""BNS with a learned prior and a consistent likelihood against EASE and the paper's rows, on settings chosen blindly.

    BAYESNEG_DATA=… python benchmarks/beyond.py search ml-100k mf [--jobs 2]
    BAYESNEG_DATA=… python benchmarks/beyond.py finalists ml-100k mf [--jobs 2]
    BAYESNEG_DATA=… python benchmarks/beyond.py final  ml-100k mf [--jobs 2] [--seeds 10]
    BAYESNEG_DATA=… python benchmarks/beyond.py curve  ml-100k mf [--jobs 2] [--seeds 3]
    BAYESNEG_DATA=… python benchmarks/beyond.py sizes  ml-100k mf [--jobs 2] [--seeds 3]

On a machine that has torch but cannot read tables, with the data packed here:

    BAYESNEG_DATA=… python benchmarks/beyond.py search ml-1m lightgcn --pack data.npz
    python benchmarks/beyond.py search ml-1m lightgcn --arrays data.npz --jobs 6

``search`` trains every setting of the plan on nine tenths of the training part and judges it on the tenth: the test
labels are not in that split. ``finalists`` trains the best four, and EASE, with other tenths held out as well.
``final`` takes the setting and the epoch that were best there, trains on the whole training part with ten seeds and
looks at the test labels; beside it stand the baselines, EASE with every l2, so that it can be compared with the one
chosen on validation and with the one that is best in hindsight. ``curve`` trains with more and more candidates, by the
chosen prior and by the paper's. ``sizes`` trains with less and less data, beside EASE. Records go to results/beyond/; a
part that is interrupted goes on where it was. beyond_page.py writes docs/beyond.md from them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from bayesneg.experiments.cells import Cell, View
from bayesneg.experiments.datasets import TENTHS, Source, pack
from bayesneg.experiments.sweep import sweep
from bayesneg.runs import ledger
from bayesneg.runs.ledger import Entry
from choosing import Choice, Setting, Tenths, chosen, finalists

RESULTS: Final = Path(__file__).parent / "results" / "beyond"
EVERY: Final = 5  # epochs between two looks at validation
L2: Final = (100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0)
CURVE: Final = (2, 5, 10, 20, 50)  # candidates
SIZES: Final = (20, 40, 60, 80, 100)  # per cent of the training part

Settings = dict[str, Any]
LEARNED: Final[Settings] = {"prior": "learned", "likelihood": "mixture"}
MIDDLE: Final[Settings] = {**LEARNED, "candidates": 10, "weight": 10.0}


class Plan(NamedTuple):
    """What is tried on a dataset with a model, and for how long."""

    epochs: int
    samplers: Sequence[Settings]  # with the model as it is
    models: Sequence[Settings]  # with the middle sampler
    both: Sequence[Setting] = ()  # what was better alone, together
    tenths: Tenths = Tenths()
    of_sampler: Mapping[str, Any] = MappingProxyType({})  # what all have
    of_model: Mapping[str, Any] = MappingProxyType({})
    l2: Sequence[float] = L2  # of EASE
    beside: Mapping[str, Settings] = MappingProxyType({"the paper's BNS": {}})  # samplers of the final runs


def steep(dims: Iterable[int], penalties: Iterable[float]) -> list[Settings]:
    """MF that learns twice as fast and forgets more."""
    return [
        {"dim": dim, "learning_rate": 0.02, "regularization": penalty, "init_scale": 0.1}
        for dim, penalty in product(dims, penalties)
    ]


FEW: Final = [MIDDLE, {**MIDDLE, "candidates": 20}, {**MIDDLE, "likelihood": "paper"}]
ONE_CHANGED: Final[list[Settings]] = [
    {"hidden": 0.25}, {"strength": 0.5}, {"strength": 2.0}, {"l2": 200.0}, {"l2": 800.0},
    {"likelihood": "empirical"}, {"likelihood": "paper"},
]  # fmt: skip
GRAPH: Final[list[Settings]] = [{"dim": 64}, {"regularization": 5e-6}, {"regularization": 2e-5}]
MORE: Final[list[Settings]] = [
    {"candidates": 20}, {"candidates": 20, "weight": 20.0}, {"candidates": 20, "likelihood": "empirical"},
    {"candidates": 50},
]  # fmt: skip
LARGE: Final = Plan(
    60,
    FEW[:2],
    [{"dim": 128}],
    tenths=Tenths(1, 1),
    of_sampler={"cdf": "refreshed"},
    of_model={"dim": 64, "learning_rate": 0.05, "regularization": 0.01, "init_scale": 0.1},
    l2=(100.0, 400.0),
    beside={"the paper's BNS": {}, "random negatives (m = 1)": {"candidates": 1}},
)  # 40,000 items: the prior is of item neighbours, EASE of low rank, and users have 30 items to learn from
REFRESHED: Final = {"cdf": "refreshed"}  # exact F takes four times as long on many pairs
PLANS: Final[Mapping[tuple[str, str], Plan]] = {
    ("ml-100k", "mf"): Plan(
        100,
        [{**LEARNED, "candidates": m, "weight": w} for m, w in product((5, 10, 20), (5.0, 10.0, 20.0))]
        + [{**MIDDLE, **other} for other in ONE_CHANGED],
        [{"dim": 64}, {"dim": 128}, *steep((64, 128), (0.01, 0.02, 0.03))],
    ),
    ("ml-100k", "lightgcn"): Plan(
        45,
        [*FEW, {**MIDDLE, "candidates": 50}, {**MIDDLE, "weight": 20.0}, {**MIDDLE, "likelihood": "empirical"}],
        GRAPH,
        tenths=Tenths(3, 10),
    ),
    ("ml-1m", "mf"): Plan(
        50,
        FEW,
        [{"dim": 128}, *steep((64, 128), (0.01, 0.02, 0.03)), *steep((256,), (0.02,))],
        [({**MIDDLE, **more}, steep((128,), (0.02,))[0]) for more in MORE]
        + [({**MIDDLE, "candidates": m}, wide) for m, wide in product((20, 50), steep((256, 512), (0.02,)))],
        of_sampler=REFRESHED,
    ),
    ("ml-1m", "lightgcn"): Plan(
        45,
        FEW,
        [*GRAPH, {"dim": 128}],
        [({**MIDDLE, **more}, {"dim": 64}) for more in MORE[:3]],
        of_model={"batch_size": 1024},
    ),
    ("gowalla", "mf"): LARGE,
    ("yelp2018", "mf"): LARGE,
}


class Row(NamedTuple):
    """What is trained, whatever its seed."""

    label: str
    dataset: str
    setting: Setting
    epochs: int


def plan_of(dataset: str, model: str) -> Plan:
    """Of a dataset, or of a share of it."""
    return PLANS[dataset.partition("@")[0], model]


def row(label: str, dataset: str, model: str, setting: Setting, epochs: int) -> Row:
    """A row with what its dataset and model ask for."""
    plan = plan_of(dataset, model)
    return Row(label, dataset, ({**plan.of_sampler, **setting[0]}, {**plan.of_model, **setting[1]}), epochs)


def grid(dataset: str, model: str) -> list[Setting]:
    """What is tried: samplers with the model as it is, the middle one with other settings of the model, then both."""
    plan = plan_of(dataset, model)
    return (
        [(dict(one), {}) for one in plan.samplers] + [(dict(MIDDLE), dict(one)) for one in plan.models] + [*plan.both]
    )


def written(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items()) or "as it is"


# ------------------------------------------------------------------------------------------------- what is trained


def searched(dataset: str, model: str) -> list[Row]:
    settings = [*grid(dataset, model), ({}, {})]  # the last is the paper's
    return [row(written(one[0] | one[1]), dataset, model, one, plan_of(dataset, model).epochs) for one in settings]


def final(dataset: str, model: str, choice: Choice) -> list[Row]:
    plan = plan_of(dataset, model)
    beside = [row(label, dataset, model, (sampler, {}), plan.epochs) for label, sampler in plan.beside.items()]
    return [row("chosen on validation", dataset, model, choice.setting, choice.epoch), *beside]


def curve(dataset: str, model: str, choice: Choice) -> dict[str, dict[int, Row]]:
    """For each prior a row with every number of candidates."""
    of_sampler, of_model = choice.setting
    priors = {"learned prior": of_sampler, "the paper's prior": {"weight": of_sampler["weight"]}}
    return {
        name: {
            m: row(f"{name}, m = {m}", dataset, model, ({**settings, "candidates": m}, of_model), choice.epoch)
            for m in CURVE
        }
        for name, settings in priors.items()
    }


def sizes(dataset: str, model: str, choice: Choice) -> dict[int, Row]:
    """The chosen setting with a share of the training part."""
    return {
        percent: row(f"{percent}% of the data", f"{dataset}@{percent}", model, choice.setting, choice.epoch)
        for percent in SIZES
    }


# ----------------------------------------------------------------------------------------------------------- cells


def cells_of(source: Source, model: str, view: View, rows: Iterable[Row], seeds: int) -> list[Cell]:
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


def solved(source: Source, dataset: str, model: str, view: View, *others: str) -> list[Cell]:
    """EASE with every l2 of the model's plan, and other baselines as they are."""
    kinds: list[tuple[str, Settings]] = [("ease", {"l2": value}) for value in plan_of(dataset, model).l2]
    kinds += [(name, {}) for name in others]
    return [
        Cell(dataset, source.fingerprint(dataset, view), view, name, "", name, 1, 0, model_settings=settings)
        for name, settings in kinds
    ]


def planned(part: str, source: Source, dataset: str, model: str, seeds: int | None) -> list[Cell]:
    """The cells of a part; an error where an earlier part is missing."""
    tenths = plan_of(dataset, model).tenths
    if part == "search":
        return _on(tenths.first, source, model, searched(dataset, model), dataset)
    found = list(ledger.read(records_of(dataset, model)).values())
    if part == "finalists":
        return _on(tenths.all, source, model, _judged_again(found, dataset, model), dataset)
    choice = chosen(found, tenths)
    if part == "final":
        judged = cells_of(source, model, "last", final(dataset, model, choice), seeds or 10)
        return solved(source, dataset, model, "last", "item-knn", "popularity") + judged
    if part == "curve":
        rows = [one for own in curve(dataset, model, choice).values() for one in own.values()]
        return cells_of(source, model, "last", rows, seeds or 3)
    thinned = sizes(dataset, model, choice).values()
    baselines = [cell for one in thinned for cell in solved(source, one.dataset, model, "last")]
    return baselines + cells_of(source, model, "last", thinned, seeds or 3)


def _on(views: Iterable[View], source: Source, model: str, rows: Sequence[Row], dataset: str) -> list[Cell]:
    """Rows, and EASE, on several tenths."""
    return [
        cell
        for view in views
        for cell in (*solved(source, dataset, model, view), *cells_of(source, model, view, rows, 1))
    ]


def _judged_again(found: Sequence[Entry], dataset: str, model: str) -> list[Row]:
    plan = plan_of(dataset, model)
    best = finalists(found, plan.tenths)
    if not best:
        raise SystemExit("nothing has been searched yet; run `beyond.py search` first")
    return [row(written(one.setting[0] | one.setting[1]), dataset, model, one.setting, plan.epochs) for one in best]


def records_of(dataset: str, model: str) -> Path:
    return RESULTS / f"{dataset}-{model}.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("search", "finalists", "final", "curve", "sizes"))
    parser.add_argument("dataset", choices=sorted({dataset for dataset, _ in PLANS}))
    parser.add_argument("model", choices=sorted({model for _, model in PLANS}))
    parser.add_argument("--seeds", type=int, help="of final (10), curve and sizes (3)")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time")
    parser.add_argument("--pack", type=Path, metavar="FILE", help="run nothing; write the data there for --arrays")
    parser.add_argument("--arrays", type=Path, metavar="FILE", help="read the data from there")
    given = parser.parse_args()
    if given.seeds is not None and given.part in ("search", "finalists"):
        parser.error(f"{given.part} takes one seed on each tenth; drop --seeds")
    source = Source(arrays=given.arrays)
    if given.pack is not None:
        pack(source, [given.dataset], given.pack)
        return
    cells = planned(given.part, source, given.dataset, given.model, given.seeds)
    failures = sweep(cells, records_of(given.dataset, given.model), source, jobs=given.jobs)
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
