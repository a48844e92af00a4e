"""``bayesneg reproduce``: from the name of a table or figure to its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from itertools import chain, count
from pathlib import Path
from typing import Final

from bayesneg.config.settings import check_known
from bayesneg.errors import BayesnegError, DataError, InputError
from bayesneg.experiments.datasets import Source
from bayesneg.models.torch.settings import require_torch
from bayesneg.reproduction.drawings import (
    Draw,
    sampling_quality,
    score_densities,
    sensitivity,
    theoretical_densities,
    unbias_surface,
)
from bayesneg.reproduction.frames import csv_text, results_frame, tests_frame
from bayesneg.reproduction.latex import latex
from bayesneg.reproduction.markdown import markdown
from bayesneg.reproduction.page import write_page
from bayesneg.reproduction.published import published_rows
from bayesneg.reproduction.studies import PaperStudy, studies
from bayesneg.reproduction.sweeps.cells import View
from bayesneg.reproduction.sweeps.recipe import Recipe
from bayesneg.reproduction.sweeps.sweep import Failure, sweep
from bayesneg.runs import ledger
from bayesneg.runs.folder import write_whole

READINGS: Final = ("readings", "readings-ml-1m", "readings-lightgcn", "readings-lightgcn-ml-1m")
TABLES: Final = ("table2", "table3", "table4", *READINGS)
THEORY: Final[dict[str, Draw]] = {"fig2": theoretical_densities, "fig3": unbias_surface}  # no run is needed
DRAWN: Final[dict[str, Callable[[PaperStudy], Draw]]] = {
    "fig1": score_densities,
    "fig4": sampling_quality,
    "fig5": sensitivity,
}
HEIGHTS: Final = {"fig1": 4.6, "fig2": 4.4, "fig3": 5.2, "fig4": 4.4, "fig5": 2.2}  # inches, of a column's width
NAMES: Final = (*TABLES, *sorted((*THEORY, *DRAWN)))
RECORDS: Final = "records.jsonl"


@dataclass(frozen=True)
class Result:
    """What :func:`reproduce` returns."""

    studies: list[PaperStudy]
    files: list[Path]
    left_out: list[str] = field(default_factory=list)  # why a dataset or model is missing
    failures: list[Failure] = field(default_factory=list)


def recipe_of(name: str, *, allow_code: bool = False) -> Recipe:
    """The recipe of a table or figure of the paper, or the one in a custom TOML file."""
    if _is_custom(name):
        recipe = Recipe.read(Path(name), allow_code=allow_code)
        _check_published(recipe, name)
        return recipe
    check_known(name, NAMES, "table or figure")
    with as_file(files("bayesneg.reproduction") / "recipes" / f"{name}.toml") as path:
        return Recipe.read(path)


def _is_custom(name: str) -> bool:
    return Path(name).suffix.lower() == ".toml"


def _check_published(recipe: Recipe, name: str) -> None:
    """A published row that does not exist would leave the table without its numbers."""
    for row in recipe.samplers:
        try:
            if row.paper is not None:
                check_known(row.paper, published_rows(), "row of the paper")
        except InputError as error:
            raise InputError(f"{name}: {row.label}: paper: {error}") from None


def _files_of(name: str) -> str:
    """The stem of its files: a custom recipe never takes the name of one of the paper's."""
    stem = Path(name).stem
    return f"custom-{stem}" if _is_custom(name) and stem.lower() in NAMES else stem


def available(recipe: Recipe, source: Source, *, asked: Sequence[str] = ()) -> tuple[Recipe, list[str]]:
    """The recipe without what this machine lacks, and why; what was asked for by name must be there."""
    left_out, missing = [], set()
    for model in recipe.models:
        try:
            if model != "mf":
                require_torch(f"model {model}")
        except InputError as error:
            if model in asked:
                raise
            left_out.append(str(error))
            missing.add(model)
    for dataset in recipe.datasets:
        try:
            source.split(dataset, "last")
        except DataError as error:
            if dataset in asked or len(recipe.datasets) == 1:
                raise
            left_out.append(str(error))
            missing.add(dataset)
    kept = {
        "models": tuple(model for model in recipe.models if model not in missing),
        "datasets": tuple(dataset for dataset in recipe.datasets if dataset not in missing),
    }
    if not all(kept.values()):
        raise InputError(f"nothing of this experiment can be run here: {'; '.join(left_out)}")
    return recipe.model_copy(update=kept), left_out


def reproduce(
    name: str,
    source: Source,
    out: Path,
    *,
    datasets: Sequence[str] = (),
    models: Sequence[str] = (),
    samplers: Sequence[str] = (),
    views: Sequence[View] = (),
    seeds: int | None = None,
    epochs: int | None = None,
    jobs: int = 1,
    resume: bool = True,
    progress: bool = True,
    allow_code: bool = False,
) -> Result:
    """Run the experiment behind a table or figure of the paper, and write its files.

    Args:
        name: A table or figure of the paper, such as ``"table2"``, or a custom TOML recipe.
        source: Where datasets are read from.
        out: The folder for the records and for the files made from them.
        datasets: Only these datasets of the recipe; all unless given.
        models: Only these models of the recipe.
        samplers: Only these rows of the recipe, by label.
        views: Only these views: the last epoch, or the best on validation data.
        seeds: The number of runs per sampler, instead of the recipe's.
        epochs: The number of training epochs, instead of the recipe's.
        jobs: The number of processes.
        resume: Whether to reuse the finished cells in ``out``.
        progress: Whether to show a progress bar.
        allow_code: Whether to run the Python files that a custom recipe names.

    Returns:
        The studies, the files written, what could not run on this machine, and what failed.
    """
    if name in THEORY:
        if any((datasets, models, samplers, views, seeds, epochs)):
            raise InputError(
                f"{name} is drawn from theory alone: it has no dataset, model, samplers, view, seeds or epochs"
            )
        out.mkdir(parents=True, exist_ok=True)
        return Result([], draw_figure(name, None, out / name))
    recipe = recipe_of(name, allow_code=allow_code).narrowed(
        datasets=datasets, models=models, samplers=samplers, views=views, seeds=seeds, epochs=epochs
    )
    recipe, left_out = available(recipe, source, asked=(*datasets, *models))
    cells = recipe.cells(source.fingerprint)
    failures = sweep(cells, out / RECORDS, source, jobs=jobs, resume=resume, progress=progress)
    files_of = _files_of(name)
    found = studies(files_of, recipe, cells, ledger.read(out / RECORDS))
    if not found:
        raise BayesnegError(f"no cell of {name} could be finished; {failures[0]}")
    return Result(found, write(files_of, recipe, found, out), left_out, failures)


def write(name: str, recipe: Recipe, found: Sequence[PaperStudy], out: Path) -> list[Path]:
    """The files of a table or figure, made from studies alone."""
    if name in DRAWN:
        drawn = zip(found, _figures(name, found), strict=True)
        return [path for study, stem in drawn for path in draw_figure(name, study, out / stem)]
    texts = {
        ".md": markdown(recipe.title, found, preface=recipe.about.strip()),
        ".csv": csv_text(results_frame(found)),
        "-tests.csv": csv_text(tests_frame(found)),
        ".tex": latex(recipe.title, found),
    }
    paths = [out / f"{name}{ending}" for ending in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_whole(path, lambda part, text=text: part.write_text(text, encoding="utf-8"))  # type: ignore[misc]
    return [*paths, write_page(recipe.title, found, out / f"{name}.html")]


def _figures(name: str, found: Sequence[PaperStudy]) -> list[str]:
    """One stem per study: the figure's name, with dataset, model and view where there are several studies."""
    if len(found) == 1:
        return [name]
    stems: list[str] = []
    for study in found:
        stem = f"{name}-{Path(study.dataset).stem}-{study.model}-{study.view}"
        others = (f"{stem}-{number}" for number in count(2))
        stems.append(next(each for each in chain([stem], others) if each not in stems))
    return stems


def draw_figure(
    name: str, study: PaperStudy | None, stem: Path, *, kinds: Sequence[str] = ("svg", "pdf", "png")
) -> list[Path]:
    """A figure of the paper as files; those of the theory need no study."""
    from bayesneg.report.figures.export import export

    draw = THEORY[name] if study is None else DRAWN[name](study)
    return export(draw, stem, height=HEIGHTS[name], kinds=kinds)
