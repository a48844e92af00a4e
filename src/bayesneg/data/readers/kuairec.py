"""KuaiRec's small matrix: nearly every user watched nearly every video, so an absent pair is a real negative.

Gao et al., "KuaiRec: A Fully-observed Dataset and Insights for Evaluating Recommender Systems", CIKM 2022.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from bayesneg.data.interactions import Interactions
from bayesneg.data.readers.columns import Columns
from bayesneg.data.readers.raw_interactions import RawInteractions
from bayesneg.data.readers.sniffing import sample_lines
from bayesneg.data.readers.tables import read_table
from bayesneg.data.readers.values import as_ids
from bayesneg.errors import DataError

ORIGINAL_FILE = "small_matrix.csv"  # as the authors publish it, every pair with its watch_ratio
POSITIVES_FILE = "small_matrix_positives.csv"  # or only the pairs with a watch ratio above 2 …
CATALOGUE_FILE = "known_video_ids.txt"  # … and the videos there are
ABOVE_TWO = float(np.nextafter(2.0, 3.0))


@dataclass(frozen=True, eq=False)
class FullyObserved:
    """The truth where every pair was observed: a user likes exactly the items of the full data."""

    positives: Interactions

    def likes(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """True where the pair is in the full data; ``users`` and ``items`` broadcast."""
        return self.positives.contains(users, items)


def is_kuairec_folder(folder: Path) -> bool:
    """Whether the matrix or its positives are there."""
    return (folder / POSITIVES_FILE).is_file() or (folder / ORIGINAL_FILE).is_file()


def read_kuairec(folder: Path, *, name: str) -> Interactions:
    """The positives over the whole catalogue, with the truth about every pair."""
    positives = folder / POSITIVES_FILE
    if positives.is_file():
        pairs = replace(read_table(positives, Columns()), catalogue=_catalogue(folder / CATALOGUE_FILE))
    else:
        pairs = _read_original(folder / ORIGINAL_FILE)
    data = pairs.interactions(name=name)
    return replace(data, truth=FullyObserved(data))


def _read_original(path: Path) -> RawInteractions:
    """A watch ratio above 2 is a positive; the other rows give the catalogue."""
    wanted = Columns(user="user_id", item="video_id", rating="watch_ratio", time="")
    every = read_table(path, wanted)
    liked = read_table(path, wanted, min_rating=ABOVE_TWO)
    return replace(liked, catalogue=every.items.unique(maintain_order=True), n_below_min_rating=0)


def _catalogue(path: Path) -> pl.Series:
    if not path.is_file():
        raise DataError(f"{path}: no such file; without the catalogue, videos that nobody liked would be missing")
    sample_lines(path)
    texts = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    return as_ids(pl.Series("item", [text for text in texts if text], dtype=pl.String))
