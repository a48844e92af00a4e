"""``bayesneg evaluate``, ``recommend`` and ``report``: commands on finished runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.output import check_file, counted, report_file, say, show, show_json, show_table
from bayesneg.cli.show import show_report
from bayesneg.errors import InputError
from bayesneg.report.names import number

if TYPE_CHECKING:
    import polars as pl

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="a run folder that train --out or compare --out wrote")]

PER_USER: Final[dict[str, Callable[[pl.DataFrame, Path], None]]] = {  # ending → how the rows are written
    ".csv": lambda frame, path: frame.write_csv(path),
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
    json: opt.Json = False,
) -> None:
    """Evaluate a finished run over the full catalogue: every metric with its 95% interval over users.

    \b
    Example:
      bayesneg evaluate runs/bns -k 5,10,20,50
    """
    from bayesneg.runs.run import load_run

    if per_user is not None:
        check_file(per_user, "--per-user")
        if per_user.suffix.lower() not in PER_USER:
            raise InputError(f"--per-user {per_user} must end in {' or '.join(PER_USER)}, which says how it is written")
    lengths = None if k is None else _lengths(k)
    loaded = load_run(run)
    found = loaded.evaluate(k=lengths, part=part)
    if per_user is not None:
        PER_USER[per_user.suffix.lower()](found.per_user, per_user)
        say(f"one row per user in {per_user}")
    if json:
        show_json({"run": str(run), **found.to_dict()})
    else:
        show_report(found)


def recommend(
    run: RunFolder,
    user: Annotated[str, typer.Option(metavar="ID", help="user identifier, as in the data")],
    k: Annotated[int, typer.Option("-k", "--k", metavar="N", help="number of items")] = 10,
    include_held_out: Annotated[
        bool,
        typer.Option("--include-held-out", help="also recommend items of the user's validation and test part"),
    ] = False,
    json: opt.Json = False,
) -> None:
    """Recommend items that a user has not interacted with: everything known of the user is excluded.

    \b
    Example:
      bayesneg recommend runs/bns --user 196 -k 10
    """
    from bayesneg.runs.run import load_run

    loaded = load_run(run)
    best = loaded.recommend(user, k=k, include_held_out=include_held_out)
    split = loaded.split
    number_of = split.train.user_number(user)
    parts = {"training": split.train, "validation": split.validation, "test": split.test}
    known = {name: 0 if part is None else int(part.counts[number_of]) for name, part in parts.items()}
    excluded = {name: n for name, n in known.items() if name == "training" or not include_held_out}
    if known["training"] == 0:
        say(f"user {user} has no training interactions: the model learned nothing about it, and the list is arbitrary")
    if len(best) < k:
        say(f"user {user} has only {len(best):,} items left without an interaction")
    if json:
        items = [{"item": item, "score": score} for item, score in best]
        show_json(
            {
                "user": split.train.user_ids[number_of],
                "n_training_interactions": known["training"],
                "excluded": excluded,
                "items": items,
            }
        )
    else:
        named = ", ".join(f"{n:,} {name}" for name, n in excluded.items() if n) or "none known"
        rows = [(str(place), str(item), number(score)) for place, (item, score) in enumerate(best, 1)]
        show_table(f"for user {user}", ("", "item", "score"), rows, n_text=2)
        show(f"items of the user excluded: {named}")


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="run folders, or folders of run folders")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="HTML file to write",
            show_default="report.html, or report-2.html … where that exists",
        ),
    ] = None,
    force: opt.Force = False,
    title: Annotated[
        str | None, typer.Option(help="heading of the report", show_default="samplers and datasets")
    ] = None,
    json: opt.Json = False,
) -> None:
    """Write one HTML report of finished runs, with tables and learning curves.

    \b
    Example:
      bayesneg report runs/rns runs/bns -o report.html
    """
    from bayesneg.report.comparison import write_report
    from bayesneg.runs.folder import find_runs, read_record, reading

    page = report_file(output, "-o", default="report.html", force=force)
    folders = {folder.resolve(): folder for path in runs for folder in find_runs(path)}  # each run once
    records = []
    for folder in folders.values():
        with reading(folder):
            records.append(read_record(folder))
    written = write_report(records, page, title=title)
    if json:
        show_json({"report": str(written), "n_runs": len(records)})
    else:
        show(f"report of {counted(len(records), 'run', 'runs')}: {written.resolve()}")


def _lengths(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"-k must be whole numbers separated by commas, got {text!r}") from None
