"""``bayesneg compare``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from bayesneg.cli import options as opt
from bayesneg.cli.groups import command
from bayesneg.cli.interrupt import interruptible
from bayesneg.cli.output import named_as_options, say, show, show_json, warnings_as_notes
from bayesneg.cli.show import show_comparison, show_quality
from bayesneg.cli.training.comparing import Comparing
from bayesneg.cli.training.listings import HelpAll


@command
def compare(
    *,
    comparing: Comparing,
    splitting: opt.Selecting,
    reading: opt.Reading,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    help_all: HelpAll = False,
) -> None:
    """Compare samplers and losses over several seeds: a table with confidence intervals, and an HTML report.

    Popularity and EASE, which take seconds, are compared with them; the output
    says where a baseline is better and where runs were still improving.

    \b
    Examples:
      bayesneg compare synthetic --samplers rns,dns,bns --seeds 3 --epochs 40
      bayesneg compare ml-100k --samplers rns,bns,my.py:Mine --set dim=64
      bayesneg compare ml-100k --samplers bns --losses bpr,logistic
      bayesneg compare clicks.csv --samplers dns,dns:candidates=5 --out runs
      bayesneg compare ml-100k --samplers rns,bns --baselines popularity,ease:l2=500
    """
    from bayesneg.experiments.compare import compare as run_all
    from bayesneg.report.comparison import write_report

    page = comparing.page
    model, specs = comparing.prepared()
    selection = splitting.selection
    split = splitting.split(reading)
    with (
        redirect_stdout(sys.stderr),
        warnings_as_notes(),
        named_as_options(*comparing.how),
        interruptible(comparing.out),
    ):
        records = run_all(
            model,
            split,
            {spec.label: spec.build for spec in specs},
            select=selection,
            progress=not quiet,
            **comparing.how,
        )
    written = write_report(records, page)
    if json:
        runs = [record.to_dict() for record in records]
        out = None if comparing.out is None else str(comparing.out)
        show_json({"report": str(written), "out": out, "verdict": records.verdict, "runs": runs})
        return
    show_comparison(records)
    if records.verdict:
        show(records.verdict)
    show_quality(records)
    say(f"report: {written.resolve()}")
