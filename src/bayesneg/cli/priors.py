"""``bayesneg priors``: the calibration of priors."""

from __future__ import annotations

from typing import Annotated

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.groups import command
from bayesneg.cli.output import show, show_json, show_table
from bayesneg.report.names import number

SMALL = 6  # decimals of scores that are small where positives are rare


@command
def priors(
    *,
    priors: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="comma-separated, settings after colons: rate,learned:hidden=0.25; popularity, flat, rate, group, "
            "smoothed, learned, learned:item_model=als, self (MF trains with it for 30 epochs), several joined by +, "
            "or my.py:Mine",
        ),
    ] = "popularity,rate,learned",
    share: Annotated[float, typer.Option(help="share of the training part that is hidden from the priors")] = 0.2,
    seed: Annotated[int, typer.Option(help="seed of the hidden share")] = 0,
    splitting: opt.Splitting,
    reading: opt.Reading,
    json: opt.Json = False,
) -> None:
    """Calibration of priors on hidden training data: reliability diagram, Brier score, ECE.

    \b
    Example:
      bayesneg priors ml-100k --priors popularity,rate,learned,learned:hidden=0.25
    """
    from bayesneg.config.specs import parse_priors
    from bayesneg.experiments.prior_calibration import calibrated_priors

    parse_priors(priors)  # before any data is read
    split = splitting.split(reading)
    found = calibrated_priors(priors, split, share=share, seed=seed)
    if json:
        show_json({"priors": {label: result.to_dict() for label, result in found.items()}})
        return
    rows = [
        (
            label,
            *map(number, (it.predicted_rate, it.base_rate, it.mean_predicted[-1], it.observed_rate[-1])),
            *(number(it.brier, SMALL), number(it.skill), number(it.log_loss, SMALL), number(it.ece)),
        )
        for label, it in found.items()
    ]
    columns = ("prior", "predicted", "observed", "top bin", "observed", "Brier", "skill", "log loss", "ECE")
    show_table(f"{split.train.name}: false negatives among unobserved pairs", columns, rows)
    show(
        "predicted, observed: mean probability and share of hidden positives; top bin: the same for the most probable "
        "pairs, which hold about a tenth of the expected positives (all of them where all pairs are equally probable); "
        "skill: Brier skill score relative to the constant base rate; ECE: expected calibration error"
    )
