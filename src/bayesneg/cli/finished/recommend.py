"""``bayesneg recommend``."""

from __future__ import annotations

from typing import Annotated

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.finished.folder import RunFolder
from bayesneg.cli.output import say, show, show_json, show_table
from bayesneg.report.names import number


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
