"""Files to a prepared folder: rows are numbered and sorted chunk by chunk, and the sorted runs are merged.

The journal in ``work/`` grows after each chunk and each range of merged users. The same call goes on where a killed one
stopped, and ends with the same bytes: neither numbers nor rows depend on where a chunk begins.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from bayesneg import checks
from bayesneg.data.interactions import Interactions
from bayesneg.data.prepared import folder as layout
from bayesneg.data.prepared.files import only_writer, read_json, write_json
from bayesneg.data.prepared.rows import RowsReader
from bayesneg.data.prepared.sorting import merge_runs
from bayesneg.data.prepared.sources import Sources, find_sources
from bayesneg.data.readers.columns import Column
from bayesneg.data.readers.raw_interactions import nothing_left
from bayesneg.data.reading import Format, read_options
from bayesneg.errors import InputError, naming
from bayesneg.integrity.digests import facts_of, sealed

CHUNK_ROWS: Final = 1 << 22
Progress = Callable[[str, int, int], None]  # takes a stage, the rows that are done, and how many there are


def prepare(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    user_column: Column | None = None,
    item_column: Column | None = None,
    rating_column: Column | None = None,
    time_column: Column | None = None,
    user_columns: Sequence[str] | None = None,
    separator: str | None = None,
    header: bool | None = None,
    min_rating: float | None = None,
    format: Format | None = None,
    chunk_rows: int = CHUNK_ROWS,
    progress: Progress | None = None,
) -> Interactions:
    """Write data that need not fit into memory as a folder of mapped arrays, which :func:`load` opens in no time.

    The data is that of :func:`load` for one table with all the rows: the same numbers, the same fingerprint. Memory
    holds the distinct identifiers and a few chunks of rows. A call that was interrupted goes on when it is repeated.

    Args:
        sources: A Parquet file or text table, a folder or glob of such files, or several of these. Files of a folder or
            glob are read in the order of their names.
        out: Folder to write: a new or empty one, or that of an interrupted call.
        user_column: Name of the user column, or its position from 0.
        item_column: Name of the item column, or its position from 0.
        rating_column: Name or position of the rating column; ``""`` for none.
        time_column: Name or position of the time column; ``""`` for none.
        user_columns: User features to keep for group priors.
        separator: Separator of text tables; guessed by default.
        header: Whether the first line of a text table has the names of the columns; guessed by default.
        min_rating: Keep only rows with at least this rating.
        format: ``"table"`` or ``"parquet"``; guessed by default.
        chunk_rows: Number of rows in memory at a time; the result does not depend on it.
        progress: Called with a stage (``"reading"``, ``"sorting"``), the rows that are done and their number.

    Returns:
        The interactions, mapped from the folder.
    """
    checks.whole("chunk_rows", chunk_rows)
    how = read_options(
        user_column=user_column,
        item_column=item_column,
        rating_column=rating_column,
        time_column=time_column,
        user_columns=user_columns,
        separator=separator,
        header=header,
        min_rating=min_rating,
        format=format,
    )
    found = find_sources(sources, how)
    folder = _checked(Path(out).expanduser().resolve())
    plan = {"sources": found.facts(), "options": how.given}
    with naming(folder):
        (folder / "work").mkdir(parents=True, exist_ok=True)
    with only_writer(folder):
        if layout.is_prepared(folder):
            _check_same(plan, layout.read_facts(folder), folder)
        else:
            _Preparation(found, folder, plan, chunk_rows, progress or (lambda *_: None)).run()
        shutil.rmtree(folder / "work", ignore_errors=True)
    return layout.load_prepared(folder, name=folder.name)


def _checked(folder: Path) -> Path:
    """A folder that is new, empty, or that of this command."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"out must be a folder, but {folder} is a file; name another")
    if layout.is_prepared(folder) or (folder / "work" / "plan.json").is_file():
        return folder
    strange = next((path for path in sorted(folder.glob("*")) if path.name not in (".lock", "work")), None)
    if strange is not None:
        raise InputError(f"out: {folder} holds other files, such as {strange.name}; name a new or empty folder")
    return folder


def _check_same(plan: dict[str, Any], before: dict[str, Any], folder: Path) -> None:
    """The folder was begun from the same files and with the same options."""
    if plan["options"] != before["options"]:
        raise InputError(
            f"out: {folder} was prepared with the options {_options(before)}, not {_options(plan)}; name another folder"
        )
    now, then = ({each["file"]: each for each in one["sources"]} for one in (plan, before))
    if list(now) != list(then):
        other = sorted({*now} ^ {*then}) or list(now)
        raise InputError(f"out: {folder} was prepared from other files ({other[0]} differs); name another folder")
    changed = next((file for file in now if now[file] != then[file]), None)
    if changed is not None:
        raise InputError(f"out: {changed} has changed since {folder} was prepared from it; name another folder")


def _options(plan: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in plan["options"].items()) or "none"


@dataclass
class Journal:
    """What is done: the chunks that were read, and the users and interactions that are merged."""

    chunks: list[dict[str, Any]] = field(default_factory=list)
    merged: tuple[int, int] = (0, 0)

    def total(self, key: str) -> int:
        """The sum of a count over the chunks."""
        return sum(chunk[key] for chunk in self.chunks)


@dataclass
class _Preparation:
    sources: Sources
    folder: Path
    plan: dict[str, Any]
    chunk_rows: int
    progress: Progress

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def run(self) -> None:
        journal = self._journal()
        reader = RowsReader(self.work, len(journal.chunks))
        for number in range(len(self.sources.files)):
            self._read(number, reader, journal)
        n_kept = journal.total("kept")
        if n_kept == 0:
            raise nothing_left(str(self.sources.files[0]), journal.total("below"))
        times = reader.times_of(journal.chunks)
        _, n = merge_runs(
            self.work,
            [number for number, chunk in enumerate(journal.chunks) if chunk["kept"]],
            self.folder,
            n_users=len(reader.users),
            times=times,
            size=self.chunk_rows,
            done=journal.merged,
            merged=lambda done: self._merged(done, journal),
        )
        self._finish(reader, journal, n, times)

    def _journal(self) -> Journal:
        path = self.work / "plan.json"
        if path.is_file():
            _check_same(self.plan, read_json(path), self.folder)
        else:
            write_json(path, self.plan)
        path = self.work / "journal.json"
        if not path.is_file():
            return Journal()
        before = read_json(path)
        return Journal(before["chunks"], (before["merged"][0], before["merged"][1]))

    def _record(self, journal: Journal) -> None:
        write_json(self.work / "journal.json", asdict(journal))

    def _read(self, number: int, reader: RowsReader, journal: Journal) -> None:
        first_row = sum(chunk["rows"] for chunk in journal.chunks if chunk["file"] == number)
        if any(chunk["file"] > number for chunk in journal.chunks) or journal.merged != (0, 0):
            return
        for n_rows, rows in self.sources.chunks(number, first_row=first_row, size=self.chunk_rows):
            journal.chunks.append({"file": number, "rows": n_rows, **reader.take(rows)})
            self._record(journal)
            done = journal.total("rows")
            self.progress("reading", done, max(done, self.sources.n_rows))

    def _merged(self, done: tuple[int, int], journal: Journal) -> None:
        journal.merged = done
        self._record(journal)
        self.progress("sorting", done[1], journal.total("kept"))

    def _finish(self, reader: RowsReader, journal: Journal, n: int, times: str | None) -> None:
        _check_same({**self.plan, "sources": self.sources.facts()}, self.plan, self.folder)  # nobody wrote meanwhile
        layout.write_ids(self.folder, layout.USERS, reader.users.series)
        layout.write_ids(self.folder, layout.ITEMS, reader.items.series)
        columns = reader.write_user_columns(self.folder)
        facts = {
            "format": layout.FORMAT,
            "version": layout.VERSION,
            "interactions": n,
            "users": len(reader.users),
            "items": len(reader.items),
            "duplicates": journal.total("rows_kept") - n,
            "below_min_rating": journal.total("below"),
            "times": times,
            "dtypes": {"indptr": "int64", "indices": "int32", "times": times, **reader.id_types},
            "user_columns": columns,
        }
        fingerprint = layout.map_rows(self.folder, facts, name=self.folder.name).fingerprint
        written = sorted(path.name for path in self.folder.iterdir() if path.suffix in (".npy", ".parquet"))
        facts |= {"fingerprint": fingerprint, **self.plan, "files": facts_of(self.folder, written)}
        write_json(self.folder / layout.FACTS, sealed(facts))
