"""Lists of items with what is known of them, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bayesneg.cli.output import show, show_table
from bayesneg.report.names import number

if TYPE_CHECKING:
    from bayesneg.recommendation.item_data import ItemData
    from bayesneg.runs.run import Run


def show_list(
    run: Run, title: str, best: Sequence[tuple[Any, float]], titles: ItemData | None, *, score: str = "score"
) -> None:
    """Rank, item, its columns and its score."""
    columns = [] if titles is None else titles.columns
    rows = []
    for place, (item, value) in enumerate(best, 1):
        known = [] if titles is None else titles.row(run.split.train.item_number(item))
        rows.append((str(place), str(item), *known, number(value)))
    show(title)  # as the title of the table it would be broken to its width
    show_table("", ("", "item", *columns, score), rows, n_text=2 + len(columns))


def list_rows(
    run: Run, best: Sequence[tuple[Any, float]], titles: ItemData | None, *, score: str = "score"
) -> list[dict[str, Any]]:
    """The same as plain values."""
    found = []
    for item, value in best:
        known = {} if titles is None else titles.table.row(run.split.train.item_number(item), named=True)
        found.append({**known, "item": item, score: value})
    return found
