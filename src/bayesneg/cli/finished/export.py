"""``bayesneg export``: a run as files for other programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.finished.arguments import RunFolder
from bayesneg.cli.output import named_as_options, say, show, show_json, show_table


def export(
    run: RunFolder,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder to write; it must not exist, or be empty")],
    index: Annotated[
        str | None,
        typer.Option(metavar="usearch", help="add an index of the items for approximate search; needs the extra index"),
    ] = None,
    no_interactions: Annotated[
        bool,
        typer.Option("--no-interactions", help="leave out the interactions; then no item is excluded as already seen"),
    ] = False,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence", "--license", metavar="ID", help="licence of the data for the card, such as cc-by-4.0"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="replace the export in DIR")] = False,
    json: opt.Json = False,
) -> None:
    """Export a finished run: vectors as safetensors, ids as Parquet, config.json and a model card for the Hub.

    \b
    Examples:
      bayesneg export runs/bns exported
      bayesneg export runs/bns exported --index usearch --force
    """
    from bayesneg.runs.exports.exporting import check_target
    from bayesneg.runs.exports.item_index import check_library
    from bayesneg.runs.exports.loading import read_config
    from bayesneg.runs.exports.model_card import licence_of
    from bayesneg.runs.run import load_run

    check_target(folder, overwrite=force)
    with named_as_options("index"):
        check_library(index)
    loaded = load_run(run)
    written = loaded.export(folder, index=index, interactions=not no_interactions, licence=licence, overwrite=force)
    config = read_config(written)
    if json:
        show_json({"folder": str(written), **config})
        return
    files = {
        "README.md": (written / "README.md").stat().st_size,
        "config.json": (written / "config.json").stat().st_size,
    }
    files |= {name: facts["bytes"] for name, facts in config["files"].items()}
    show_table("files", ("file", "bytes"), [(name, f"{size:,}") for name, size in files.items()])
    show(f"exported to {written}")
    if config["index"] is not None:
        recall = ", ".join(f"recall@{k} {value:.4f}" for k, value in config["index"]["recall"].items())
        show(f"index against exact search: {recall or 'the catalogue is so small that search is exact'}")
    if licence_of(loaded.record, licence) == "unknown":
        say("the licence of the data is unknown: state it with --licence before you pass the folder on")
    if not no_interactions:
        say(f"the folder has the interactions of the users: {_without_them(config)}")
    else:
        say(
            "note: without the interactions the model recommends items that users already have; whoever uses it must "
            "leave them out"
        )
    say(f"next: bayesneg serve {written}, or bn.load_export({str(written)!r})")


def _without_them(config: Mapping[str, Any]) -> str:
    """How to pass a model on without the interactions of its users."""
    if config["dim"] is not None:
        return "--no-interactions leaves them out, to pass a model on"
    model = config["model_type"]
    return (
        f"{model} needs them to score a user, and its weights tell which items users have in common; to pass a model "
        "on without them, train one with vectors (MF, ALS) and export it with --no-interactions"
    )
