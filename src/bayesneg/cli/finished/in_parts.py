"""Recommendations by several processes: a folder of Parquet files, one of each, complete when it appears."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesneg.cli.training.processes import is_first, load_in_parts, sum_over_processes
from bayesneg.errors import BayesnegError, InputError

if TYPE_CHECKING:
    import polars as pl


def check_parts(out: Path | None, *, force: bool) -> None:
    """Before the run is read.

    Args:
        out: The folder to write.
        force: Whether one that exists may be replaced.
    """
    if out is None or out.suffix != ".parquet":
        raise InputError("several processes write one folder of Parquet files: give --all-users and --out recs.parquet")
    if not out.resolve().parent.is_dir():
        raise InputError(f"--out {out} must be in an existing folder")
    if out.exists() and not force:
        raise InputError(f"--out {out} exists; name another folder, or replace it with --force")


def write_parts(folder: Path, out: Path, **how: Any) -> dict[str, int]:
    """Each process writes the users whose embeddings it reads; an error of one ends all, and leaves ``out`` as it was.

    Args:
        folder: The folder of the run.
        out: The folder to write.
        **how: Arguments of ``Run.recommend_in_chunks``.

    Returns:
        The numbers of users, rows and cold users.
    """
    from bayesneg.distributed.catalogue import ShardedScorer
    from bayesneg.distributed.group import raised_by_all

    run, part = load_in_parts(folder), out.with_name(f".{out.name}.part")
    own = part / f"part-{int(os.environ['RANK']):05d}.parquet"
    try:
        raised_by_all(lambda: _begin(part) if is_first() else None)
        chunks = run.recommend_in_chunks(**how)
        n_rows = _written(chunks, own)
        raised_by_all(lambda: _put_in_place(part, out) if is_first() else None)
    except BayesnegError:
        if is_first():
            shutil.rmtree(part, ignore_errors=True)
        raise
    assert isinstance(run.scorer, ShardedScorer)
    n_cold = sum_over_processes(run.scorer.n_cold)
    return {"n_users": run.split.train.n_users, "n_rows": sum_over_processes(n_rows), "n_cold_users": n_cold}


def _written(chunks: Iterator[pl.DataFrame], path: Path) -> int:
    """Write the chunks, which all processes compute together; the number of rows.

    After each chunk, and after the file, all hear whether one of them could not write.
    """
    from bayesneg.distributed.group import agreed, sentence
    from bayesneg.recommendation.table_files import write_frames

    def agreeing() -> Iterator[pl.DataFrame]:
        for frame in chunks:
            yield frame
            agreed("")

    try:
        n_rows = write_frames(agreeing(), path)
    except OSError as error:
        agreed(sentence(error))
        raise
    agreed("")
    return n_rows


def _begin(part: Path) -> None:
    shutil.rmtree(part, ignore_errors=True)  # of processes that were killed
    part.mkdir()


def _put_in_place(part: Path, out: Path) -> None:
    if out.is_dir():
        shutil.rmtree(out)
    else:
        out.unlink(missing_ok=True)
    part.rename(out)
