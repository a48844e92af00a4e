"""``bayesneg audit``: the negatives that samplers pick."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.groups import command
from bayesneg.cli.interrupt import interruptible
from bayesneg.cli.output import (
    check_file,
    named_as_options,
    report_file,
    say,
    show,
    show_json,
    show_table,
    warnings_as_notes,
)
from bayesneg.cli.show import mean_text
from bayesneg.cli.training.comparing import contenders
from bayesneg.cli.training.listings import HelpAll
from bayesneg.errors import InputError

if TYPE_CHECKING:
    from bayesneg.data.splits import Split
    from bayesneg.report.audit_page.rows import AuditedSplit
    from bayesneg.runs.record import RunRecord

# what fits a narrow terminal, with its interval or without; the page has every interval
PICKS = {
    "fn_gradient": "gradient",
    "tnr": "TNR",
    "inf": "INF",
    "hardness": "hard",
    "head": "head",
    "middle": "middle",
    "tail": "tail",
    "skipped_share": "skipped",
}
CALIBRATION = {
    "mean_predicted": "predicted",
    "observed_rate": "observed",
    "brier": "Brier",
    "brier_constant": "constant",
}
ALL = "rns,pns,aobpr,dns,srns,bns,bns:prior=learned:likelihood=mixture,posterior"


@dataclass(frozen=True)
class Hiding:
    """What is hidden from training, to be found among the picks."""

    hide: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="shares of each user's interactions to hide from training, comma-separated",
            show_default="0.2",
            rich_help_panel=opt.SPLITTING,
        ),
    ] = None
    split_seed: Annotated[int, typer.Option(help="seed of the hidden interactions", rich_help_panel=opt.SPLITTING)] = 0
    test: Annotated[
        Path | None,
        typer.Option(
            help="file with interactions to hide instead; DATA then has the training interactions",
            rich_help_panel=opt.SPLITTING,
        ),
    ] = None
    user_file: opt.UserFile = None

    @property
    def shares(self) -> list[float]:
        """Checked before any data is read."""
        if self.test is not None and self.hide is not None:
            raise InputError("--test gives the hidden interactions; drop --hide, or drop --test")
        opt.check_user_file(self.user_file, self.test)
        texts = [part.strip() for part in (self.hide or "0.2").split(",") if part.strip()]
        try:
            shares = [float(text) for text in texts]
        except ValueError:
            shares = []
        if not shares or not all(0 < share < 1 for share in shares) or len(set(shares)) < len(shares):
            raise InputError(f"--hide must be different shares between 0 and 1, such as 0.1,0.3,0.5, got {self.hide!r}")
        return shares

    def splits(self, reading: opt.Reading) -> dict[str, Split]:
        from bayesneg.data.load import read_split
        from bayesneg.experiments.audit import hide

        shares = self.shares
        if self.test is None:
            return hide(reading.load(), shares, seed=self.split_seed)
        given = read_split(reading.data, self.test, user_file=self.user_file, **reading.columns)
        return {given.train.name: given}


@command
def audit(
    *,
    samplers: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="samplers, comma-separated, settings after colons: dns:candidates=5,my.py:Mine,bns:prior=my.py:P; "
            "bayesneg train --help lists them all",
            rich_help_panel=opt.TRAINING,
        ),
    ] = ALL,
    loss: opt.Losses = None,
    seeds: opt.Seeds = 3,
    settings: opt.Settings = None,
    model: opt.ModelOfSamplers = "mf",
    device: opt.Device = None,
    epochs: opt.Epochs = 30,
    probes: Annotated[
        int,
        typer.Option(
            help="training pairs to probe after each epoch, for hardness and calibration", rich_help_panel=opt.TRAINING
        ),
    ] = 2000,
    users: Annotated[
        int,
        typer.Option(
            help="users whose picks the page shows one by one, 20 picks of each at most; 0 for none",
            rich_help_panel=opt.TRAINING,
        ),
    ] = 20,
    jobs: opt.Jobs = None,
    report: Annotated[
        Path | None,
        typer.Option(help="HTML page to write", show_default="audit-report.html, or audit-report-2.html …"),
    ] = None,
    force: opt.Force = False,
    item_data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="table of items with a column item or id and another, such as title, for the picks of a user",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="file that records each finished run in a line")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="keep the finished runs in --out and run the others")
    ] = False,
    hiding: Hiding,
    reading: opt.Reading,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    help_all: HelpAll = False,
) -> None:
    """Audit the negatives that samplers pick: false negatives, hardness, popularity, calibration.

    A share of each user's interactions is hidden from training. Where all
    preferences are known (synthetic, kuairec) every false negative among the
    picks is counted; elsewhere only the hidden ones, a lower bound.

    \b
    Examples:
      bayesneg audit synthetic --samplers rns,dns,bns --seeds 2 --epochs 10
      bayesneg audit kuairec --hide 0.1,0.3,0.5 --out kuairec.jsonl
      bayesneg audit clicks.csv --samplers my.py:Mine,bns:prior=my.py:Prior
    """
    from bayesneg.experiments.audit import audit as run_all
    from bayesneg.experiments.contenders import named_losses
    from bayesneg.report.audit_page.drill_down import item_names
    from bayesneg.report.audit_page.page import write_audit
    from bayesneg.report.audit_page.rows import summary

    if resume and out is None:
        raise InputError("--resume needs --out, the file of the finished runs")
    page = report_file(report, "--report", default="audit-report.html", force=force)
    if out is not None:
        check_file(out, "--out")
        if out.resolve() == page.resolve():
            raise InputError(f"--out and --report are both {out}; give two files")
    item_names(item_data)  # before any data is read, as the rest
    built, specs = contenders(samplers, model, settings, device)
    named_losses(loss)
    # what a custom sampler prints must not mix with --json
    with (
        redirect_stdout(sys.stderr),
        warnings_as_notes(),
        named_as_options("seeds", "epochs", "probes", "users", "jobs"),
        interruptible(out, "the finished runs"),
    ):
        found = run_all(
            built,
            hiding.splits(reading),
            {spec.label: spec.build for spec in specs},
            loss=loss,
            seeds=seeds,
            epochs=epochs,
            probes=probes,
            users=users,
            jobs=jobs,
            out=out,
            resume=resume,
            progress=not quiet,
        )
    written = write_audit(found.records, page, item_data=item_data)
    if json:
        runs = [record.to_dict() for record in found.records]
        own = {"report": str(written), "out": None if out is None else str(out)}
        show_json({**own, "samplers": summary(found.records), "runs": runs})
        return
    show_audit(found.records)
    say(f"report: {written.resolve()}")


def show_audit(records: Sequence[RunRecord]) -> None:
    """Two tables for each split, what is picked and how the posterior is calibrated, and one across the splits."""
    from bayesneg.report.audit_page.rows import audit_finding, audited, caution, gradient_finding, hidden_note

    found = audited(records)
    for split in found:
        _show_picks(split)
        if split.with_posterior:
            _show_calibration(split)
        show(audit_finding(split))
        for note in (gradient_finding(split), hidden_note(split), caution(split)):
            if note:
                show(note)
    if len(found) > 1:
        _show_across(found)


def _show_picks(split: AuditedSplit) -> None:
    from bayesneg.report.audit_page.rows import measured
    from bayesneg.report.details import loss_facts
    from bayesneg.report.names import UNIFORM, number

    rows = [
        (
            group.marked_name,
            mean_text(measured(group, "fn")),
            *(number(measured(group, key).mean, 3) for key in PICKS),
        )
        for group in split.groups
    ]
    rows.append((UNIFORM, number(split.uniform), *[""] * len(PICKS)))
    title = f"{split.name}: what is picked, last epoch"
    show_table(title, ("sampler", "false neg.", *PICKS.values()), rows)
    show(f"gradient: the share of the loss's gradient on negatives that falls on false ones; {loss_facts(split.runs)}")


def _show_calibration(split: AuditedSplit) -> None:
    from bayesneg.report.audit_page.rows import measured
    from bayesneg.report.names import number

    rows = []
    for group in split.with_posterior:
        means = [number(measured(group, key).mean) for key in CALIBRATION]
        rows.append((group.marked_name, mean_text(measured(group, "ece")), *means))
    title = f"{split.name}: is unbias calibrated, last epoch"
    show_table(title, ("sampler", "calibration error", *CALIBRATION.values()), rows)


def _show_across(found: Sequence[AuditedSplit]) -> None:
    from bayesneg.report.audit_page.rows import measured, short_names
    from bayesneg.report.names import UNIFORM, number

    rows = [
        (group.marked_name, *(mean_text(measured(split.groups[place], "fn")) for split in found))
        for place, group in enumerate(found[0].groups)
    ]
    rows.append((UNIFORM, *(number(split.uniform) for split in found)))
    show_table("false negatives among the picks, last epoch", ("sampler", *short_names(found)), rows)
