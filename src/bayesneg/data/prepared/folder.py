"""A prepared folder: what is in it, and reading it in no time.

::

    prepared.json      counts, types, fingerprint, sources, options, and size and sha256 of every file; written last, so
                       that it marks a whole folder
    indptr.npy         start of each user's row in indices, (n_users + 1,) int64
    indices.npy        items, ascending within a user, (n,) int32
    times.npy          time of each interaction, (n,) int64 or float64, where there are times
    user_ids.parquet   raw identifiers in the order of their numbers, column "id"; item_ids.parquet likewise
    user_ids.npy       the same where they are integers, to be mapped; item_ids.npy likewise
    user_columns.parquet  user features in the order of the users, where some were kept
    splits/NAME/       split.json, and train/, test/, validation/ with their indptr.npy, indices.npy, times.npy
    work/              what is needed to go on after an interruption; gone when the folder is whole
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from bayesneg.data.interactions import Interactions
from bayesneg.data.prepared.files import mapped, read_json, read_table, write_array, write_table
from bayesneg.errors import DamagedError, DataError
from bayesneg.integrity.digests import check_file, check_seal

FACTS: Final = "prepared.json"
FORMAT: Final = "bayesneg prepared data"
VERSION: Final = 1
USERS, ITEMS = "user_ids", "item_ids"
WAY_OUT: Final = "prepare the data again, into a new folder"


def is_prepared(folder: Path) -> bool:
    """Whether the folder holds prepared data, all of it."""
    return (folder / FACTS).is_file()


def check_whole(folder: Path) -> None:
    """An error where preparing this folder was interrupted, or the file that marks a whole one is missing."""
    if (folder / "work" / "plan.json").is_file():
        raise DataError(
            f"{folder}: preparing this folder was interrupted; the same bayesneg data prepare goes on with it"
        )
    if (folder / "indptr.npy").is_file():
        raise DataError(f"{folder}: {FACTS} is missing; prepare the data again, into a new folder")


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of a prepared folder; an error for one of another version."""
    facts = read_json(folder / FACTS)
    if not isinstance(facts, dict) or facts.get("format") != FORMAT or facts.get("version") != VERSION:
        raise DataError(
            f"{folder / FACTS}: this is not {FORMAT} of version {VERSION}; prepare the sources again, into a new folder"
        )
    check_seal(facts, folder / FACTS, way_out=WAY_OUT)
    return facts


def check_files(folder: Path, facts: Mapping[str, Any], *, way_out: str, all_of_them: bool = False) -> None:
    """Compare the files with what was written: sizes and digests, of a file above 4 MiB that of a sample.

    Args:
        folder: The folder, of prepared data or of a split.
        facts: What its JSON file holds; an earlier version lists no files.
        way_out: What to do about a damaged file, the end of the sentence.
        all_of_them: Whether to read large files as a whole.
    """
    for name, one in facts.get("files", {}).items():
        if not (folder / name).is_file():
            continue  # whoever reads it says so; numbers as identifiers are there twice
        with as_data_error():
            check_file(folder / name, one, way_out=way_out, content=all_of_them)


@contextmanager
def as_data_error() -> Iterator[None]:
    """Damage to data is an error of the data."""
    try:
        yield
    except DamagedError as error:
        raise DataError(str(error)) from error


def load_prepared(folder: Path, *, name: str) -> Interactions:
    """The interactions of a prepared folder, mapped: nothing large is read before it is used, except identifiers of
    text, and samples of large files, which are compared with their digests.
    """
    facts = read_facts(folder)
    check_files(folder, facts, way_out=WAY_OUT)
    data = map_rows(folder, facts, name=name)
    check_rows(folder, data, way_out=WAY_OUT)
    counted = (len(data), data.n_users, data.n_items, len(data.indptr) - 1)
    if counted != (facts["interactions"], facts["users"], facts["items"], facts["users"]):
        raise DataError(f"{folder}: its arrays do not have the lengths that {FACTS} says; prepare the data again")
    return with_fingerprint(data, facts["fingerprint"])


def verify(folder: Path) -> int:
    """Read every file of prepared data, and of its stored splits, and compare it with its digest.

    Args:
        folder: The folder.

    Returns:
        The number of files.

    Raises:
        DataError: A file is damaged; the sentence names it.
    """
    n_files = 0
    for whole in (folder / FACTS, *sorted(folder.glob("splits/*/split.json"))):
        is_split = whole.name != FACTS
        facts = read_json(whole) if is_split else read_facts(folder)
        way_out = f"delete {whole.parent}, which is made again" if is_split else WAY_OUT
        with as_data_error():
            check_seal(facts, whole, way_out=way_out)
        check_files(whole.parent, facts, way_out=way_out, all_of_them=True)
        n_files += len(facts.get("files", {}))
    return n_files


def check_rows(folder: Path, data: Interactions, *, way_out: str) -> None:
    """Refuse arrays that are no rows of the users, as far as can be told without reading them."""
    indptr, indices, times = data.indptr, data.indices, data.times
    fits = indptr.ndim == indices.ndim == 1 and indptr.dtype == np.int64 and indices.dtype == np.int32
    fits = fits and len(indptr) == data.n_users + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
    if not fits or (times is not None and times.shape != indices.shape):
        raise DataError(f"{folder}: indptr.npy, indices.npy and times.npy do not fit together; {way_out}")


def map_rows(folder: Path, facts: Mapping[str, Any], *, name: str) -> Interactions:
    """The interactions as the arrays in the folder have them."""
    return Interactions(
        indptr=mapped(folder / "indptr.npy"),
        indices=mapped(folder / "indices.npy"),
        times=None if facts["times"] is None else mapped(folder / "times.npy"),
        user_ids=_ids(folder, USERS),
        item_ids=_ids(folder, ITEMS),
        user_columns=UserColumns(folder / "user_columns.parquet", facts["user_columns"]),
        name=name,
        n_duplicates=facts["duplicates"],
        n_below_min_rating=facts["below_min_rating"],
        origin={"data": str(folder.resolve())},
        prepared=folder.resolve(),
    )


def with_fingerprint(data: Interactions, fingerprint: str) -> Interactions:
    """The same data, whose fingerprint was computed when it was written and is not computed again."""
    vars(data)["fingerprint"] = fingerprint
    return data


def write_ids(folder: Path, name: str, ids: pl.Series) -> None:
    """Identifiers as Parquet, and integers also as an array that can be mapped."""
    write_table(folder / f"{name}.parquet", ids.to_frame("id"))
    if ids.dtype == pl.Int64:
        write_array(folder / f"{name}.npy", ids.to_numpy())


def _ids(folder: Path, name: str) -> np.ndarray:
    array = folder / f"{name}.npy"
    return mapped(array) if array.is_file() else read_table(folder / f"{name}.parquet", "id").to_numpy()


class UserColumns(Mapping[str, np.ndarray]):
    """User features, each read when it is first asked for."""

    def __init__(self, path: Path, names: list[str]) -> None:
        self._path, self._names = path, names
        self._read: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            values = read_table(self._path, name).to_list()
            self._read[name] = np.array(values, dtype=object)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
