"""Yahoo!-R3: ratings of songs that users selected, and of ten random songs for each of the first 5,400 users.

Marlin and Zemel, "Collaborative prediction and ranking with non-random missing data", RecSys 2009. The owner lends
the data under a signed agreement and forbids copies, so the two original files come from the user. The paper's
version is the first 5,400 users of both files together.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from bayesneg.data.readers.columns import Columns
from bayesneg.data.readers.raw_interactions import RawInteractions, concatenate
from bayesneg.data.readers.tables import read_table
from bayesneg.errors import DataError

TRAIN_FILE = "ydata-ymusic-rating-study-v1_0-train.txt"
TEST_FILE = "ydata-ymusic-rating-study-v1_0-test.txt"
N_USERS = 5_400


def is_yahoo_folder(folder: Path) -> bool:
    """Whether one of the two original files is there."""
    return (folder / TRAIN_FILE).is_file() or (folder / TEST_FILE).is_file()


def read_yahoo(folder: Path, *, min_rating: float | None = None) -> RawInteractions:
    """The ratings of users 1 … 5,400 in both files."""
    for name in (TRAIN_FILE, TEST_FILE):
        if not (folder / name).is_file():
            raise DataError(f"{folder / name}: no such file; Yahoo!-R3 needs both original files in one folder")
    selected = _read(folder / TRAIN_FILE, min_rating)
    random = _read(folder / TEST_FILE, min_rating)
    return concatenate(selected, random, source=str(folder))


def _read(path: Path, min_rating: float | None) -> RawInteractions:
    """One file; ratings below ``min_rating`` are counted among the users that are kept only."""
    everything = _first_users(path, None)
    if min_rating is None:
        return everything
    rated = _first_users(path, min_rating)
    return replace(rated, n_below_min_rating=len(everything.users) - len(rated.users))


def _first_users(path: Path, min_rating: float | None) -> RawInteractions:
    pairs = read_table(path, Columns(), separator="\t", header=False, min_rating=min_rating)
    if pairs.users.dtype != pl.Int64:
        raise DataError(f"{path}: the users of Yahoo!-R3 are numbers from 1; this file has others")
    first = pairs.users <= N_USERS
    return RawInteractions(pairs.users.filter(first), pairs.items.filter(first), source=str(path))
