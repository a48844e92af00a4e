"""The data of ``bayesneg train``: also the split that a run folder holds."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesneg.cli import options as opt
from bayesneg.data.splits import Split
from bayesneg.errors import InputError

if TYPE_CHECKING:
    from bayesneg.runs.run import Run


@dataclass(frozen=True, kw_only=True)
class TrainReading(opt.Reading):
    """DATA and how it is read."""

    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="built-in dataset (synthetic, ml-100k, ml-1m, yahoo-r3, kuairec, gowalla, yelp2018), a file or "
            "folder (CSV, TSV, ::, Parquet, adjacency lists, prepared data), a run folder, whose split is used, or a "
            "TOML file that describes the run",
        ),
    ]


def split_for(reading: opt.Reading, splitting: opt.Selecting, fingerprint: str | None) -> Split:
    """The split to train on.

    Args:
        reading: The data.
        splitting: How it is split.
        fingerprint: That of the split it must be; None for any.
    """
    from bayesneg.runs.folder import holds_run

    folder = Path(reading.data)
    split = _stored(folder, reading, splitting) if holds_run(folder) else splitting.split(reading)
    if fingerprint is None or split.fingerprint == fingerprint:
        return split
    raise InputError(
        f"{reading.data} with this split has the fingerprint {split.fingerprint}, not {fingerprint}: it is not the "
        "data of the run; give the run folder as data, whose split is stored, or drop fingerprint to train on the "
        "data as it is now"
    )


def is_final(folder: Path) -> bool:
    """Whether a folder holds a run on all data, with the file that makes it again."""
    from bayesneg.runs.folder import RUN_FILE, holds_run, read_head
    from bayesneg.runs.folder import reading as as_one_error

    if not holds_run(folder) or not (folder / RUN_FILE).is_file():
        return False
    with as_one_error(folder):
        facts = read_head(folder)["data"]
    return not facts.get("n_test") and not facts.get("n_validation")


def with_metrics_of(run: Run, source: Path, out: Path | None) -> Run:
    """A final run that was made again from ``source``, with what was measured before the first time.

    Args:
        run: The run.
        source: What it was trained on; a run folder.
        out: The folder of the run; None for none.

    Returns:
        The run as it is where it is another than the one in ``source``.
    """
    from bayesneg.runs.folder import holds_run, read_record, replace_head

    if len(run.split.test) or not holds_run(source):
        return run
    earlier = read_record(source)
    same = all(earlier.run_file.get(key) == value for key, value in run.record.run_file.items() if key != "data")
    if not (same and earlier.before_final):
        return run
    record = replace(run.record, before_final=earlier.before_final)
    if out is not None:
        replace_head(out, record)
    return replace(run, record=record)


def _stored(folder: Path, reading: opt.Reading, splitting: opt.Selecting) -> Split:
    """The split of a run folder, which is neither read nor split again."""
    from bayesneg.runs.folder import read_head, read_split
    from bayesneg.runs.folder import reading as as_one_error

    for options in (reading, splitting):
        for item in fields(options):
            if item.name not in ("data", "select", "data_dir") and _is_given(options, item):
                raise InputError(
                    f"{folder} is a run folder, and its split is used as it is; drop --{item.name.replace('_', '-')}"
                )
    with as_one_error(folder):
        data = read_head(folder)["data"]
        mark = data.get("fingerprint")
        split = read_split(folder, name=str(data["name"]), how=str(data["split"]), fingerprint=mark)
    return replace(split, origin={"data": str(folder.resolve())})


def _is_given(options: Any, item: Any) -> bool:
    return item.default is not MISSING and getattr(options, item.name) != item.default
