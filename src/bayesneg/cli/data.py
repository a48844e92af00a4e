"""``bayesneg data``: list, download, describe, prepare and verify datasets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.groups import command
from bayesneg.cli.output import as_text, say, show, show_json, show_table
from bayesneg.cli.prepare import prepare
from bayesneg.errors import InputError

if TYPE_CHECKING:
    from bayesneg.data.interactions import Interactions

app = typer.Typer(help="List, download, describe, prepare and verify datasets.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="ml-100k or ml-1m")]
QUANTILES = {"least": 0.0, "median": 0.5, "most": 1.0}


@app.command("list")
def list_datasets(data_dir: opt.DataDir = None, json: opt.Json = False) -> None:
    """List the built-in datasets, and where they are on this machine.

    \b
    Example:
      bayesneg data list
    """
    from bayesneg.data.catalogue import BUILT_IN, where

    rows = []
    for name, dataset in BUILT_IN.items():
        folder = None if name == "synthetic" else where(name, data_dir=data_dir)
        rows.append({"name": name, "what": dataset.what, "how": dataset.how, "folder": folder and str(folder)})
    if json:
        show_json({"datasets": rows})
        return
    for row in rows:
        state = row["folder"] or ("built in" if row["name"] == "synthetic" else row["how"])
        show(f"{row['name']:<10} {row['what']}\n{'':<10} → {state}")


@app.command()
def get(name: Name, data_dir: opt.DataDir = None, json: opt.Json = False) -> None:
    """Download, verify and unpack a dataset; safe to interrupt and to repeat.

    \b
    Example:
      bayesneg data get ml-100k
    """
    from bayesneg.data.catalogue import built_in, download

    with _download_bar(name) as progress:
        fetched = download(name, data_dir=data_dir, progress=progress)
    if json:
        show_json({"name": name, **asdict(fetched), "folder": str(fetched.folder)})
        return
    say(built_in(name).terms)
    verb = "was already in" if fetched.already_there else "is now in"
    show(f"{name} {verb} {fetched.folder}")
    say(f"next: bayesneg compare {name}")


@app.command()
@command
def describe(reading: opt.Reading, json: opt.Json = False) -> None:
    """Describe a dataset: counts, density, popularity skew, user columns.

    \b
    Examples:
      bayesneg data describe ml-100k
      bayesneg data describe clicks.csv --user-column customer
    """
    facts = _facts(reading.load())
    if json:
        show_json(facts)
    else:
        show_table(facts["name"], ("", ""), [(key.replace("_", " "), as_text(value)) for key, value in facts.items()])


app.command()(prepare)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="what bayesneg data prepare wrote")],
    json: opt.Json = False,
) -> None:
    """Read every file of prepared data and of its splits, and compare it with its sha256.

    \b
    Example:
      bayesneg data verify prepared
    """
    from bayesneg.data.prepared.folder import is_prepared, verify

    if not is_prepared(folder):
        raise InputError(f"{folder} holds no prepared data; give the folder that 'bayesneg data prepare --out' wrote")
    n_files = verify(folder)
    if json:
        show_json({"folder": str(folder), "files": n_files})
    else:
        show(f"{folder}: {n_files} files are as they were written")


def _facts(found: Interactions) -> dict[str, Any]:
    import numpy as np

    per_user, per_item = found.counts, np.sort(found.popularity)[::-1]
    head = per_item[: max(1, found.n_items // 10)].sum() / len(found)
    return {
        "name": found.name,
        "interactions": len(found),
        "users": found.n_users,
        "items": found.n_items,
        "density": len(found) / (found.n_users * found.n_items),
        "interactions_per_user": {q: float(np.quantile(per_user, p)) for q, p in QUANTILES.items()},
        "interactions_per_item": {q: float(np.quantile(per_item, p)) for q, p in QUANTILES.items()},
        "share_of_top_tenth_of_items": float(head),
        "duplicates_collapsed": found.n_duplicates,
        "below_min_rating": found.n_below_min_rating,
        "has_times": found.times is not None,
        "user_columns": list(found.user_columns),
        "truth_known": found.truth is not None,
        "fingerprint": found.fingerprint,
    }


@contextmanager
def _download_bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar of the bytes; none where stderr is a log."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(name, total=None, visible=False)
        yield lambda done, total: display.update(task, completed=done, total=total, visible=True)
