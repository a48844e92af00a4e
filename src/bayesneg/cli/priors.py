"""``bayesneg priors``: which prior is right."""

from __future__ import annotations

from typing import Annotated

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.groups import command
from bayesneg.cli.output import say, show_json, show_table
from bayesneg.report.names import number


@command
def priors(
    *,
    priors: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="comma-separated, settings after colons: rate,learned:hidden=0.25; popularity, flat, rate, group, "
            "smoothed, learned, self (MF trains with it for 30 epochs), several joined by +, or my.py:Mine",
        ),
    ] = "popularity,rate,learned",
    share: Annotated[float, typer.Option(help="of the training part that is hidden from the priors")] = 0.2,
    seed: Annotated[int, typer.Option(help="of what is hidden")] = 0,
    splitting: opt.Splitting,
    reading: opt.Reading,
    json: opt.Json = False,
) -> None:
    """Hide part of the training data and ask which prior expects it: rates, Brier score, reliability curve.

    \b
    Example:
      bayesneg priors ml-100k --priors popularity,rate,learned,learned:hidden=0.25
    """
    from bayesneg.config.names import parse_priors
    from bayesneg.experiments.prior_calibration import judged_priors

    parse_priors(priors)  # before any data is read
    split = splitting.split(reading)
    found = judged_priors(priors, split, share=share, seed=seed)
    if json:
        show_json({"priors": {label: result.to_dict() for label, result in found.items()}})
        return
    rows = [
        (
            label,
            *map(number, (it.expected_rate, it.observed_rate, it.expected[-1], it.observed[-1], it.brier, it.skill)),
        )
        for label, it in found.items()
    ]
    columns = ("prior", "expected", "observed", "at the top", "observed", "brier", "skill")
    show_table(f"{split.train.name}: false negatives among unobserved pairs", columns, rows)
    say(
        "at the top: the most probable pairs, which hold about a tenth of the expected positives, more or less where "
        "many are equally probable, and all of them where all pairs are; skill: the part of the Brier score taken away "
        "from saying the observed rate of every pair"
    )
