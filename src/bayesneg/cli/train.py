"""``bayesneg train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.groups import command
from bayesneg.cli.output import counted, say, show_json
from bayesneg.cli.output import show as show_text
from bayesneg.cli.show import show_run
from bayesneg.cli.training import completions, judging
from bayesneg.cli.training.fits import fitted
from bayesneg.cli.training.listings import HelpAll
from bayesneg.cli.training.plans import planned
from bayesneg.cli.training.processes import is_first, is_restarted, join, leave, one_after_another, say_once
from bayesneg.cli.training.run_data import TrainReading, split_for, with_metrics_of
from bayesneg.distributed import is_of_this_job
from bayesneg.errors import InputError

if TYPE_CHECKING:
    from bayesneg.runs.record import RunRecord


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
    model: opt.Model = None,
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
    baselines: judging.Beside = opt.BESIDE,
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
    ranks_timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="with torchrun: how long a process waits for the others",
            rich_help_panel=opt.TRAINING,
        ),
    ] = 1800.0,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    help_all: HelpAll = False,
) -> None:
    """Train a model with a sampler and evaluate it.

    Without --model, --sampler and --loss the recommended settings are
    trained: MF with BNS and a learned prior, at most 200 epochs, stopped after
    10 without a better one on 1,000 validation users. DATA may be a TOML file
    that describes the run, or the folder of a final run, which is trained
    again; options replace what it says.

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
    from bayesneg.experiments.contenders import named_baselines
    from bayesneg.experiments.yardsticks import beside
    from bayesneg.runs.run import load_run
    from bayesneg.runs.tracked import check_trackers
    from bayesneg.tracking.by_name import tracker_from

    join(device, ranks_timeout)
    resume = resume or (out is not None and is_restarted() and is_of_this_job(out))
    _check_out(out, resume=resume, final=final)
    named_baselines(baselines)  # before any data is read
    selection = splitting.selection
    earlier = None if start is None else load_run(start)
    plan = planned(
        model,
        sampler=sampler,
        loss=loss,
        settings=settings or (),
        device=device,
        label=label,
        epochs=epochs,
        evaluate_users=evaluate_users,
        patience=patience,
        selection=selection,
        earlier=earlier,
    )
    trackers = [tracker_from(text) for text in track or ()]
    check_trackers(trackers)  # before any data is read
    split = one_after_another(lambda: split_for(reading, splitting, fingerprint))
    if selection == "best" and split.validation is None:
        raise InputError(f"--select best needs validation data, and {reading.data} has none; give --select last")
    if final and len(split.test) == 0:
        raise InputError("--final first evaluates on a test part, and this data has none; train it without --final")
    run = fitted(
        plan,
        split,
        epochs=plan.epochs,
        out=None if final else out,
        resume=resume and not final,
        quiet=quiet or not is_first(),
        seed=seed,
        select=selection,
        evaluate_every=evaluate_every,
        evaluate_users=plan.evaluate_users,
        patience=plan.patience,
        start=earlier,
        observer=trackers,
    )
    if not final:
        run = with_metrics_of(run, Path(reading.data), out)
    if plan.note:
        say_once(plan.note)
    if start is not None:
        say_once(f"started from {start}: {_known_and_new(run.record)}")
    if final:
        everything, n_epochs = split.whole(), run.record.reported_epoch
        say_once(f"training on all {len(everything.train):,} interactions for {counted(n_epochs, 'epoch', 'epochs')}")
        fitted(
            plan,
            everything,
            epochs=n_epochs,
            out=out,
            resume=resume,
            quiet=quiet or not is_first(),
            seed=seed,
            select="last",
            evaluate_every=n_epochs,
            start=earlier,
            measured_by=run,
        )
    leave()
    if not is_first():
        return
    others = beside(run, baselines)
    said = _verdict(run.record, others, start)
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


def _check_out(out: Path | None, *, resume: bool, final: bool) -> None:
    """Before anything is trained."""
    from bayesneg.runs.folder import check_free

    if resume and out is None:
        raise InputError("--resume needs --out, the folder of the run to resume")
    if final and out is None:
        raise InputError("--final needs --out, the folder of the model that is trained on all data")
    if final and out is not None and not resume:
        check_free(out)


def _known_and_new(record: RunRecord) -> str:
    facts = record.spec["start"]
    return ", ".join(
        f"{facts[f'n_known_{what}']:,} known and {facts[f'n_new_{what}']:,} new {what}" for what in ("users", "items")
    )


def _verdict(record: RunRecord, others: list[RunRecord], start: Path | None) -> str:
    """What is said of the result; none is given on data that the start was trained on."""
    from bayesneg.runs.verdict import verdict

    if start is None or not (seen := record.spec["start"]["n_held_out_seen"]):
        return verdict(record, others)
    return (
        f"No verdict: {seen:,} of {record.spec['start']['n_held_out']:,} held-out interactions were training data of "
        f"{start}, so the metrics are too high; split by time (--split-by time), or give --test FILE with newer "
        "interactions."
    )
