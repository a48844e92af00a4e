"""``bayesneg similar``."""

from __future__ import annotations

from typing import Annotated

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.finished.arguments import ItemColumns, ItemDataFile, RunFolder, item_data
from bayesneg.cli.finished.listing import list_rows, show_list
from bayesneg.cli.output import say, show_json


def similar(
    run: RunFolder,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="item identifier, as in the data")],
    k: Annotated[int, typer.Option("-k", "--k", metavar="N", help="number of items")] = 10,
    item_data_file: ItemDataFile = None,
    item_columns: ItemColumns = None,
    json: opt.Json = False,
) -> None:
    """List the items most similar to one: by the cosine of their vectors, for EASE and its kin by their weights.

    \b
    Example:
      bayesneg similar runs/bns 50 -k 5 --item-data movies.csv
    """
    from bayesneg.runs.run import load_run

    loaded = load_run(run)
    train = loaded.split.train
    number = train.item_number(item)
    titles = item_data(item_data_file, item_columns, train)
    best = loaded.similar(item, k)
    if len(best) < k:
        say(f"only {len(best):,} items have a similarity to item {item}")
    about = "" if titles is None else f" ({', '.join(filter(None, titles.row(number)))})"
    if json:
        show_json({"item": train.item_ids[number], "items": list_rows(loaded, best, titles, score="similarity")})
    else:
        show_list(loaded, f"similar to item {item}{about}", best, titles, score="similarity")
