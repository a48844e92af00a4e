"""``bayesneg evaluate``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.finished.arguments import RunFolder
from bayesneg.cli.output import check_file, say, show_json
from bayesneg.cli.show import show_report
from bayesneg.errors import InputError
from bayesneg.recommendation.table_files import for_spreadsheets
from bayesneg.runs.reported import measured_before
from bayesneg.whole_files import write_whole

if TYPE_CHECKING:
    import polars as pl

    from bayesneg.runs.record import RunRecord

PER_USER: Final[dict[str, Callable[[pl.DataFrame, Path], None]]] = {  # ending → how the rows are written
    ".csv": lambda frame, path: for_spreadsheets(frame).write_csv(path),
    ".parquet": lambda frame, path: frame.write_parquet(path),
}


def evaluate(
    run: RunFolder,
    k: Annotated[
        str | None, typer.Option("-k", "--k", metavar="N,N,…", help="list lengths", show_default="5,10,20")
    ] = None,
    part: Annotated[str, typer.Option(help="test or validation")] = "test",
    per_user: Annotated[
        Path | None, typer.Option(help="also write one row per user to this file, .csv or .parquet")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="replace --per-user if it exists")] = False,
    json: opt.Json = False,
) -> None:
    """Evaluate a finished run over the full catalogue: every metric with its 95% interval over users.

    \b
    Example:
      bayesneg evaluate runs/bns -k 5,10,20,50
    """
    from bayesneg.runs.run import load_run

    _check_per_user(per_user, force)
    lengths = None if k is None else _lengths(k)
    loaded = load_run(run)
    if not len(loaded.split.test):
        raise _nothing_left(run, loaded.record)
    found = loaded.evaluate(k=lengths, part=part)
    if per_user is not None:
        write = PER_USER[per_user.suffix.lower()]
        write_whole(per_user, lambda part: write(found.per_user, part))
        say(f"one row per user in {per_user}")
    if json:
        show_json({"run": str(run), **found.to_dict()})
    else:
        show_report(found, loaded.record)


def _check_per_user(path: Path | None, force: bool) -> None:
    """Before the run is read."""
    if path is None:
        if force:
            raise InputError("--force goes with --per-user, the file to replace")
        return
    if path.suffix.lower() not in PER_USER:
        raise InputError(f"--per-user {path} must end in {' or '.join(PER_USER)}, which says how it is written")
    if path.is_file() and not force:
        raise InputError(f"--per-user {path} exists; name another file, or replace it with --force")
    check_file(path, "--per-user")


def _nothing_left(run: Path, record: RunRecord) -> InputError:
    """A final model was measured before, if at all."""
    way_out = measured_before(record) or "evaluate a run with a test part"
    return InputError(f"{run} was trained on all data, so that there is nothing to evaluate it on; {way_out}")


def _lengths(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"-k must be whole numbers separated by commas, got {text!r}") from None
