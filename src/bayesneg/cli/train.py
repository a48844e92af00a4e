"""``bayesneg train`` and ``bayesneg compare``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.groups import command
from bayesneg.cli.interrupt import resumable, say_interrupted
from bayesneg.cli.output import say, show_json
from bayesneg.cli.show import show_comparison, show_quality, show_run
from bayesneg.cli.tune import present, train_command
from bayesneg.errors import InputError

TRIALS: Final = 25  # of a search


@command
def train(
    *,
    sampler: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default="bns",
            help="rns, pns, aobpr, dns, srns, bns and its variants, or file.py:Class; all are listed below",
            rich_help_panel=opt.TRAINING,
        ),
    ] = None,
    settings: opt.Settings = None,
    model: opt.Model = "mf",
    device: opt.Device = None,
    epochs: opt.Epochs = 100,
    seed: Annotated[
        int, typer.Option(help="of the initial vectors, the order and every draw", rich_help_panel=opt.TRAINING)
    ] = 0,
    evaluate_every: opt.EvaluateEvery = 1,
    out: Annotated[Path | None, typer.Option(help="new folder to record the run in")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the interrupted run in --out")] = False,
    splitting: opt.Splitting,
    reading: opt.Reading,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Train one model with one sampler, and say how good it is.

    \b
    Examples:
      bayesneg train synthetic --sampler bns --epochs 30
      bayesneg train ml-100k --set candidates=10 --out runs/bns
      bayesneg train ml-100k --model lightgcn --device cuda
      bayesneg train ml-100k --model ease --set l2=500
      bayesneg train clicks.csv --user-column customer --sampler dns --json
    """
    from bayesneg.config.registry import BASELINES
    from bayesneg.config.specs import SamplerSpec, build_model, labelled, sort_settings, with_device
    from bayesneg.progress import epoch_bar
    from bayesneg.training import fit

    if resume and out is None:
        raise InputError("--resume needs --out, the folder of the run to go on with")
    is_baseline = model in BASELINES
    if is_baseline and sampler is not None:
        raise InputError(f"model {model} samples no negatives; drop --sampler")
    parsed = [] if is_baseline else [SamplerSpec.parse(sampler or "bns")]
    for_model, specs = sort_settings(settings or (), model, parsed)
    label = specs[0].label if specs else labelled(model.upper(), for_model)
    built = build_model(model, with_device(for_model, model, device))
    selection = splitting.selection
    split = splitting.split(reading)
    n_epochs = 1 if is_baseline else epochs
    # what a sampler of the user's own prints must not mix with --json
    with redirect_stdout(sys.stderr), resumable(out) as stopping, epoch_bar(not quiet, label, n_epochs) as show:
        run = fit(
            built,
            split,
            specs[0].build(split) if specs else None,
            epochs=n_epochs,
            seed=seed,
            select=selection,
            evaluate_every=evaluate_every,
            label=label,
            out=out,
            resume=resume,
            progress=stopping(show),
        )
    if json:
        show_json({**run.record.to_dict(), "out": None if out is None else str(out)})
        return
    show_run(run.record)
    if out is not None:
        say(f"recorded in {out}; next: bayesneg report {out} -o report.html")


@command
def compare(
    *,
    samplers: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="comma-separated, settings after colons: rns,dns:candidates=5; bayesneg train --help lists them all",
            rich_help_panel=opt.TRAINING,
        ),
    ] = "rns,dns,bns",
    baselines: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="models without sampler to show beside: popularity, item-knn, ease, als; settings after colons",
            rich_help_panel=opt.TRAINING,
        ),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="first search the settings that were not given on validation data, then compare the best of each "
            "sampler and say what to use; needs the extra tune",
            rich_help_panel=opt.TUNING,
        ),
    ] = False,
    trials: Annotated[
        int | None,
        typer.Option(help="with --tune: settings to try", show_default="25", rich_help_panel=opt.TUNING),
    ] = None,
    seeds: Annotated[int, typer.Option(help="runs per sampler, seeds 0, 1, …", rich_help_panel=opt.TRAINING)] = 5,
    settings: opt.Settings = None,
    model: opt.ModelOfSamplers = "mf",
    device: opt.Device = None,
    epochs: opt.Epochs = 100,
    evaluate_every: opt.EvaluateEvery = 1,
    jobs: Annotated[
        int | None,
        typer.Option(help="runs at a time", show_default="one per core; on a GPU 1", rich_help_panel=opt.TRAINING),
    ] = None,
    report: Annotated[Path, typer.Option(help="the HTML report to write")] = Path("report.html"),
    out: Annotated[Path | None, typer.Option(help="folder for one run folder per sampler and seed")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="keep what is finished in --out and go on")] = False,
    splitting: opt.Splitting,
    reading: opt.Reading,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Compare samplers over several seeds: a table with intervals, and an HTML report.

    \b
    Examples:
      bayesneg compare synthetic --samplers rns,dns,bns --seeds 3 --epochs 40
      bayesneg compare ml-100k --samplers rns,bns,my.py:Mine --set dim=64
      bayesneg compare clicks.csv --samplers dns,dns:candidates=5 --out runs
      bayesneg compare clicks.csv --tune --trials 40 --out tuned
      bayesneg compare ml-100k --samplers rns,bns --baselines popularity,ease:l2=500
    """
    from bayesneg.config.registry import BASELINES
    from bayesneg.config.settings import changed
    from bayesneg.config.specs import (
        baseline_specs,
        build_baselines,
        build_model,
        parse_samplers,
        sort_settings,
        with_device,
    )
    from bayesneg.experiments.compare import compare as run_all
    from bayesneg.report.html import write_report
    from bayesneg.tuning.tune import BESIDE
    from bayesneg.tuning.tune import tune as search

    if resume and out is None:
        raise InputError("--resume needs --out, the folder of the runs to go on with")
    if trials is not None and not tune:
        raise InputError("--trials goes with --tune; add --tune, or drop --trials")
    opt.check_file(report, "--report")
    if model in BASELINES:
        raise InputError(f"model {model} samples no negatives; compare shows it with --baselines {model}")
    named = baseline_specs(BESIDE if tune and baselines is None else baselines or "")
    beside = build_baselines(named)
    for_model, specs = sort_settings(settings or (), model, parse_samplers(samplers))
    for_model = with_device(for_model, model, device)
    built = build_model(model, for_model)
    labels = [spec.label for spec in specs]
    if twice := {label for label in labels if labels.count(label) > 1}:
        raise InputError(f"--samplers has {min(twice)} twice; give each once, or with other settings")
    selection = splitting.selection
    if tune and selection == "last":
        raise InputError("--tune chooses on validation data, the epoch as well; drop --select last")
    split = splitting.split(reading)
    how: dict[str, Any] = {
        "seeds": seeds,
        "epochs": epochs,
        "evaluate_every": evaluate_every,
        "jobs": jobs,
        "out": out,
        "resume": resume,
        "progress": not quiet,
    }
    try:
        with redirect_stdout(sys.stderr):
            if tune:
                kept = [label for label, (_, given) in named.items() if given]
                n_trials = TRIALS if trials is None else trials
                tuning = search(split, specs, model=built, baselines=beside, as_given=kept, trials=n_trials, **how)
            else:
                named_specs = {spec.label: spec.build for spec in specs}
                records = run_all(built, split, named_specs, baselines=beside, select=selection, **how)
    except KeyboardInterrupt:
        say_interrupted(out)
        raise
    if tune:
        trained: dict[str, Any]
        if tuning.sampler is None:
            kind = next(kind for label, (kind, _) in named.items() if isinstance(tuning.model, type(beside[label])))
            trained = {"model": kind, "settings": changed(tuning.model)}
        else:
            trained = {
                "model": model,
                "settings": for_model,
                "sampler": tuning.written,
                "epochs": epochs,
                "evaluate_every": evaluate_every,
            }
        present(tuning, train_command(reading, splitting, **trained), report=report, out=out, json=json)
        return
    written = write_report(records, report)
    if json:
        runs = [record.to_dict() for record in records]
        show_json({"report": str(written), "out": None if out is None else str(out), "runs": runs})
        return
    show_comparison(records)
    show_quality(records)
    say(f"report: {written.resolve()}")
