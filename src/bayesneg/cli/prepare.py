"""``bayesneg data prepare``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.groups import command
from bayesneg.cli.interrupt import told
from bayesneg.cli.output import as_text, named_as_options, say, show_json, show_table
from bayesneg.progress import Log

if TYPE_CHECKING:
    from bayesneg.data.interactions import Interactions
    from bayesneg.data.splits import Split

Sources = Annotated[
    list[str], typer.Argument(metavar="SOURCES", help="Parquet files or text tables, folders or globs of them")
]
Out = Annotated[Path, typer.Option(help="folder to write; an interrupted command goes on in it")]
ChunkRows = Annotated[int, typer.Option(help="rows in memory at a time; the result does not depend on it")]


@dataclass(frozen=True)
class StoredSplit:
    """The split to store beside the data; none unless an option asks for one."""

    validation: opt.ValidationShare = None
    test_share: opt.TestShare = None
    split_by: Annotated[
        str | None,
        opt.splitting_option("store a split by interaction, user, last or time, which bayesneg train then finds"),
    ] = None
    split_seed: Annotated[int | None, opt.splitting_option("seed of the split", default="0")] = None

    def split(self, data: Interactions) -> Split | None:
        from bayesneg.data.splits import split

        if (self.split_by, self.test_share, self.validation, self.split_seed) == (None, None, None, None):
            return None
        say("splitting …")
        return split(
            data,
            test=self.test_share,
            validation=opt.VALIDATION if self.validation is None else self.validation,
            by=self.split_by or "interaction",
            seed=self.split_seed or 0,
        )


@command
def prepare(
    sources: Sources,
    *,
    out: Out,
    reading: opt.TableOptions,
    splitting: StoredSplit,
    chunk_rows: ChunkRows = 4_194_304,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Write data that need not fit into memory as a folder, which every command opens in no time.

    Rows are read, numbered and sorted in chunks; memory holds the distinct users and items and a few chunks. The
    folder takes the place of DATA: the same interactions, numbers and fingerprint as those of one table with all the
    rows. An interrupted command goes on when it is repeated.

    \b
    Examples:
      bayesneg data prepare clicks/ --out prepared
      bayesneg data prepare 'clicks-*.csv' --out prepared --split-by last
      bayesneg train prepared --split-by last
    """
    from bayesneg.data.prepared.preparing import prepare as write

    with _progress(quiet=quiet) as progress, named_as_options("out", "chunk_rows"), _repeatable(out):
        data = write(sources, out, chunk_rows=chunk_rows, progress=progress, **reading.columns)
    with _repeatable(out):
        parts = splitting.split(data)
    facts = _facts(data, out, parts)
    if json:
        show_json(facts)
        return
    show_table(str(out), ("", ""), [(key.replace("_", " "), as_text(value)) for key, value in facts.items()])
    say(f"next: bayesneg train {out}")


def _facts(data: Interactions, out: Path, parts: Split | None) -> dict[str, Any]:
    found = {
        "folder": str(out),
        "interactions": len(data),
        "users": data.n_users,
        "items": data.n_items,
        "duplicates_collapsed": data.n_duplicates,
        "below_min_rating": data.n_below_min_rating,
        "has_times": data.times is not None,
        "user_columns": list(data.user_columns),
        "fingerprint": data.fingerprint,
    }
    if parts is None:
        return found
    sizes = {"train": parts.train, "validation": parts.validation, "test": parts.test}
    counts = {name: len(part) for name, part in sizes.items() if part is not None}
    return {**found, "split": parts.how, "parts": counts}


@contextmanager
def _repeatable(out: Path) -> Iterator[None]:
    """Says after Ctrl-C how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        told(error, f"interrupted; {out} keeps what was done, and the same command goes on")
        raise


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each stage on a terminal, a line now and then in a log."""
    if quiet:
        yield lambda stage, done, total: None
    elif not sys.stderr.isatty():
        totals: dict[str, int] = {}
        log = Log(totals, unit="rows")

        def line(stage: str, done: int, total: int) -> None:
            totals[stage] = total
            log.update(stage, done, "")

        yield line
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as display:
            tasks = {stage: display.add_task(stage, total=None) for stage in ("reading", "sorting")}
            yield lambda stage, done, total: display.update(tasks[stage], completed=done, total=total)
