"""One way in: a built-in name, a file, a folder, a frame or a sparse matrix becomes :class:`Interactions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scipy import sparse

from bayesneg.data.catalogue import BUILT_IN, found
from bayesneg.data.interactions import Interactions
from bayesneg.data.readers.adjacency import is_adjacency_folder, read_adjacency_folder
from bayesneg.data.readers.columns import Column
from bayesneg.data.readers.frames import read_matrix
from bayesneg.data.readers.kuairec import is_kuairec_folder, read_kuairec
from bayesneg.data.readers.movielens import is_movielens_folder, read_movielens
from bayesneg.data.readers.yahoo import is_yahoo_folder, read_yahoo
from bayesneg.data.reading import Format, Reading, existing, read_pairs, reading
from bayesneg.errors import DataError


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
    """Who chose what, from wherever it is.

    ``source`` is a built-in name (``synthetic``, ``ml-100k``, ``ml-1m``, ``yahoo-r3``, ``kuairec``, ``gowalla``,
    ``yelp2018``), a file (CSV, TSV, ``::`` or another separator, Parquet, adjacency lists), a folder in the layout of
    one of these datasets, a pandas, polars or Arrow frame, or a SciPy sparse matrix (users × items).

    Columns are guessed from common names; a name, or a position from 0, overrides the guess, and ``""`` says that
    there is no such column. ``user_columns`` are kept for group priors; a folder that knows its users gives all it
    knows unless told which. Ratings are dropped; ``min_rating`` keeps the rows rated so or higher. ``data_dir`` is
    where built-in datasets are looked for. Identifiers come back as they were given: ``"007"`` stays ``"007"``.

    >>> import polars as pl
    >>> load(pl.DataFrame({"user": ["ann", "bob", "ann"], "item": [7, 7, 9]}), name="three")
    Interactions('three': 3 of 2 users with 2 items)
    """
    how = reading(
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
        return read_pairs(source, how).interactions(name=name or "frame")
    if isinstance(source, str) and source in BUILT_IN:
        return _built_in(source, how, data_dir, name or source)
    path = existing(source)
    if path.is_dir():
        return _from_folder(path, how, name or path.resolve().name)
    return read_pairs(path, how).interactions(name=name or path.stem)


def _built_in(source: str, how: Reading, data_dir: str | Path | None, name: str) -> Interactions:
    if source != "synthetic":
        return _from_folder(found(source, data_dir=data_dir), how, name)
    from bayesneg.data.synthetic import synthetic

    how.refuse_all_but(source="the synthetic world")
    return replace(synthetic(), name=name)


def _from_folder(folder: Path, how: Reading, name: str) -> Interactions:
    """The layout is told from the files that are there."""
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
    raise DataError(
        f"{folder}: no layout is known for this folder; it should hold u.data, ratings.dat, ratings.csv, one .inter "
        "file, train.txt and test.txt, or the files of Yahoo!-R3 or KuaiRec; or give one file of it"
    )
