"""Arguments that commands on finished runs share, and the small files they name."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesneg.cli.output import counted, say
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError

if TYPE_CHECKING:
    from bayesneg.recommendation.item_data import ItemData

ITEMS = "What is shown of items"
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="a run folder that train --out or compare --out wrote")]
ItemDataFile = Annotated[
    Path | None,
    typer.Option(
        "--item-data",
        metavar="FILE",
        help="table of items with a column item or id and others, such as title, shown beside the items (CSV, TSV, "
        "Parquet, JSON lines)",
        rich_help_panel=ITEMS,
    ),
]
ItemColumns = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="columns of --item-data to show", show_default="all", rich_help_panel=ITEMS),
]


def item_data(path: Path | None, columns: str | None, train: Interactions) -> ItemData | None:
    """The table of items, where one is given; items without a row are noted."""
    from bayesneg.recommendation.item_data import read_item_data

    if path is None:
        if columns is not None:
            raise InputError("--item-columns goes with --item-data, the table that has the columns")
        return None
    names = None if columns is None else separated(columns)
    found = read_item_data(path, train, columns=names)
    if found.missing:
        few = ", ".join(map(str, found.missing[:3]))
        n = counted(len(found.missing), "item of the run has", "items of the run have")
        say(f"{n} no row in {path} ({few}{', …' if len(found.missing) > 3 else ''}): their cells are empty")
    if found.repeated:
        n = counted(len(found.repeated), "item has", "items have")
        say(f"{n} several rows in {path} (the first: {found.repeated[0]}): the first row of each is shown")
    return found


def ids_in(path: Path, train: Interactions, *, noun: str, option: str, skip_unknown: bool) -> list[Any]:
    """The users or items that a file names; unknown ones are an error, or are left out and counted."""
    from bayesneg.data.identifiers import numbers_of
    from bayesneg.recommendation.small_tables import read_ids

    ids = read_ids(path, noun, option=option)
    known = train.numbers_of_users if noun == "user" else train.numbers_of_items
    numbers, unknown = numbers_of(
        ids, known, argument=f"{option} {path}", noun=noun, unknown="skip" if skip_unknown else "error"
    )
    if unknown:
        n = counted(len(unknown), f"{noun} of {path} is", f"{noun}s of {path} are")
        say(f"{n} not in the data and left out (the first: {unknown[0]})")
    all_ids = (train.user_ids if noun == "user" else train.item_ids)[numbers]
    return list(all_ids.tolist())


def separated(text: str) -> list[str]:
    """Names separated by commas; one that has a comma is in double quotes, as in CSV.

    >>> separated('12, "a, b",3')
    ['12', 'a, b', '3']
    """
    try:
        parts = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        raise InputError(f'the double quotes in {text} are not closed; write "a, b",c as in CSV') from None
    return [part.strip() for part in parts if part.strip()]
