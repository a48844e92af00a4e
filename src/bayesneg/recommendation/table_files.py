"""Frames to a file by its ending, a chunk at a time, and moved into place when all are written."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from bayesneg.errors import InputError, naming
from bayesneg.whole_files import check_regular, sync, without_links

if TYPE_CHECKING:
    import polars as pl

    Append = Callable[[pl.DataFrame, BinaryIO, bool], None]

APPENDED: Final[dict[str, Append]] = {  # ending → how a frame is appended to a file; True for the first
    ".csv": lambda frame, file, first: for_spreadsheets(frame).write_csv(file, include_header=first),
    ".jsonl": lambda frame, file, first: frame.write_ndjson(file),
}
ENDINGS: Final = (".parquet", *APPENDED)
FORMULA: Final = r"^[=+\-@\t\r]"  # how a cell begins that a spreadsheet computes


def check_ending(path: Path, option: str) -> None:
    """An error unless the ending says how the file is written."""
    if path.suffix.lower() not in ENDINGS:
        *others, last = ENDINGS
        raise InputError(
            f"{option} {path} must end in {', '.join(others)} or {last}, which says how the file is written"
        )


def for_spreadsheets(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame for CSV: a ``'`` before each text that a spreadsheet would compute as a formula; numbers stay.

    Args:
        frame: Identifiers, titles and numbers.

    Returns:
        A frame of the same columns.
    """
    import polars as pl

    texts = [pl.col(name) for name, kind in frame.schema.items() if kind == pl.String]
    begins = [text.str.contains(FORMULA) & text.cast(pl.Float64, strict=False).is_null() for text in texts]
    return frame.with_columns(
        pl.when(is_formula).then("'" + text).otherwise(text).name.keep()
        for text, is_formula in zip(texts, begins, strict=True)
    )


def write_frames(frames: Iterable[pl.DataFrame], path: str | Path) -> int:
    """Write frames of one schema to a file, one at a time; the file appears when all are written.

    Args:
        frames: At least one frame.
        path: A file that ends in .parquet, .csv or .jsonl.

    Returns:
        The number of rows.
    """
    target = Path(path)
    check_ending(target, "path")
    check_regular(target)
    with naming(target), tempfile.TemporaryDirectory(dir=target.resolve().parent, prefix=f".{target.name}.") as folder:
        unfinished = Path(folder) / target.name
        how = APPENDED.get(target.suffix.lower())
        n_rows = _write_parts(frames, unfinished) if how is None else _append_all(frames, unfinished, how)
        sync(unfinished)
        unfinished.replace(target)
        sync(target.parent)
    return n_rows


def _append_all(frames: Iterable[pl.DataFrame], path: Path, append: Append) -> int:
    n_rows = 0
    with open(path, "wb", opener=without_links) as file:
        for place, frame in enumerate(frames):
            append(frame, file, place == 0)
            n_rows += len(frame)
    return n_rows


def _write_parts(frames: Iterable[pl.DataFrame], path: Path) -> int:
    """Parquet cannot be appended to: parts are written, then streamed into one file in their order."""
    import polars as pl

    n_rows, parts = 0, []
    for place, frame in enumerate(frames):
        parts.append(path.with_name(f"{place:06d}.parquet"))
        frame.write_parquet(parts[-1])
        n_rows += len(frame)
    if len(parts) == 1:
        shutil.move(parts[0], path)
    else:
        pl.scan_parquet(parts, glob=False).sink_parquet(path)
    return n_rows
