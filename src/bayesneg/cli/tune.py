"""``bayesneg tune``."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.groups import command
from bayesneg.cli.interrupt import interruptible, told
from bayesneg.cli.output import counted, named_as_options, say, show, show_json, show_table, warnings_as_notes
from bayesneg.cli.show import show_comparison
from bayesneg.cli.training.comparing import Tuning
from bayesneg.cli.training.listings import HelpAll
from bayesneg.errors import InputError

if TYPE_CHECKING:
    from bayesneg.runs.tuning_result import TuningResult

RECOMMENDED: Final = "recommended.json"
SHOWN: Final = 10  # best trials in the table; the report has all


@command
def tune(
    *,
    trials: Annotated[int, typer.Option(help="settings to try on validation data", rich_help_panel=opt.TUNING)] = 30,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="time for everything, the advice included",
            rich_help_panel=opt.TUNING,
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="postgresql://… or a shared file: all processes that are given it share the search",
            rich_help_panel=opt.TUNING,
        ),
    ] = None,
    study: Annotated[
        str, typer.Option(metavar="NAME", help="name of the search in --storage", rich_help_panel=opt.TUNING)
    ] = "tune",
    trials_only: Annotated[
        bool,
        typer.Option(
            "--trials-only",
            help="make trials only; another process advises",
            rich_help_panel=opt.TUNING,
        ),
    ] = False,
    comparing: Tuning,
    splitting: opt.Splitting,
    reading: opt.Reading,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    help_all: HelpAll = False,
) -> None:
    """Search losses and samplers on validation data, and recommend one.

    Unless --samplers, --loss or --model is given, these are searched: softmax
    over a shared pool of uniform negatives and over in-batch negatives, each
    with posterior weights and without (these need the extra torch); BPR with
    BNS; BPR with plain RNS. Settings that are not given are searched:
    temperature and negative weight of a loss; candidates, λ, prior, likelihood.
    The best of each is then compared over several seeds with plain RNS and the
    baselines; test labels are used only there. The output is a sentence that
    says what to use and why, the command that trains it, the table, and an
    HTML report. Needs the extra tune: pip install 'bayesneg\\[tune]'.

    \b
    Examples:
      bayesneg tune clicks.csv --out tuned
      bayesneg tune clicks.csv --minutes 20 --out tuned
      bayesneg tune clicks.csv --out tuned --resume
      bayesneg tune ml-100k --samplers rns,bns --loss softmax --epochs 40
      bayesneg tune clicks.csv --storage postgresql://me@db/searches --out tuned
      bayesneg tune ml-100k --baselines ease:l2=500,als --seeds 3 --json
    """
    from bayesneg.report.tuning import write_tuning_report
    from bayesneg.runs.folder import write_json
    from bayesneg.tuning.studies import Shared, require_optuna
    from bayesneg.tuning.tune import run_trials
    from bayesneg.tuning.tune import tune as search

    if storage is None and (trials_only or study != "tune"):
        raise InputError("--study and --trials-only are for a search that is shared; give --storage")
    if storage is not None:
        require_optuna()
        Shared(storage, study).check()  # before any data is read
    page = comparing.page
    model, samplers = comparing.searched()
    if splitting.validation == 0:
        raise InputError("tune selects settings and epochs on validation data; --validation must be above 0, got 0")
    split = splitting.split(reading)
    with (
        redirect_stdout(sys.stderr),
        warnings_as_notes(),
        named_as_options("trials", "minutes", *comparing.how),
        _interruptible(storage, comparing.out),
    ):
        how: dict[str, Any] = {
            "trials": trials,
            "minutes": minutes,
            "storage": storage,
            "study": study,
            "progress": not quiet,
        }
        if trials_only:
            left_out = ("baselines", "seeds", "jobs")
            work = {key: value for key, value in comparing.how.items() if key not in left_out}
            done = run_trials(model, split, samplers, **how, **work)
        else:
            found = search(model, split, samplers, **how, **comparing.how)
    if trials_only:
        n_done = counted(len(done), "trial is", "trials are")
        say(f"{n_done} done in the study {study}; the same command without --trials-only advises")
        return
    train = train_command(found, reading, splitting)
    written = write_tuning_report(found, page, command=train)
    out = comparing.out
    if out is not None:
        write_json(out / RECOMMENDED, {**found.to_dict()["recommended"], "command": train})
    if json:
        where = {"report": str(written), "out": None if out is None else str(out)}
        show_json({**where, "command": train, **found.to_dict()})
        return
    show(f"{found.recommendation}\n\n  {train}\n")
    show_comparison(found.records, with_finding=False)
    for note in found.advice.notes:
        show(note)
    _show_trials(found)
    if out is not None:
        say(f"recommendation and command: {out / RECOMMENDED}; every trial: {out / 'tuning.json'}")
    say(f"report: {written.resolve()}")


@contextmanager
def _interruptible(storage: str | None, out: Path | None) -> Iterator[None]:
    """Says after Ctrl-C what is kept: of a shared search, every trial that ended."""
    if storage is None:
        with interruptible(out):
            yield
        return
    try:
        yield
    except KeyboardInterrupt as error:
        again = "" if out is None else " and --resume"
        told(error, f"interrupted; --storage keeps the trials that ended; go on with the same command{again}")
        raise


def train_command(found: TuningResult, reading: opt.Reading, splitting: opt.Splitting) -> str:
    """The command that trains the recommendation on the same data and split.

    The folder is named after what is trained, so that another recommendation has another one; with ``--resume`` the
    command works a second time.
    """
    parts = ["bayesneg", "train", reading.data, *_given(reading), *_given(splitting), *(found.options or ())]
    content = hashlib.sha256("\0".join([*parts, str(found.plan["data"])]).encode()).hexdigest()[:8]
    return shlex.join([*parts, "--out", f"runs/recommended-{content}", "--resume"])


def _given(options: opt.Reading | opt.Splitting) -> list[str]:
    """The options that differ from their defaults, as they were given."""
    found: list[str] = []
    for item in fields(options):
        value, flag = getattr(options, item.name), f"--{item.name.replace('_', '-')}"
        if item.default is MISSING or value == item.default:
            continue
        if isinstance(value, bool):
            found.append(flag if value else f"--no-{item.name}")
        else:
            found += [flag, str(value)]
    return found


def _show_trials(found: TuningResult) -> None:
    from bayesneg.evaluation.metric_names import metric_name
    from bayesneg.report.names import number

    ranked = sorted(found.trials, key=lambda trial: (trial.state == "failed", -(trial.value or 0.0)))
    rows = [
        (trial.label, number(trial.value, 4), str(trial.number), str(max(trial.curve, default=0)))
        for trial in ranked[:SHOWN]
    ]
    ended = [trial.state for trial in found.trials]
    counts = f"{counted(len(ended), 'trial', 'trials')}, {ended.count('pruned')} pruned, {ended.count('failed')} failed"
    heads = ("setting", metric_name(found.advice.key), "trial", "epochs")
    show_table(f"search on validation data: {counts}", heads, rows)
    for trial in found.trials:
        if trial.state == "failed":
            say(f"trial {trial.number}, {trial.label}, failed: {trial.why}")
