"""Raw identifiers to dense numbers in order of first appearance, and repeated pairs to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesneg.errors import DataError

if TYPE_CHECKING:
    import polars as pl


def numbered(ids: Any) -> tuple[np.ndarray, np.ndarray]:
    """Dense numbers in order of first appearance (n,) int64, and the distinct identifiers as given."""
    import polars as pl

    numbers, known = numbered_series(ids if isinstance(ids, pl.Series) else pl.Series("id", ids))
    return numbers, known.to_numpy()


def numbered_series(series: pl.Series) -> tuple[np.ndarray, pl.Series]:
    """The same, with the distinct identifiers as a series."""
    import polars as pl

    known = series.unique(maintain_order=True)
    if series.dtype == pl.Int64 and are_close(known.to_numpy(), len(series)):
        return _looked_up(series.to_numpy(), known.to_numpy()), known
    table = known.alias("id").to_frame().with_row_index("number")
    numbers = series.alias("id").to_frame().join(table, on="id", how="left", maintain_order="left")["number"]
    return numbers.to_numpy().astype(np.int64), known


def check_numbers(argument: str, numbers: np.ndarray, n: int, name: str) -> None:
    """An error for numbers that no user or item has; item n would be item 0 of the next user."""
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= n):
        wrong = numbers[(numbers < 0) | (numbers >= n)][0]
        raise DataError(f"{name}: {argument} must be numbers from 0 to {n - 1}, got {wrong}")


def collapsed(keys: np.ndarray, times: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Keys ascending, each once, and the latest time of each; ``keys`` is sorted in place."""
    keys, stamps = _sorted(keys, times)
    last = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=last[:-1])
    return keys[last], None if stamps is None else _latest(stamps, last)


def are_close(known: np.ndarray, n: int) -> bool:
    """Whether an array over the whole range of integers is no larger than a few times the data itself."""
    return len(known) > 0 and int(known.max()) - int(known.min()) < 4 * n  # Python's integers do not overflow


def _looked_up(ids: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The place of each id among the known ones; where integers are close together, an array is a fast join."""
    lowest = known.min()
    places = np.empty(known.max() - lowest + 1, dtype=np.int64)
    places[known - lowest] = np.arange(len(known))
    return places[ids - lowest]


def _sorted(keys: np.ndarray, times: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Keys ascending, and the times moved along with them; polars finds the order on all cores."""
    if times is None:
        keys.sort()
        return keys, None
    import polars as pl

    order = pl.Series(keys).arg_sort().to_numpy()
    return keys[order], np.asarray(times)[order]


def _latest(stamps: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The latest time of each run of equal keys; ``last`` marks where a run ends."""
    if last.all():
        return stamps
    starts = np.concatenate(([0], np.flatnonzero(last)[:-1] + 1))
    return np.maximum.reduceat(stamps, starts)
