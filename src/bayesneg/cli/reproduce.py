"""``bayesneg reproduce``: the paper's tables and figures, beside the published ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.interrupt import told
from bayesneg.cli.output import counted, say, show, show_json, show_table
from bayesneg.errors import InputError

if TYPE_CHECKING:
    from bayesneg.reproduction.reproduce import Result
    from bayesneg.reproduction.studies import PaperStudy

NARROWING = "Part of the experiment"
SHOWN = ("ndcg@5", "ndcg@10", "ndcg@20")  # what fits a terminal; the files have every metric


def _narrowing(help: str, metavar: str) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=NARROWING, show_default="the experiment's")


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="table2, table3, table4, fig1 … fig5, readings (also -ml-1m, -lightgcn, -lightgcn-ml-1m), "
            "or a TOML file",
        ),
    ],
    dataset: Annotated[str | None, _narrowing("ml-100k, ml-1m, yahoo-r3, …, or a file", "NAMES")] = None,
    model: Annotated[str | None, _narrowing("mf, lightgcn", "NAMES")] = None,
    samplers: Annotated[str | None, _narrowing("rows of the experiment, by label", "LABELS")] = None,
    view: Annotated[str | None, _narrowing("last (epoch), best (on validation data)", "last,best")] = None,
    seeds: Annotated[int | None, _narrowing("runs per sampler, seeds 0, 1, …", "N")] = None,
    epochs: Annotated[int | None, _narrowing("passes over the training interactions", "N")] = None,
    jobs: Annotated[int | None, typer.Option(help="processes at a time", show_default="one per core")] = None,
    out: Annotated[Path, typer.Option(help="folder for the records, tables and figures")] = Path("reproduction"),
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="keep the finished runs in --out, or repeat them")
    ] = True,
    data_dir: opt.DataDir = None,
    allow_code: opt.AllowCode = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Reproduce a table or figure of the paper, beside the published numbers.

    Finished runs are recorded: after Ctrl-C or a crash the same command resumes.

    \b
    Examples:
      bayesneg reproduce table3 --seeds 1 --epochs 3
      bayesneg reproduce table2 --dataset ml-100k --model mf --jobs 2
      bayesneg reproduce fig4
    """
    from bayesneg.experiments.datasets import Source
    from bayesneg.reproduction.reproduce import reproduce as run

    for option, value in (("--seeds", seeds), ("--epochs", epochs), ("--jobs", jobs)):
        if value is not None and value < 1:
            raise InputError(f"{option} must be at least 1, got {value}")
    try:
        result = run(
            name,
            Source(None if data_dir is None else Path(data_dir)),
            out,
            datasets=_listed(dataset),
            models=_listed(model),
            samplers=_listed(samplers),
            views=_views(view),
            seeds=seeds,
            epochs=epochs,
            jobs=jobs or os.cpu_count() or 1,
            resume=resume,
            progress=not quiet,
            allow_code=allow_code,
        )
    except KeyboardInterrupt as error:
        told(error, f"interrupted; {out} keeps the finished runs; resume with {_again(resume)}")
        raise
    if json:
        show_json(_as_json(result))
    else:
        for study in result.studies:
            _show(study)
        for why in result.left_out:
            say(f"left out: {why}")
        say(f"written: {', '.join(str(path) for path in result.files)}")
    if result.failures:
        for failure in result.failures:
            say(f"failed: {failure}")
        say(f"{counted(len(result.failures), 'run', 'runs')} missing; to try again, use {_again(resume)}")
        raise typer.Exit(1)


def _show(study: PaperStudy) -> None:
    from bayesneg.report.names import number
    from bayesneg.reproduction.markdown import MARK, about, gap, here

    has_paper = any(line.compared for line in study.lines)
    heads = [head for key in SHOWN for head in ((key, "paper", "difference") if has_paper else (key,))]
    rows = []
    for line in study.lines:
        values = [line.values[key] for key in SHOWN]
        beside = [(here(v), number(v.paper, 4), gap(v).replace("*", "")) if has_paper else (here(v),) for v in values]
        rows.append((line.label, *(cell for three in beside for cell in three)))
    show_table(study.name, ("sampler", *heads), rows)
    show(f"{about(study)} {MARK}: the paper lies outside the interval by more than 0.01" if has_paper else about(study))


def _as_json(result: Result) -> dict[str, Any]:
    return {
        "files": [str(path) for path in result.files],
        "left_out": result.left_out,
        "failed": [str(failure) for failure in result.failures],
        "studies": [
            {
                "dataset": study.dataset,
                "model": study.model,
                "view": study.view,
                "samplers": {
                    line.label: {
                        key: {
                            "mean": value.here.mean,
                            "low": value.here.low,
                            "high": value.here.high,
                            "paper": value.paper,
                        }
                        for key, value in line.values.items()
                    }
                    for line in study.lines
                },
            }
            for study in result.studies
        ],
    }


def _again(resume: bool) -> str:
    return "the same command" if resume else "the same command without --no-resume"


def _listed(text: str | None) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _views(text: str | None) -> list[Any]:
    views = _listed(text)
    for view in views:
        if view not in ("last", "best"):
            raise InputError(f"--view must be last, best or last,best, got {text!r}")
    return views
