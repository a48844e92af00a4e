"""Options of ``bayesneg train`` on how long it trains, and what its result is shown beside."""

from __future__ import annotations

from typing import Annotated

import typer

from bayesneg.cli import options as opt

EvaluateUsers = Annotated[
    int | None,
    typer.Option(
        help="users evaluated between epochs, at random; the reported epoch is evaluated on all",
        show_default="1,000 with the recommended settings, else all",
        rich_help_panel=opt.TRAINING,
    ),
]
Patience = Annotated[
    int | None,
    typer.Option(
        help="stop early after this many evaluations without a better one on validation data",
        show_default="10 with the recommended settings, else never",
        rich_help_panel=opt.TRAINING,
    ),
]
Beside = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        help="baselines shown beside the result, settings after colons; none for no baseline",
        rich_help_panel=opt.TRAINING,
    ),
]
Final = Annotated[
    bool,
    typer.Option(
        "--final",
        help="then train on all data, for as many epochs as validation chose; --out holds that model",
        rich_help_panel=opt.TRAINING,
    ),
]
