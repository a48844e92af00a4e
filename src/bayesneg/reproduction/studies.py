"""What was measured beside what was published: one study per dataset, model and view, one line per sampler."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bayesneg.evaluation.statistics import Estimate, estimate
from bayesneg.report.groups import final_value
from bayesneg.reproduction.published import METRICS, published
from bayesneg.reproduction.sweeps.cells import Cell
from bayesneg.reproduction.sweeps.recipe import Recipe, RecipeRow
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord

NEAR: Final = 0.01  # further than this from the interval, the published number is marked
VIEWS: Final[Mapping[str, str]] = {
    "last": "last epoch",
    "best": "best epoch on validation data",
}
MODELS: Final = {"mf": "MF", "lightgcn": "LightGCN", "torch-mf": "MF in mini-batches"}
DATASETS: Final = {
    "ml-100k": "MovieLens-100K",
    "ml-1m": "MovieLens-1M",
    "yahoo-r3": "Yahoo!-R3",
    "gowalla": "Gowalla",
    "yelp2018": "Yelp2018",
}


@dataclass(frozen=True)
class PublishedComparison:
    """A mean over seeds and the published number, which may be missing (nan)."""

    here: Estimate
    paper: float = math.nan

    @property
    def difference(self) -> float:
        return self.here.mean - self.paper

    @property
    def is_near(self) -> bool:
        """The mean lies within 0.01 of the published number."""
        return abs(self.difference) <= NEAR

    @property
    def is_off(self) -> bool:
        """The published number lies outside the interval by more than 0.01; one seed is an interval of width 0."""
        low, high = (self.here.low, self.here.high) if self.here.has_interval else (self.here.mean, self.here.mean)
        return self.paper < low - NEAR or self.paper > high + NEAR


@dataclass(frozen=True)
class Line:
    """One sampler in a study."""

    row: RecipeRow
    runs: tuple[RunRecord, ...]
    values: Mapping[str, PublishedComparison]
    beside: str  # the published row: table2/BNS

    @property
    def label(self) -> str:
        return self.row.label

    @property
    def uses_test_labels(self) -> bool:
        return any(run.uses_test_labels for run in self.runs)

    @property
    def compared(self) -> list[PublishedComparison]:
        """The values that have a published number."""
        return [value for value in self.values.values() if not math.isnan(value.difference)]

    @property
    def n_near(self) -> int:
        """How many of these lie within 0.01 of it."""
        return sum(value.is_near for value in self.compared)


@dataclass(frozen=True)
class PaperStudy:
    """The lines that may be compared with each other: one dataset, one model, one view."""

    dataset: str
    model: str
    view: str
    lines: tuple[Line, ...]
    readings: bool = False  # its lines are rivals only of those beside the same published row

    @property
    def runs(self) -> list[RunRecord]:
        return [run for line in self.lines for run in line.runs]

    @property
    def name(self) -> str:
        return f"{DATASETS.get(self.dataset, self.dataset)}, {MODELS[self.model]}, {VIEWS[self.view]}"

    @property
    def seeds(self) -> list[int]:
        """How many seeds its lines have, each number once."""
        return sorted({len(line.runs) for line in self.lines})


def studies(name: str, recipe: Recipe, cells: Sequence[Cell], found: Mapping[str, Entry]) -> list[PaperStudy]:
    """The finished cells of an experiment, in the order of its recipe; a study without any is left out."""
    places: dict[tuple[str, str, str], dict[str, list[RunRecord]]] = {}
    for cell in cells:
        lines = places.setdefault((cell.dataset, cell.model, cell.view), {})
        runs = lines.setdefault(cell.label, [])
        if cell.key in found:
            runs.append(replace(found[cell.key].record, label=cell.label))
    rows = {row.label: row for row in recipe.samplers}
    return [
        PaperStudy(
            *place,
            tuple(_line(name, rows[label], place, runs) for label, runs in lines.items() if runs),
            recipe.readings,
        )
        for place, lines in places.items()
        if any(lines.values())
    ]


def _line(name: str, row: RecipeRow, place: tuple[str, str, str], runs: Iterable[RunRecord]) -> Line:
    own = tuple(runs)
    beside = row.paper or f"{name}/{row.label}"
    paper = published(beside, place[0], place[1])
    values = {key: PublishedComparison(_over_seeds(own, key), paper.get(key, math.nan)) for key in METRICS}
    return Line(row, own, values, beside)


def _over_seeds(runs: Sequence[RunRecord], key: str) -> Estimate:
    """One seed has no interval: an interval over its users does not include the variance between seeds."""
    return estimate(final_value(run, key) for run in runs)
