"""Adjacency lists, ``user item item …`` per line: the format of the LightGCN splits (Gowalla, Yelp2018)."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from bayesneg.data.readers.columns import Columns, is_header
from bayesneg.data.readers.raw_interactions import RawInteractions, concatenate
from bayesneg.data.readers.sniffing import guess_separator, sample_lines
from bayesneg.data.readers.values import as_ids
from bayesneg.errors import DataError

_N_TABLE = 4  # a table without a header has no more columns than user, item, rating and time


def looks_like_adjacency(path: Path) -> bool:
    """Lines of numbers between blanks, of different lengths, some longer than a table's."""
    lines, _ = sample_lines(path)
    if guess_separator(lines[:1]) != " " or is_header(lines[0].split(), Columns()):
        return False
    lengths = {len(line.split()) for line in lines}
    return len(lengths) > 1 and max(lengths) > _N_TABLE


def is_adjacency_folder(folder: Path) -> bool:
    """A folder with the two parts of such a split."""
    return (folder / "train.txt").is_file() and (folder / "test.txt").is_file()


def read_adjacency_folder(folder: Path) -> RawInteractions:
    """Both parts of a split together, the training part first."""
    return concatenate(read_adjacency(folder / "train.txt"), read_adjacency(folder / "test.txt"), source=str(folder))


def read_adjacency(path: Path) -> RawInteractions:
    """One row for each item of each line; a line that names a user alone gives none, as in the published splits."""
    sample_lines(path)
    try:
        lines = pl.read_csv(
            path, has_header=False, separator="\x1f", quote_char=None, schema={"line": pl.String}, glob=False
        )
    except pl.exceptions.PolarsError as error:
        raise _not_text(path) from error
    ids = lines.select(pl.col("line").str.extract_all(r"\S+").alias("ids")).filter(pl.col("ids").list.len() > 1)
    pairs = ids.select(pl.col("ids").list.first().alias("user"), pl.col("ids").list.slice(1).alias("item"))
    pairs = pairs.explode("item")
    return RawInteractions(users=as_ids(pairs["user"]), items=as_ids(pairs["item"]), source=str(path))


def _not_text(path: Path) -> DataError:
    """The second look: the first line that is no UTF-8."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return DataError(f"{path} line {number}: the text is not UTF-8; save the file in that encoding")
    return DataError(f"{path}: this cannot be read as adjacency lists (user item item … per line)")
