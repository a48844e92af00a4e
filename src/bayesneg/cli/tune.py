"""``bayesneg compare --tune``: what the search and its advice look like on a terminal and in files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

from bayesneg.cli.options import Reading, Splitting
from bayesneg.cli.output import say, show_json, show_table
from bayesneg.cli.show import show_comparison
from bayesneg.report.names import number
from bayesneg.runs.folder import write_json
from bayesneg.runs.tuning_result import Tuning

RECOMMENDED: Final = "recommended.json"
SHOWN: Final = 10  # best trials in the table; the report has all


def present(tuning: Tuning, command: str, *, report: Path, out: Path | None, json: bool) -> None:
    """The report, the files in ``out``, and the tables or the JSON object."""
    from bayesneg.report.html import write_report
    from bayesneg.report.search import tuning_sections

    sections = {tuning.records[0].dataset: tuning_sections(tuning)}
    written = write_report(tuning.records, report, first=sections)
    if out is not None:
        write_json(out / RECOMMENDED, {**tuning.to_dict()["recommended"], "command": command})
    if json:
        where = {"report": str(written), "out": None if out is None else str(out)}
        show_json({**where, "command": command, **tuning.to_dict()})
        return
    _show_trials(tuning)
    show_comparison(tuning.records)
    say(f"\n{tuning.advice.text}\n\n  {command}\n")
    if out is not None:
        say(f"setting and command: {out / RECOMMENDED}; every trial: {out / 'tuning.json'}")
    say(f"report: {written.resolve()}")


def train_command(
    reading: Reading,
    splitting: Splitting,
    *,
    model: str,
    settings: Mapping[str, Any] | None = None,
    sampler: str | None = None,
    epochs: int | None = None,
    evaluate_every: int = 1,
) -> str:
    """The command that trains one setting on the same data and split; a baseline has neither sampler nor epochs."""
    parts = ["bayesneg", "train", reading.data, *_given(reading), *_given(splitting), "--model", model]
    parts += [part for key, value in (settings or {}).items() for part in ("--set", f"{key}={value}")]
    parts += [] if sampler is None else ["--sampler", sampler]
    parts += [] if epochs is None else ["--epochs", str(epochs)]
    parts += [] if evaluate_every == 1 else ["--evaluate-every", str(evaluate_every)]  # it decides the best epoch
    return shlex.join([*parts, "--out", "runs/recommended"])


def _given(options: Reading | Splitting) -> list[str]:
    """Those options that differ from their defaults, as they were given."""
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


def _show_trials(tuning: Tuning) -> None:
    ranked = sorted(tuning.trials, key=lambda trial: (trial.state == "failed", -(trial.value or 0.0)))
    rows = [
        (trial.label, number(trial.value, 4), str(trial.number), str(max(trial.curve, default=0)))
        for trial in ranked[:SHOWN]
    ]
    ended = [trial.state for trial in tuning.trials]
    counts = f"{len(ended)} trials, {ended.count('pruned')} given up early, {ended.count('failed')} failed"
    show_table(f"search on validation data: {counts}", ("setting", tuning.advice.key, "trial", "epochs"), rows)
    for trial in tuning.trials:
        if trial.state == "failed":
            say(f"trial {trial.number}, {trial.label}, failed: {trial.why}")
