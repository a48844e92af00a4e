"""Example recommendations of a few users, side by side, with what is known of the items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bayesneg.report.names import counted
from bayesneg.report.pages import Section, Table, TableCell

if TYPE_CHECKING:
    from bayesneg.data.interactions import Interactions
    from bayesneg.recommendation.item_data import ItemData
    from bayesneg.runs.run import Run

QUANTILES: Final = (0.25, 0.5, 0.75)  # of the number of training items: a user with few, a usual one, one with many
LENGTH: Final = 10
MODELS: Final = 4  # columns of a table
NAMED: Final = 5  # items of a user's history


def example_sections(runs: Sequence[Run], path: str | Path) -> dict[str, list[Section]]:
    """Dataset → a section with a table for each of three users; held-out items among the recommended are marked.

    Args:
        runs: The runs; the first of each label on the first split is shown, four labels at most.
        path: The table of items, with titles or other columns.
    """
    from bayesneg.recommendation.item_data import read_item_data

    found: dict[str, list[Section]] = {}
    for dataset in dict.fromkeys(run.record.dataset for run in runs):
        of_dataset = [run for run in runs if run.record.dataset == dataset]
        split = of_dataset[0].split.fingerprint  # users and held-out items must be the same
        of_dataset = [run for run in of_dataset if run.split.fingerprint == split]
        shown = list({run.record.label: run for run in reversed(of_dataset)}.values())[::-1][:MODELS]
        train = shown[0].split.train
        items = read_item_data(path, train, option="item_data")
        users = _users(shown[0])
        tables = [_table(shown, users[place], items) for place in range(len(users))]
        text = (
            f"What {counted(len(users), 'user')} would be shown: one with few training items, one with a usual number, "
            "one with many. Training items are excluded; an item that the user has in the held-out part is marked."
        )
        found[dataset] = [Section("Example recommendations", text=text, tables=tables)]
    return found


def _users(run: Run) -> list[int]:
    """Users with held-out items at some quantiles of their number of training items, each once."""
    held_out, counts = run.split.held_out.counts, run.split.train.counts
    judged = np.flatnonzero((held_out > 0) & (counts > 0))
    order = judged[np.argsort(counts[judged], kind="stable")]
    places = [min(int(quantile * len(order)), len(order) - 1) for quantile in QUANTILES] if len(order) else []
    return list(dict.fromkeys(int(order[place]) for place in places))


def _table(runs: Sequence[Run], user: int, items: ItemData) -> Table:
    train = runs[0].split.train
    raw = train.user_ids[user]
    history = [_title(item, items, train)[0] for item in train.row(user)[:NAMED].tolist()]
    n_train, n_held_out = len(train.row(user)), len(runs[0].split.held_out.row(user))
    lists = [
        [train.item_number(item) for item, _ in run.recommend(raw, k=min(LENGTH, train.n_items), include_held_out=True)]
        for run in runs
    ]
    rows = [
        [
            TableCell(str(place + 1), value=str(place + 1)),
            *(
                _cell(numbers[place], items, runs[0], user) if place < len(numbers) else TableCell("")
                for numbers in lists
            ),
        ]
        for place in range(max(map(len, lists)))
    ]
    return Table(
        name=f"Recommendations for user {raw}",
        caption=f"User {raw}: {counted(n_train, 'training item')}, such as {', '.join(history)}; "
        f"{counted(n_held_out, 'item')} held out.",
        heads=("rank", *(run.record.label for run in runs)),
        rows=rows,
    )


def _cell(item: int, items: ItemData, run: Run, user: int) -> TableCell:
    title, *more = _title(item, items, run.split.train)
    hit = bool(run.split.held_out.contains(np.array(user), np.array(item)))
    return TableCell(title, value=title, style="text", minor=more, badge="held out" if hit else "")


def _title(item: int, items: ItemData, train: Interactions) -> list[str]:
    """The columns of an item that are known; its identifier where none is."""
    return [value for value in items.row(item) if value] or [str(train.item_ids[item])]
