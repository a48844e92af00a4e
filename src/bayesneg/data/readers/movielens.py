"""MovieLens folders: ML-100K and ML-1M as GroupLens ships them, the later ``ratings.csv``, and RecBole's atomic files.

Harper and Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015. Item files are not opened: the
older ones are Latin-1, and nothing in them is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bayesneg.data.readers.columns import Columns
from bayesneg.data.readers.raw_interactions import RawInteractions
from bayesneg.data.readers.tables import read_table
from bayesneg.data.readers.users import choose, read_users
from bayesneg.errors import DataError

_ML_100K_USERS = ("user", "age", "gender", "occupation", "zip_code")
_ML_1M_USERS = ("user", "gender", "age", "occupation", "zip_code")


def is_movielens_folder(folder: Path) -> bool:
    """Whether the folder holds one of the layouts read here."""
    return _layout(folder) is not None


def read_movielens(
    folder: Path, *, user_columns: Sequence[str] | None = None, min_rating: float | None = None
) -> RawInteractions:
    """The ratings of a MovieLens folder with its user features, all or ``user_columns``."""
    reader = _layout(folder)
    if reader is None:
        raise DataError(
            f"{folder}: no u.data, ratings.dat, ratings.csv or single .inter file; this is no MovieLens folder"
        )
    pairs = reader(folder, min_rating)
    return replace(pairs, user_table=choose(pairs.user_table, user_columns, source=str(folder)))


def _layout(folder: Path) -> Callable[[Path, float | None], RawInteractions] | None:
    if (folder / "u.data").is_file():
        return _read_100k
    if (folder / "ratings.dat").is_file():
        return _read_1m
    if (folder / "ratings.csv").is_file():
        return lambda folder, min_rating: read_table(folder / "ratings.csv", Columns(), min_rating=min_rating)
    return _read_atomic if len(list(folder.glob("*.inter"))) == 1 else None


def _read_100k(folder: Path, min_rating: float | None) -> RawInteractions:
    pairs = read_table(folder / "u.data", Columns(), separator="\t", header=False, min_rating=min_rating)
    return _with_users(pairs, folder / "u.user", "|", _ML_100K_USERS)


def _read_1m(folder: Path, min_rating: float | None) -> RawInteractions:
    pairs = read_table(folder / "ratings.dat", Columns(), separator="::", header=False, min_rating=min_rating)
    return _with_users(pairs, folder / "users.dat", "::", _ML_1M_USERS)


def _read_atomic(folder: Path, min_rating: float | None) -> RawInteractions:
    """RecBole's files: tabs, a header with types, as they come inside its wheels."""
    ratings = next(folder.glob("*.inter"))
    pairs = read_table(ratings, Columns(), separator="\t", header=True, min_rating=min_rating)
    return _with_users(pairs, ratings.with_suffix(".user"), "\t", None)


def _with_users(pairs: RawInteractions, path: Path, separator: str, names: Sequence[str] | None) -> RawInteractions:
    if not path.is_file():
        return pairs
    return replace(pairs, user_table=read_users(path, names=names, separator=separator))
