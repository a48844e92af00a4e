"""``bayesneg data``: which datasets there are, how to get them, what is in them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import numpy as np
import typer

from bayesneg.cli import options as opt
from bayesneg.cli.output import number, say, show_json, show_table

app = typer.Typer(help="List, fetch and describe datasets.", no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(help="ml-100k or ml-1m")]


@app.command("list")
def list_datasets(data_dir: opt.DataDir = None, json: opt.Json = False) -> None:
    """The built-in datasets, and where they lie on this machine.

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
        say(f"{row['name']:<10} {row['what']}\n{'':<10} → {state}")


@app.command()
def get(name: Name, data_dir: opt.DataDir = None, json: opt.Json = False) -> None:
    """Download a dataset, check it and unpack it; safe to interrupt and to repeat.

    \b
    Example:
      bayesneg data get ml-100k
    """
    from bayesneg.cli.download_bar import download_bar
    from bayesneg.data.catalogue import terms
    from bayesneg.data.download import get as fetch

    with download_bar(name) as progress:
        fetched = fetch(name, data_dir=data_dir, progress=progress)
    if json:
        show_json({"name": name, **asdict(fetched), "folder": str(fetched.folder)})
        return
    say(terms(name))
    verb = "was already in" if fetched.already_there else f"from {fetched.origin} now in"
    say(f"{name} {verb} {fetched.folder}; next: bayesneg compare {name}")


@app.command()
def describe(
    data: opt.Data,
    user_column: opt.UserColumn = None,
    item_column: opt.ItemColumn = None,
    rating_column: opt.RatingColumn = None,
    time_column: opt.TimeColumn = None,
    user_columns: opt.UserColumns = None,
    separator: opt.Separator = None,
    header: opt.Header = None,
    min_rating: opt.MinRating = None,
    data_dir: opt.DataDir = None,
    json: opt.Json = False,
) -> None:
    """What is in a dataset: counts, density, how skewed it is, what is known about users.

    \b
    Example:
      bayesneg data describe clicks.csv --user-column customer
    """
    from bayesneg.data.load import load

    columns = opt.column_options(
        user_column, item_column, rating_column, time_column, user_columns, separator, header, min_rating
    )
    found = load(data, data_dir=data_dir, **columns)
    per_user, per_item = found.counts, np.sort(found.popularity)[::-1]
    head = per_item[: max(1, found.n_items // 10)].sum() / len(found)
    facts = {
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
    if json:
        show_json(facts)
    else:
        show_table(found.name, ("", ""), [(key.replace("_", " "), _text(value)) for key, value in facts.items()])


QUANTILES = {"least": 0.0, "median": 0.5, "most": 1.0}


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item:,.0f}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return number(value) if isinstance(value, float) else str(value)
