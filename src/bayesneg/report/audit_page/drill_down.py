"""The drill-down of an audit's page: for a user, which negatives each sampler picked, and what it thought of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayesneg.errors import InputError
from bayesneg.evaluation.picks import DRILL_DOWN
from bayesneg.report.audit_page.rows import AuditedSplit
from bayesneg.report.pages import Explorer, Section
from bayesneg.runs.record import RunRecord

TITLES = ("title", "name")  # columns that are shown if they are there; else the first beside the identifier
Names = Mapping[str, str]  # identifier of an item → what is shown


def section(split: AuditedSplit, heading: str, names: Names) -> Section | None:
    """The section with the picks of the first seed of each sampler; None where none were recorded.

    Args:
        split: The samplers on one split.
        heading: The heading of the section.
        names: What to show of items beside their identifiers.
    """
    found = [(group.marked_name, run) for group in split.groups for run in group.runs[:1] if _recorded(run)]
    if not found:
        return None
    users = _recorded(found[0][1])["users"]
    same = [(name, run) for name, run in found if _recorded(run)["users"]["id"] == users["id"]]
    all_picks = [_recorded(run)["picks"] for _, run in same]
    items = {item: 0 for picks in all_picks for kind in ("positive", "negative") for item in picks[kind]}
    items = {item: place for place, item in enumerate(items)}  # rows have places, so that each title is there once
    data = {
        "users": [
            {"id": id, "train": train, "hidden": hidden}
            for id, train, hidden in zip(users["id"], users["n_train"], users["n_held_out"], strict=True)
        ],
        "samplers": [{"name": name} for name, _ in same],
        "known": split.truth_known,
        "items": [names.get(item, item) for item in items],
        "picks": [row for place, picks in enumerate(all_picks) for row in _rows(picks, place, items)],
    }
    seeds = sorted({run.seed for _, run in same})
    text = (
        f"The picks of {len(users['id'])} random users with held-out positives, the same for every sampler, for up to "
        f"20 of their training items, by the model after the last epoch (seed {', '.join(map(str, seeds))}). Diamonds "
        "are false negatives. Of several weighted negatives of an example, one is picked in proportion to its weight."
    )
    return Section(heading, text=text, explorer=Explorer(f"Picks of a user: {split.name}", data))


def item_names(path: str | Path | None) -> dict[str, str]:
    """Identifier → its text with what a table of items says of it, such as a title; empty without a table."""
    if path is None:
        return {}
    from bayesneg.recommendation.small_tables import id_column, read_small_table

    table = read_small_table(Path(path), "item")
    key = id_column(table.columns, "item")
    others = [name for name in table.columns if name != key]
    if key is None or not others:
        raise InputError(f"{path} must have a column item or id and one beside it, got {', '.join(table.columns)}")
    said = next((name for name in TITLES if name in others), others[0])
    rows = zip(map(str, table[key].to_list()), table[said].to_list(), strict=True)
    return {id: f"{title} ({id})" for id, title in reversed(list(rows)) if title}


def _recorded(run: RunRecord) -> Mapping[str, Any]:
    found = run.epochs[-1].get(DRILL_DOWN) if run.epochs else None
    return found if isinstance(found, Mapping) and found["picks"] else {}


def _rows(picks: Mapping[str, list[Any]], sampler: int, places: Mapping[str, int]) -> list[list[Any]]:
    """Rows as ``templates/explorer.js`` reads them; the label is 0, 1 for held out, 2 for liked by the truth alone."""
    none = [None] * len(picks["user"])
    posterior = [None if value is None else round(1.0 - value, 6) for value in picks.get("unbias", none)]
    labels = [
        int(false) * (1 if held_out else 2) for false, held_out in zip(picks["false"], picks["held_out"], strict=True)
    ]
    items = ([places[item] for item in picks[kind]] for kind in ("positive", "negative"))
    numbers = (picks["score"], picks["positive_score"], picks["hardness"], picks.get("prior", none), posterior)
    return [[user, sampler, *row] for user, *row in zip(picks["user"], *items, labels, *numbers, strict=True)]
