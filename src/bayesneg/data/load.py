"""The two ways in: one source becomes :class:`Interactions`, a training and a test source become a :class:`Split`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from bayesneg.data.catalogue import BUILT_IN, found
from bayesneg.data.interactions import Interactions
from bayesneg.data.numbering import numbered
from bayesneg.data.prepared.folder import check_whole, is_prepared, load_prepared
from bayesneg.data.readers.adjacency import is_adjacency_folder, read_adjacency_folder
from bayesneg.data.readers.columns import Column
from bayesneg.data.readers.frames import read_matrix
from bayesneg.data.readers.kuairec import is_kuairec_folder, read_kuairec
from bayesneg.data.readers.movielens import is_movielens_folder, read_movielens
from bayesneg.data.readers.raw_interactions import RawInteractions, columns_of, concatenate
from bayesneg.data.readers.users import choose, read_users
from bayesneg.data.readers.yahoo import is_yahoo_folder, read_yahoo
from bayesneg.data.reading import Format, ReadOptions, existing, read_options, read_rows
from bayesneg.data.splits import Split, carve_validation
from bayesneg.errors import DataError, InputError


def load(
    source: Any,
    *,
    user_column: Column | None = None,
    item_column: Column | None = None,
    rating_column: Column | None = None,
    time_column: Column | None = None,
    user_columns: Sequence[str] | None = None,
    separator: str | None = None,
    header: bool | None = None,
    min_rating: float | None = None,
    data_dir: str | Path | None = None,
    name: str | None = None,
    format: Format | None = None,
) -> Interactions:
    """Read user–item interactions from a built-in dataset, a file, a folder, a frame or a sparse matrix.

    Columns are guessed from common names. Duplicate pairs collapse into one, with the latest time. Identifiers are kept
    as they are written: ``"007"`` stays ``"007"``.

    Args:
        source: A built-in name (``synthetic``, ``ml-100k``, ``ml-1m``, ``yahoo-r3``, ``kuairec``, ``gowalla``,
            ``yelp2018``), a file (CSV, TSV or another separator, Parquet, adjacency lists), a folder in the layout of
            one of these datasets or written by :func:`prepare`, a pandas, polars or Arrow frame, or a SciPy sparse
            matrix (users × items).
        user_column: Name of the user column, or its position from 0.
        item_column: Name of the item column, or its position from 0.
        rating_column: Name or position of the rating column; ``""`` for none.
        time_column: Name or position of the time column; ``""`` for none.
        user_columns: User features to keep for group priors; by default none of a table, all of a MovieLens folder.
        separator: Separator of a text table; guessed by default.
        header: Whether the first line of a text table has the names of the columns; guessed by default.
        min_rating: Keep only rows with at least this rating; ratings themselves are dropped.
        data_dir: Folder of the built-in datasets; by default ``BAYESNEG_DATA``, else the user's data folder.
        name: Name of the dataset in records and reports.
        format: ``"table"``, ``"parquet"`` or ``"adjacency"``; guessed by default.

    Returns:
        The interactions, with users and items numbered in order of first appearance.

    Example:
        >>> import polars as pl
        >>> load(pl.DataFrame({"user": ["ann", "bob", "ann"], "item": [7, 7, 9]}), name="three")
        Interactions('three': 3 of 2 users with 2 items)
    """
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
    if sparse.issparse(source):
        how.refuse_all_but("min_rating", source="a sparse matrix")
        return read_matrix(source, name=name or "matrix", min_rating=min_rating)
    if not isinstance(source, str | Path):
        return read_rows(source, how).interactions(name=name or "frame")
    if isinstance(source, str) and source in BUILT_IN:
        data = _built_in(source, how, data_dir, name or source)
        where = {} if data_dir is None else {"data_dir": _absolute(data_dir)}
        return replace(data, origin={"data": source, **where, **how.given})
    path = existing(source)
    if is_prepared(path):
        how.refuse_all_but(source="a prepared folder")
        return load_prepared(path, name=name or path.resolve().name)
    if path.is_dir():
        data = _from_folder(path, how, name or path.resolve().name)
    else:
        data = read_rows(path, how).interactions(name=name or path.stem)
    return replace(data, origin={"data": _absolute(path), **how.given})


def _built_in(source: str, how: ReadOptions, data_dir: str | Path | None, name: str) -> Interactions:
    if source != "synthetic":
        return _from_folder(found(source, data_dir=data_dir), how, name)
    from bayesneg.data.synthetic import synthetic

    how.refuse_all_but(source="the synthetic world")
    return replace(synthetic(), name=name)


def _from_folder(folder: Path, how: ReadOptions, name: str) -> Interactions:
    """The layout is recognized by the files in the folder."""
    if is_yahoo_folder(folder):
        how.refuse_all_but("min_rating", source="a Yahoo!-R3 folder")
        return read_yahoo(folder, min_rating=how.min_rating).interactions(name=name)
    if is_kuairec_folder(folder):
        how.refuse_all_but(source="a KuaiRec folder")
        return read_kuairec(folder, name=name)
    if is_adjacency_folder(folder):
        how.refuse_all_but(source="a folder of adjacency lists")
        return read_adjacency_folder(folder).interactions(name=name)
    if is_movielens_folder(folder):
        how.refuse_all_but("min_rating", "user_columns", source="a MovieLens folder")
        pairs = read_movielens(folder, user_columns=how.user_columns, min_rating=how.min_rating)
        return pairs.interactions(name=name)
    check_whole(folder)
    raise DataError(
        f"{folder}: the layout of this folder is unknown; it should hold u.data, ratings.dat, ratings.csv, one .inter "
        "file, train.txt and test.txt, or the files of Yahoo!-R3 or KuaiRec; or give one file of it"
    )


def read_split(
    train_source: Any,
    test_source: Any,
    *,
    validation: float = 0.0,
    seed: int = 0,
    user_file: str | Path | None = None,
    overlap: Literal["raise", "drop"] = "raise",
    user_column: Column | None = None,
    item_column: Column | None = None,
    rating_column: Column | None = None,
    time_column: Column | None = None,
    user_columns: Sequence[str] | None = None,
    separator: str | None = None,
    header: bool | None = None,
    min_rating: float | None = None,
    name: str | None = None,
    format: Format | None = None,
) -> Split:
    """Read a published split: a training and a test source, numbered together.

    Args:
        train_source: File or frame of the training interactions.
        test_source: File or frame of the test interactions.
        validation: Share of the training interactions to hold out for validation; 0 for none.
        seed: Seed of the validation part.
        user_file: Table with a user column and one column per user feature.
        overlap: ``"raise"`` if a test pair that is also in training is an error, ``"drop"`` to remove it from the test.
        user_column: Name of the user column, or its position from 0.
        item_column: Name of the item column, or its position from 0.
        rating_column: Name or position of the rating column; ``""`` for none.
        time_column: Name or position of the time column; ``""`` for none.
        user_columns: User features to keep for group priors, of ``user_file`` if given.
        separator: Separator of text tables; guessed by default.
        header: Whether the first line of a text table has the names of the columns; guessed by default.
        min_rating: Keep only rows with at least this rating.
        name: Name of the dataset in records and reports.
        format: ``"table"``, ``"parquet"`` or ``"adjacency"``; guessed by default.

    Returns:
        The split; users and items that occur only in the test are kept.

    Example:
        >>> import polars as pl
        >>> train = pl.DataFrame({"user": ["ann", "bob"], "item": [7, 7]})
        >>> read_split(train, pl.DataFrame({"user": ["ann"], "item": [9]})).n_test_only_items
        1
    """
    if overlap not in ("raise", "drop"):
        raise InputError(f"overlap must be 'raise' or 'drop', got {overlap!r}")
    if not 0 <= validation < 1:
        raise InputError(f"validation must be a share of at least 0 and less than 1, got {validation}")
    how = read_options(
        user_column=user_column,
        item_column=item_column,
        rating_column=rating_column,
        time_column=time_column,
        user_columns=None if user_file is not None else user_columns,
        separator=separator,
        header=header,
        min_rating=min_rating,
        format=format,
    )
    train, test = read_rows(train_source, how), read_rows(test_source, how)
    if user_file is not None:
        table = choose(read_users(existing(user_file), user_column=user_column), user_columns, source=str(user_file))
        train = replace(train, user_table=table)
    split = _split(train, test, name=name or _name_of(train_source), overlap=overlap)
    split = split if validation == 0 else carve_validation(split, validation, seed=seed)
    if overlap == "drop" or not (isinstance(train_source, str | Path) and isinstance(test_source, str | Path)):
        return split
    columns = {} if user_columns is None else {"user_columns": user_columns}
    users = {} if user_file is None else {"user_file": _absolute(user_file), **columns}
    files = {"data": _absolute(train_source), "test": _absolute(test_source), **how.given, **users}
    return replace(split, origin={**files, "validation": float(validation), "split_seed": seed})


def _split(train: RawInteractions, test: RawInteractions, *, name: str, overlap: str) -> Split:
    """Numbered together, so that both parts mean the same user by the same number."""
    train.check_not_empty()
    test.check_not_empty()
    both = concatenate(train, test, source=name)
    users, user_ids = numbered(both.users)
    items, item_ids = numbered(both.items)
    columns = columns_of(user_ids, both.user_table)

    def part(rows: slice, pairs: RawInteractions) -> Interactions:
        return Interactions.from_numbers(
            users[rows],
            items[rows],
            user_ids=user_ids,
            item_ids=item_ids,
            times=None if both.times is None else both.times[rows].to_numpy(),
            user_columns=columns,
            name=name,
            n_below_min_rating=pairs.n_below_min_rating,
        )

    n_train = len(train.users)
    trained, tested = part(slice(0, n_train), train), part(slice(n_train, None), test)
    return Split(train=trained, test=_unseen(trained, tested, train.source, test.source, overlap), how="given")


def _unseen(train: Interactions, test: Interactions, train_name: str, test_name: str, overlap: str) -> Interactions:
    seen = train.contains(test.users, test.indices)
    if not seen.any():
        return test
    n_seen = int(np.count_nonzero(seen))
    if overlap == "raise":
        raise DataError(
            f"{n_seen:,} of the {len(test):,} pairs in {test_name} are in {train_name} too; the test part must be "
            'unseen, so take them out of one file; in Python, overlap="drop" drops them from the test part'
        )
    if n_seen == len(test):
        raise DataError(f"{test_name}: no pair is left, all {n_seen:,} are in {train_name} too")
    kept = test.select(~seen)
    return replace(kept, n_duplicates=test.n_duplicates, n_below_min_rating=test.n_below_min_rating)


def _absolute(path: str | Path) -> str:
    return str(Path(path).expanduser().resolve())


def _name_of(source: Any) -> str:
    return Path(source).stem if isinstance(source, str | Path) else "frame"
