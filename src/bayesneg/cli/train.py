"""``bayesneg train`` and ``bayesneg compare``."""

from __future__ import annotations

import sys
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.groups import command
from bayesneg.cli.interrupt import interruptible, resumable
from bayesneg.cli.output import counted, say, show_json, warnings_as_notes
from bayesneg.cli.output import show as show_text
from bayesneg.cli.show import show_comparison, show_quality, show_run
from bayesneg.cli.training import completions, judging
from bayesneg.cli.training.comparing import Comparing
from bayesneg.cli.training.listings import HelpAll
from bayesneg.cli.training.run_data import TrainReading, split_for
from bayesneg.errors import InputError

if TYPE_CHECKING:
    from bayesneg.data.splits import Split
    from bayesneg.interfaces import NegativeSampler


@command
def train(
    *,
    sampler: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default="bns",
            help="rns, pns, aobpr, dns, srns, bns and others, settings after colons: bns:candidates=10, or "
            "file.py:Class",
            rich_help_panel=opt.TRAINING,
            autocompletion=completions.samplers,
        ),
    ] = None,
    loss: opt.Loss = None,
    settings: opt.Settings = None,
    model: opt.Model = "mf",
    device: opt.Device = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            help="number of passes over the training interactions",
            show_default="200 with the recommended settings, else 100",
            rich_help_panel=opt.TRAINING,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="seed of initialization, shuffling and sampling", rich_help_panel=opt.TRAINING)
    ] = 0,
    evaluate_every: opt.EvaluateEvery = 1,
    evaluate_users: judging.EvaluateUsers = None,
    patience: judging.Patience = None,
    baselines: judging.Beside = "popularity,ease",
    final: judging.Final = False,
    label: Annotated[
        str | None,
        typer.Option(
            help="name of the run in tables", show_default="the sampler's settings", rich_help_panel=opt.TRAINING
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="new folder for the run")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="resume the interrupted run in --out")] = False,
    start: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="run folder to go on from, on newer data: known users and items start from its embeddings",
        ),
    ] = None,
    track: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STORE",
            help="also log to tensorboard:DIR, mlflow:URI or wandb:PROJECT (the extras tensorboard, mlflow, wandb); "
            "may be repeated",
        ),
    ] = None,
    splitting: opt.Selecting,
    reading: TrainReading,
    fingerprint: Annotated[
        str | None,
        typer.Option(help="refuse data and splits with another fingerprint", rich_help_panel=opt.SPLITTING),
    ] = None,
    allow_code: opt.AllowCode = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    help_all: HelpAll = False,
) -> None:
    """Train a model with a sampler and evaluate it.

    Without --model, --sampler, --loss and --set the recommended settings are
    trained: MF with BNS and a learned prior, at most 200 epochs, stopped after
    10 without a better one on 1,000 validation users. DATA may be a TOML file
    that describes the run; options replace what it says.

    \b
    Examples:
      bayesneg train synthetic
      bayesneg train ml-100k --sampler bns --set candidates=10 --out runs/bns
      bayesneg train ml-100k --model lightgcn --device cuda
      bayesneg train ml-100k --loss softmax:temperature=0.2 --sampler rns:negatives=16
      bayesneg train ml-100k --model ease --set l2=500
      bayesneg train clicks.csv --epochs 300 --patience 20 --final --out runs/served
      bayesneg train clicks.csv --user-column customer --sampler dns --json
      bayesneg train clicks.csv --start runs/last-week --epochs 10 --out runs/this-week
      bayesneg train runs/bns/run.toml --epochs 200 --out runs/longer
    """
    from bayesneg.config.loss_specs import as_loss
    from bayesneg.config.recommended import recommended
    from bayesneg.config.registry import BASELINES
    from bayesneg.config.specs import SamplerSpec, build_model, labelled, sort_settings, with_device
    from bayesneg.experiments.contenders import named_baselines
    from bayesneg.experiments.yardsticks import beside
    from bayesneg.progress import epoch_bar
    from bayesneg.runs.folder import check_free
    from bayesneg.runs.record import describe
    from bayesneg.runs.run import load_run
    from bayesneg.runs.tracked import check_trackers
    from bayesneg.runs.verdict import verdict
    from bayesneg.tracking.by_name import tracker_from
    from bayesneg.training import fit

    if resume and out is None:
        raise InputError("--resume needs --out, the folder of the run to resume")
    if final and out is None:
        raise InputError("--final needs --out, the folder of the model that is trained on all data")
    if final and out is not None and not resume:
        check_free(out)  # before the first training
    named_baselines(baselines)  # before any data is read
    is_baseline = model in BASELINES
    if is_baseline and sampler is not None:
        raise InputError(f"model {model} samples no negatives; drop --sampler")
    if is_baseline and loss is not None:
        raise InputError(f"model {model} learns from no negatives; drop --loss")
    chosen = None if is_baseline else as_loss(loss)
    selection = splitting.selection
    earlier = None if start is None else load_run(start)
    is_recommended = model == "mf" and not (sampler or loss or settings)
    if is_recommended and earlier is not None:  # it goes on as it began
        is_recommended = earlier.record.spec["model"] == describe(recommended()[0])
    parsed = [] if is_baseline else [SamplerSpec.parse(sampler or "bns")]
    for_model, specs = sort_settings(settings or (), model, parsed)
    built = build_model(model, with_device(for_model, model, device))
    if is_recommended:
        built, spec = recommended()
        specs = [spec]
        epochs = 200 if epochs is None else epochs
        evaluate_users = 1000 if evaluate_users is None else evaluate_users
        patience = 10 if patience is None and selection == "best" else patience
    label = label or (specs[0].label if specs else labelled(model.upper(), for_model))
    trackers = [tracker_from(text) for text in track or ()]
    check_trackers(trackers)  # before any data is read
    split = split_for(reading, splitting, fingerprint)
    if final and len(split.test) == 0:
        raise InputError("--final first evaluates on a test part, and this data has none; train it without --final")
    n_epochs = 1 if is_baseline else 100 if epochs is None else epochs
    given: dict[str, Any] = {"loss": chosen, "seed": seed, "label": label}

    def negatives(data: Split) -> NegativeSampler | None:
        return specs[0].build(data) if specs else None

    # what a custom sampler prints must not mix with --json
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))
        stack.enter_context(warnings_as_notes())
        stopping = stack.enter_context(resumable(None if final else out))
        show = stack.enter_context(epoch_bar(not quiet, label, n_epochs))
        run = fit(
            built,
            split,
            negatives(split),
            epochs=n_epochs,
            select=selection,
            evaluate_every=evaluate_every,
            evaluate_users=evaluate_users,
            patience=None if is_baseline else patience,
            out=None if final else out,
            resume=resume and not final,
            progress=stopping(show),
            start=earlier,
            **given,
            observer=trackers,
        )
    if start is not None:
        facts = run.record.spec["start"]
        parts = (
            f"{facts[f'n_known_{what}']:,} known and {facts[f'n_new_{what}']:,} new {what}"
            for what in ("users", "items")
        )
        say(f"started from {start}: {', '.join(parts)}")
    others = beside(run, baselines)
    said = verdict(run.record, others)
    if start is not None and (seen := run.record.spec["start"]["n_held_out_seen"]):
        said = (
            f"No verdict: {seen:,} of {run.record.spec['start']['n_held_out']:,} held-out interactions were training "
            f"data of {start}, so the metrics are too high; split by time (--split-by time), or give --test FILE with "
            "newer interactions."
        )
    if final:
        everything, n_epochs = split.whole(), run.record.reported_epoch
        say(f"training on all {len(everything.train):,} interactions for {counted(n_epochs, 'epoch', 'epochs')}")
        with redirect_stdout(sys.stderr), resumable(out) as stopping, epoch_bar(not quiet, label, n_epochs) as show:
            fit(
                built,
                everything,
                negatives(everything),
                epochs=n_epochs,
                select="last",
                evaluate_every=n_epochs,
                out=out,
                resume=resume,
                progress=stopping(show),
                start=earlier,
                **given,
            )
    if json:
        found = {"baselines": {one.label: dict(one.final) for one in others}, "verdict": said, "trained_on_all": final}
        show_json({**run.record.to_dict(), **found, "out": None if out is None else str(out)})
        return
    show_run(run.record)
    if said:
        show_text(said)
    if final:
        said = "the metrics are of the model without the held-out part; the final model has seen everything"
        say(f"{said}, in {out}; next: bayesneg recommend {out} --user ID")
        return
    if out is not None:
        say(f"recorded in {out}; next: bayesneg report {out}")


@command
def compare(
    *,
    comparing: Comparing,
    splitting: opt.Selecting,
    reading: opt.Reading,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    help_all: HelpAll = False,
) -> None:
    """Compare samplers and losses over several seeds: a table with confidence intervals, and an HTML report.

    Popularity and EASE, which take seconds, are compared with them; the output
    says where a baseline is better and where runs were still improving.

    \b
    Examples:
      bayesneg compare synthetic --samplers rns,dns,bns --seeds 3 --epochs 40
      bayesneg compare ml-100k --samplers rns,bns,my.py:Mine --set dim=64
      bayesneg compare ml-100k --samplers bns --losses bpr,logistic
      bayesneg compare clicks.csv --samplers dns,dns:candidates=5 --out runs
      bayesneg compare ml-100k --samplers rns,bns --baselines popularity,ease:l2=500
    """
    from bayesneg.experiments.compare import compare as run_all
    from bayesneg.report.comparison import write_report

    page = comparing.page
    model, specs = comparing.prepared()
    selection = splitting.selection
    split = splitting.split(reading)
    with redirect_stdout(sys.stderr), interruptible(comparing.out):
        records = run_all(
            model,
            split,
            {spec.label: spec.build for spec in specs},
            select=selection,
            progress=not quiet,
            **comparing.how,
        )
    written = write_report(records, page)
    if json:
        runs = [record.to_dict() for record in records]
        out = None if comparing.out is None else str(comparing.out)
        show_json({"report": str(written), "out": out, "verdict": records.verdict, "runs": runs})
        return
    show_comparison(records)
    if records.verdict:
        show_text(records.verdict)
    show_quality(records)
    say(f"report: {written.resolve()}")
