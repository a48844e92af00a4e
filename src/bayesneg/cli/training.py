"""``bayesneg train`` and ``bayesneg compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.output import say, show_json
from bayesneg.cli.tables import show_comparison, show_quality, show_run
from bayesneg.errors import InputError


def train(
    data: opt.Data,
    sampler: Annotated[str, typer.Option(help="rns, pns, aobpr, dns, srns, bns, … or file.py:Class")] = "bns",
    model: opt.ModelName = "mf",
    settings: opt.Settings = None,
    epochs: opt.Epochs = 100,
    seed: Annotated[int, typer.Option(help="of the initial vectors, the order and every draw")] = 0,
    select: opt.Select = "best",
    out: Annotated[Path | None, typer.Option(help="folder to record the run in; needed to resume it")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out")] = False,
    evaluate_every: opt.EvaluateEvery = 1,
    validation: opt.Validation = None,
    test: opt.TestFile = None,
    test_share: opt.TestShare = None,
    split_by: opt.SplitBy = "interaction",
    split_seed: opt.SplitSeed = 0,
    user_column: opt.UserColumn = None,
    item_column: opt.ItemColumn = None,
    rating_column: opt.RatingColumn = None,
    time_column: opt.TimeColumn = None,
    user_columns: opt.UserColumns = None,
    separator: opt.Separator = None,
    header: opt.Header = None,
    min_rating: opt.MinRating = None,
    user_file: opt.UserFile = None,
    data_dir: opt.DataDir = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Train one model with one sampler, and say how good it is.

    \b
    Example:
      bayesneg train ml-100k --sampler bns --set candidates=10 --out runs/bns
      bayesneg train clicks.csv --user-column customer --sampler dns:candidates=5 --json
    """
    from bayesneg.experiments.spec import SamplerSpec, build_model, sort_settings
    from bayesneg.training import fit

    if resume and out is None:
        raise InputError("--resume needs --out, the folder of the run to go on with")
    for_model, spec = sort_settings(settings or (), model, SamplerSpec.parse(sampler))
    built = build_model(model, for_model)
    columns = opt.column_options(
        user_column, item_column, rating_column, time_column, user_columns, separator, header, min_rating
    )
    choice = opt.DataChoice(
        data, columns, data_dir, user_file, test, test_share, split_by, split_seed, validation, select
    )
    selection = choice.selection
    split = choice.split()
    run = fit(
        built,
        split,
        spec.build(split),
        epochs=epochs,
        seed=seed,
        select=selection,
        evaluate_every=evaluate_every,
        label=spec.label,
        out=out,
        resume=resume,
        progress=not quiet,
    )
    if json:
        show_json({**run.record.to_dict(), "out": None if out is None else str(out)})
    else:
        show_run(run.record)
        if out is not None:
            say(f"recorded in {out}; next: bayesneg report {out} -o report.html")


def compare(
    data: opt.Data,
    samplers: Annotated[
        str, typer.Option(help="comma-separated; settings after colons: dns:candidates=5")
    ] = "rns,dns,bns",
    seeds: Annotated[int, typer.Option(help="runs per sampler, seeds 0, 1, …")] = 5,
    model: opt.ModelName = "mf",
    settings: opt.Settings = None,
    epochs: opt.Epochs = 100,
    select: opt.Select = "best",
    report: Annotated[Path, typer.Option(help="the HTML report to write")] = Path("report.html"),
    out: Annotated[Path | None, typer.Option(help="folder for one run folder per sampler and seed")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="keep what is finished in --out and go on")] = False,
    jobs: Annotated[int | None, typer.Option(help="runs at a time; as many as there are cores")] = None,
    evaluate_every: opt.EvaluateEvery = 1,
    validation: opt.Validation = None,
    test: opt.TestFile = None,
    test_share: opt.TestShare = None,
    split_by: opt.SplitBy = "interaction",
    split_seed: opt.SplitSeed = 0,
    user_column: opt.UserColumn = None,
    item_column: opt.ItemColumn = None,
    rating_column: opt.RatingColumn = None,
    time_column: opt.TimeColumn = None,
    user_columns: opt.UserColumns = None,
    separator: opt.Separator = None,
    header: opt.Header = None,
    min_rating: opt.MinRating = None,
    user_file: opt.UserFile = None,
    data_dir: opt.DataDir = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Compare samplers over several seeds: a table with intervals, and an HTML report.

    \b
    Example:
      bayesneg compare synthetic --samplers rns,dns,bns --seeds 3 --epochs 40
      bayesneg compare ml-100k --samplers rns,dns:candidates=5,bns:weight=2 --set dim=64 --report ml.html
    """
    from bayesneg.experiments.compare import compare as run_all
    from bayesneg.experiments.spec import SamplerSpec, build_model, sort_settings
    from bayesneg.report.html import write_report

    specs = [SamplerSpec.parse(text) for text in samplers.split(",") if text.strip()]
    if not specs:
        raise InputError("--samplers names no sampler; for example --samplers rns,dns,bns")
    if len({spec.label for spec in specs}) < len(specs):
        raise InputError("--samplers names a sampler twice with the same settings")
    if resume and out is None:
        raise InputError("--resume needs --out, the folder of the runs to go on with")
    if report.is_dir() or not report.resolve().parent.is_dir():
        raise InputError(f"--report {report} must be a file in an existing folder")
    for_model, _ = sort_settings(settings or (), model, specs[0])
    built = build_model(model, for_model)
    columns = opt.column_options(
        user_column, item_column, rating_column, time_column, user_columns, separator, header, min_rating
    )
    choice = opt.DataChoice(
        data, columns, data_dir, user_file, test, test_share, split_by, split_seed, validation, select
    )
    selection = choice.selection
    split = choice.split()
    records = run_all(
        split,
        {spec.label: spec.build(split) for spec in specs},
        model=built,
        seeds=seeds,
        epochs=epochs,
        select=selection,
        evaluate_every=evaluate_every,
        jobs=jobs,
        out=out,
        resume=resume,
        progress=not quiet,
    )
    written = write_report(records, report)
    if json:
        show_json({"report": str(written), "runs": [record.to_dict() for record in records]})
    else:
        show_comparison(records)
        show_quality(records)
        say(f"report: {written.resolve()}")
