"""``bayesneg report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.finished.arguments import item_data as noted
from bayesneg.cli.output import counted, report_file, show, show_json

if TYPE_CHECKING:
    from bayesneg.runs.record import RunRecord
    from bayesneg.runs.run import Run


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="run folders, or folders of run folders")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="HTML file to write",
            show_default="report.html, or report-2.html … where that exists",
        ),
    ] = None,
    force: opt.Force = False,
    title: Annotated[
        str | None, typer.Option(help="heading of the report", show_default="samplers and datasets")
    ] = None,
    item_data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="table of items with a column item or id and others, such as title: shows what a few users would get",
        ),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Write one HTML report of finished runs, with tables and learning curves.

    \b
    Example:
      bayesneg report runs/rns runs/bns -o report.html
    """
    from bayesneg.report.comparison import write_report
    from bayesneg.runs.folder import find_runs, read_record, reading
    from bayesneg.runs.run import Run, load_run

    page = report_file(output, "-o", default="report.html", force=force)
    folders = {folder.resolve(): folder for path in runs for folder in find_runs(path)}  # each run once
    records: list[RunRecord | Run] = []
    for folder in folders.values():
        with reading(folder):
            records.append(read_record(folder) if item_data is None else load_run(folder))
    if item_data is not None:
        of_dataset = {each.record.dataset: each for each in reversed(records) if isinstance(each, Run)}
        for each in of_dataset.values():
            noted(item_data, None, each.split.train)  # items without a row, and with several
    written = write_report(records, page, title=title, item_data=item_data)
    if json:
        show_json({"report": str(written), "n_runs": len(records)})
    else:
        show(f"report of {counted(len(records), 'run', 'runs')}: {written.resolve()}")
