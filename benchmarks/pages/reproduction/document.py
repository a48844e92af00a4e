"""The text of docs/explanation/reproduction.md: the share that reproduces, the readings, the figures and the theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from bayesneg.errors import InputError
from bayesneg.reproduction import theory
from bayesneg.reproduction.markdown import legend
from bayesneg.reproduction.markdown import table as study_table
from bayesneg.reproduction.pairwise import pairwise_tests
from bayesneg.reproduction.reproduce import DRAWN, READINGS, TABLES, THEORY, recipe_of
from bayesneg.reproduction.studies import DATASETS, MODELS, NEAR, Line, PaperStudy, studies
from bayesneg.reproduction.sweeps.cells import Cell, View
from bayesneg.reproduction.sweeps.recipe import Recipe
from bayesneg.runs.ledger import Entry
from benchmarks.pages.reproduction import findings
from benchmarks.pages.reproduction.readings import ENOUGH, Explanation, Readings, explanation, readings_of
from benchmarks.pages.text import MADE, folded, page, signed, table

COUNTED: Final = ("ml-100k", "ml-1m")  # datasets whose numbers are counted
MOST: Final = 10  # seeds of any row
TITLES: Final = {"fig2": "Figure 2: densities in theory", "fig3": "Figure 3: unbias over F and the prior"}


@dataclass(frozen=True)
class Chapter:
    """A table or figure, and what was measured of it."""

    name: str
    recipe: Recipe
    studies: list[PaperStudy]


def chapters(found: Mapping[str, Entry]) -> list[Chapter]:
    """Every table and every figure that is drawn from runs, as far as ``found`` has its cells."""
    data = _fingerprints(found)
    steps = sorted({int(entry.cell["evaluate_every"]) for entry in found.values()})
    made = []
    for name in (*TABLES, *DRAWN):
        recipe = recipe_of(name)
        if name in READINGS:
            recipe = recipe.narrowed(seeds=MOST)  # a row that is in a table too has as many seeds here as there
        cells = recipe.cells(lambda dataset, view: data.get((dataset, view), ""))
        if name in READINGS:
            cells = [_as_measured(cell, found, steps) for cell in cells]
        made.append(Chapter(name, recipe, studies(name, recipe, cells, found)))
    return made


def _as_measured(cell: Cell, found: Mapping[str, Entry], steps: Sequence[int]) -> Cell:
    """The cell, or the same one evaluated more or less often during training, which does not change its result."""
    alike = (replace(cell, evaluate_every=step) for step in (cell.evaluate_every, *steps))
    return next((one for one in alike if one.key in found), cell)


def _fingerprints(found: Mapping[str, Entry]) -> dict[tuple[str, View], str]:
    """Which data each dataset's name stands for; records of two versions cannot share a table."""
    known: dict[tuple[str, View], str] = {}
    for entry in found.values():
        place = (entry.cell["dataset"], entry.cell["view"])
        if known.setdefault(place, entry.cell["fingerprint"]) != entry.cell["fingerprint"]:
            raise InputError(f"records of {place[0]}, view {place[1]}, are of two versions of the data; keep one")
    return known


def document(found: Mapping[str, Entry], figures: Mapping[str, str]) -> str:
    """The page; ``figures`` maps the name of a figure to its file."""
    made = chapters(found)
    known = readings_of(study for chapter in made if chapter.name in READINGS for study in chapter.studies)
    return page(
        "# Reproduction",
        *_summary(made, known),
        *_missing(made),
        "`bayesneg reproduce NAME` runs a table or figure again; its recipe is in `src/bayesneg/reproduction/recipes/`. "
        "All numbers, readings and the view *best* included, are in [tables/reproduction.csv](tables/reproduction.csv), "
        "the paired tests (Holm-corrected) in [tables/reproduction-tests.csv](tables/reproduction-tests.csv). " + MADE,
        "## Figures",
        *_figures(made, figures),
        "## Theory",
        *_theory(),
        "## Tables",
        legend(),
        *(_table(chapter, known) for chapter in made if chapter.name in TABLES and chapter.name not in READINGS),
        *_provenance(found),
    )


# ------------------------------------------------------------------------------------------------------------ summary


def _summary(made: Sequence[Chapter], known: Readings) -> list[str]:
    """The share within 0.01 as the paper states its settings, then with readings, at the last epoch."""
    rows: list[list[str]] = []
    counted: list[list[str]] = []
    near, explained, total = 0, 0, 0
    for chapter in made:
        if chapter.name in READINGS or chapter.name not in TABLES:
            continue
        for study in (study for study in chapter.studies if study.view == "last"):
            n_compared = sum(len(line.compared) for line in study.lines)
            own = sum(line.n_near for line in study.lines)
            found = [explanation(line, study, known) for line in study.lines]
            by_reading = sum(one.n_explained for one in found)
            if study.dataset in COUNTED:
                counted += [_reading(one, study) for one in found if one.best]
            if not chapter.recipe.as_stated:
                own, by_reading = 0, own + by_reading
                about = chapter.recipe.about.strip().partition(". ")[0]
                counted.append([chapter.name, _place(study), about, _seeds(study), f"0 → {by_reading} of {n_compared}"])
            rows.append([chapter.name, _place(study), _seeds(study), f"{own} of {n_compared}", str(by_reading or "")])
            if study.dataset in COUNTED:
                near, explained, total = near + own, explained + by_reading, total + n_compared
    if not total:
        return ["No cell of the paper's tables has been measured yet."]
    together = near + explained
    return [
        f"**With the settings that the paper states, {near} of {total} published numbers ({near / total:.0%}) are "
        f"reproduced within {NEAR:g}** (tables 2 on MovieLens, 3 and 4; last epoch, mean over seeds).",
        f"With another reading of a row, {explained} more are ({together} of {total}, {together / total:.1%}). A reading "
        "changes a setting that the paper leaves open, one that it states (the power of PNS, LightGCN's weight decay, "
        "the prior of BNS-3), or the interpretation of a formula. Readings were searched after a row was seen to "
        "differ, row by row: a reading that comes near is no proof that the paper used it. One reading per row counts, "
        f"with at least {ENOUGH} seeds. Table 4 counts as a reading as a whole.",
        table(["table", "study", "seeds", f"within {NEAR:g}", "more by a reading"], rows, text_columns=2),
        *([_readings(counted)] if counted else []),
    ]


def _readings(rows: list[list[str]]) -> str:
    head = ["row", "study", "reading", "seeds", f"within {NEAR:g}"]
    return folded("The readings that are counted", table(head, rows, text_columns=3))


def _reading(found: Explanation, study: PaperStudy) -> list[str]:
    best, line = found.best, found.line
    assert best is not None
    return [
        line.label,
        _place(study),
        best.label,
        str(len(best.runs)),
        f"{line.n_near} → {best.n_near} of {len(line.compared)}",
    ]


def _place(study: PaperStudy) -> str:
    return f"{DATASETS.get(study.dataset, study.dataset)}, {MODELS[study.model]}"


def _seeds(study: PaperStudy) -> str:
    return " or ".join(map(str, study.seeds))


def _missing(made: Sequence[Chapter]) -> list[str]:
    """Rows of the tables that have no record yet."""
    absent = []
    for chapter in made:
        if chapter.name not in TABLES or chapter.name in READINGS:
            continue
        measured = {(study.dataset, study.model, line.label) for study in chapter.studies for line in study.lines}
        recipe = chapter.recipe
        for dataset, model in product(recipe.datasets, recipe.models):
            labels = [row.label for row in recipe.samplers if (dataset, model, row.label) not in measured]
            if labels and dataset in COUNTED:
                which = "every row" if len(labels) == len(recipe.samplers) else ", ".join(labels)
                absent.append(f"{chapter.name}, {DATASETS[dataset]}, {MODELS[model]}: {which}")
    return [f"Not measured yet: {'; '.join(absent)}."] if absent else []


# ---------------------------------------------------------------------------------------------------- tables, figures


def _table(chapter: Chapter, known: Readings) -> str:
    parts = [chapter.recipe.about.strip()]
    if not chapter.studies:
        parts.append(f"Not measured yet: `bayesneg reproduce {chapter.name}`.")
    for study in (study for study in chapter.studies if study.view == "last"):
        rows = [
            f"- {line.label}: {_verdict(line)}. {explanation(line, study, known).sentence}".rstrip()
            for line in study.lines
            if line.compared
        ]
        notes = [f"- {line.label}: {line.row.note}" for line in study.lines if line.row.note]
        parts += [f"**{study.name}**, {_seeds(study)} seeds", study_table(study), "\n".join([*rows, *notes])]
    return folded(chapter.recipe.title, *filter(None, parts))


def _verdict(line: Line) -> str:
    """Whether a row reproduces, in a sentence made of its numbers."""
    compared, near = line.compared, line.n_near
    widest = max(compared, key=lambda value: abs(value.difference)).difference
    if near == len(compared):
        return f"reproduces; the largest difference is {signed(widest)}"
    how = "does not reproduce" if near <= len(compared) / 2 else "reproduces in part"
    return f"{how}: {near} of {len(compared)} within {NEAR:g}, the largest difference is {signed(widest)}"


def _figures(made: Sequence[Chapter], figures: Mapping[str, str]) -> list[str]:
    said = {
        chapter.name: findings.OF_FIGURES[chapter.name](chapter.studies[0])
        for chapter in made
        if chapter.name in findings.OF_FIGURES and chapter.studies
    }
    titles = {**TITLES, **{chapter.name: chapter.recipe.title for chapter in made}}
    shown = sorted(figures)
    told = [f"- {titles[name]}. {said.get(name, 'Drawn from the formulas.')}" for name in shown]
    images = [f"![{titles[name]}]({figures[name]})" for name in shown]
    absent = [name for name in sorted({*THEORY, *DRAWN}) if name not in figures]
    return [
        *(["\n".join(told), folded("The figures", *images)] if shown else []),
        *([f"Not drawn yet: {', '.join(absent)}."] if absent else []),
    ]


def _theory() -> list[str]:
    rows = [
        [
            f"{theta:g}",
            f"{1 - theta:.4f}",
            f"{theory.mean_unbias_under_mixture(theta):.4f}",
            f"{theory.mean_unbias_under_uniform(theta):.4f}",
        ]
        for theta in (0.001, 0.01, 0.05, 0.2, 0.5)
    ]
    head = ["θ, share of false negatives", "1 − θ", "E[unbias], mixture", "E[unbias], uniform F"]
    return [
        "The lemma E[unbias] = 1 − θ holds if F is the CDF of the base density and items come from the mixture of true "
        "and false negatives. It does not hold for the empirical CDF of the paper, which is uniform: the last two "
        "columns agree with 1 − θ only where they are equal. `tests/reproduction/test_theory.py` checks this and the "
        "order statistics.",
        folded("E[unbias] under both assumptions", table(head, rows, text_columns=0)),
    ]


def _provenance(found: Mapping[str, Entry]) -> list[str]:
    """What the numbers were measured with and on."""
    versions = sorted({", ".join(f"{k} {v}" for k, v in entry.record.versions.items()) for entry in found.values()})
    data = sorted(
        {
            f"{entry.cell['dataset']}, view {entry.cell['view']}: {entry.record.data['n_train']:,} training and "
            f"{entry.record.data['n_test']:,} test interactions, {entry.record.data['split']}, "
            f"fingerprint {entry.record.data['fingerprint']}"
            for entry in found.values()
        }
    )
    lines = "\n".join(f"- {text}" for text in (*data, *versions))
    return [folded(f"Data and versions of the {len(found)} records", lines)] if found else []


# ---------------------------------------------------------------------------------------------------------------- CSV


def numbers(made: Sequence[Chapter]) -> list[dict[str, Any]]:
    """Every measured number of the tables and readings beside the published one."""
    return [
        {
            **_at(chapter, study),
            "row": line.label,
            "metric": metric,
            "seeds": len(line.runs),
            "mean": value.here.mean,
            "half_width": value.here.half_width if value.here.has_interval else "",
            "paper": value.paper if value.paper == value.paper else "",
        }
        for chapter in made
        if chapter.name in TABLES
        for study in chapter.studies
        for line in study.lines
        for metric, value in line.values.items()
    ]


def paired_tests(made: Sequence[Chapter]) -> list[dict[str, Any]]:
    """Every paired test in NDCG@20; p-values are corrected within a table, or within the readings of one row, and have three figures."""
    return [
        {
            **_at(chapter, study),
            "one": test.one,
            "other": test.other,
            "seeds": test.difference.n_seeds,
            "difference": over.mean,
            "low": over.low,
            "high": over.high,
            "p_users": _three_figures(over.p_value),
            "p_seeds": _three_figures(test.difference.over_seeds.p_value),
            "verdict": test.verdict,
        }
        for chapter in made
        if chapter.name in TABLES
        for study in chapter.studies
        for test in pairwise_tests(study)
        for over in [test.difference.over_users]
    ]


def _three_figures(p_value: float) -> str:
    return "<1e-300" if p_value < 1e-300 else f"{p_value:.3g}"  # below that a float is rounded to zero


def _at(chapter: Chapter, study: PaperStudy) -> dict[str, str]:
    return {"table": chapter.name, "dataset": study.dataset, "model": study.model, "view": study.view}
