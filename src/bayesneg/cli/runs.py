"""``bayesneg evaluate``, ``recommend`` and ``report``: what can be done with finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.output import number, say, show_json, show_table
from bayesneg.cli.tables import show_metrics
from bayesneg.errors import InputError

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="a folder that train --out or compare --out wrote")]


def evaluate(
    run: RunFolder,
    k: Annotated[
        str | None, typer.Option("-k", "--k", help="list lengths, comma-separated; 5,10,20 unless given")
    ] = None,
    part: Annotated[str, typer.Option(help="test or validation")] = "test",
    per_user: Annotated[Path | None, typer.Option(help="also write one row per user to this CSV file")] = None,
    json: opt.Json = False,
) -> None:
    """Rank the full catalogue with a finished run and print every metric with its interval over users.

    \b
    Example:
      bayesneg evaluate runs/bns -k 5,10,20,50
    """
    from bayesneg.runs.run import load_run

    if per_user is not None and not per_user.resolve().parent.is_dir():
        raise InputError(f"--per-user {per_user} must be a file in an existing folder")
    found = load_run(run).evaluate(k=None if k is None else _lengths(k), part=part)
    if per_user is not None:
        found.per_user.write_csv(per_user)
        say(f"one row per user in {per_user}")
    if json:
        show_json(found.to_dict())
    else:
        show_metrics(found)


def recommend(
    run: RunFolder,
    user: Annotated[str, typer.Option(help="a user id as it stands in the data")],
    k: Annotated[int, typer.Option("-k", "--k", help="how many items")] = 10,
    json: opt.Json = False,
) -> None:
    """The best items a user has not chosen yet.

    \b
    Example:
      bayesneg recommend runs/bns --user 196 -k 10
    """
    from bayesneg.runs.run import load_run

    best = load_run(run).recommend(user, k=k)
    if json:
        show_json({"user": user, "items": [{"item": item, "score": score} for item, score in best]})
    else:
        rows = [(str(place), str(item), number(score)) for place, (item, score) in enumerate(best, 1)]
        show_table(f"for user {user}", ("", "item", "score"), rows)


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="run folders, or folders of run folders")],
    output: Annotated[Path, typer.Option("-o", "--output", help="the HTML file to write")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="heading of the report")] = None,
    json: opt.Json = False,
) -> None:
    """One HTML file with tables and curves, made from the records of finished runs.

    \b
    Example:
      bayesneg report runs/rns runs/bns -o report.html
    """
    from bayesneg.report.html import write_report
    from bayesneg.runs.folder import find_runs, read_record

    records = [read_record(folder) for path in runs for folder in find_runs(path)]
    if not output.resolve().parent.is_dir():
        raise InputError(f"-o {output} must be a file in an existing folder")
    written = write_report(records, output, title=title)
    if json:
        show_json({"report": str(written), "n_runs": len(records)})
    else:
        say(f"report of {len(records)} run{'s' if len(records) > 1 else ''}: {written.resolve()}")


def _lengths(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"-k must be whole numbers separated by commas, got {text!r}") from None
