"""Archives of runs: what the pages need of a study's ledger, as compressed columns.

    python -m benchmarks.archive LEDGER.jsonl … ARCHIVE.parquet

New runs are appended to a ledger of JSON lines under ``runs/``; this command adds them to the archive in ``results/``,
after which the ledger can be deleted. A run keeps its cell, its settings, the metrics at 5, 10 and 20, and its curve at
the epochs that were evaluated. Runs evaluated on test labels also keep each user's NDCG@20 in steps of 1/4,000, rounded
such that the mean over users stays exact. To save space these values are averaged over seeds that are always used
together, and every run of such a group has the group's average. Baselines that several studies of a dataset have in
common are stored once, in ``DATASET-baselines.parquet`` beside their archives.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from bayesneg.reproduction.sweeps.cells import Cell
from bayesneg.runs import ledger
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord

MAIN: Final = "ndcg@20"
STEPS: Final = 4000  # of a value per user in [0, 1]
METRICS: Final = tuple(f"{name}@{k}" for name in ("precision", "recall", "ndcg") for k in (5, 10, 20))
CURVES: Final = (MAIN, "tnr", "inf", "tnr_uniform")
PAIRED: Final = ("reproduction",)  # studies whose rows are paired by seed; elsewhere all seeds of a row are averaged
TESTED: Final = ("last", "best")  # views that are evaluated on test labels
SHARED: Final = "baselines"  # ending of the archive that the studies of a dataset share
TEXTS: Final = ("cell", "spec", "versions", "data")  # repeated from run to run, so that JSON compresses well
PLAIN: Final = ("label", "seed", "dataset", "sampler", "model", "reported_epoch", "select", "uses_test_labels")


def read(*paths: Path) -> dict[str, Entry]:
    """The runs of the archives by the keys of their cells; a file that does not exist holds none."""
    return {entry.key: entry for path in paths if path.exists() for entry in _unpacked(pl.read_parquet(path))}


def shared_of(path: Path) -> Path:
    """The archive of the baselines that a study has in common with others of its dataset."""
    return path.with_name(f"{path.stem.rpartition('-')[0]}-{SHARED}{path.suffix}")


def write(path: Path, entries: Sequence[Entry]) -> Path:
    """Replace the archive by these runs, from a ledger or an archive."""
    rows = [{**_plain(entry), **_numbers(entry)} for entry in entries]
    columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(key for row in rows for key in row)}
    frame = pl.DataFrame([_series(name, values) for name, values in columns.items()])
    path.parent.mkdir(parents=True, exist_ok=True)
    starts = _starts(entries) if path.parent.name in PAIRED else []
    frame = frame.with_columns(_per_user(entries, starts))
    frame.write_parquet(path, compression="zstd", compression_level=19)
    return path


def _plain(entry: Entry) -> dict[str, Any]:
    record = entry.record.to_dict()
    texts = {"cell": entry.cell, **{name: record[name] for name in TEXTS[1:]}}
    return {
        **{name: record[name] for name in PLAIN},
        **{name: json.dumps(value, ensure_ascii=False) for name, value in texts.items()},
    }


def _numbers(entry: Entry) -> dict[str, Any]:
    """Final metrics by name, curves as lists over the epochs that are kept, and everything else of an epoch as JSON."""
    lines = [line for line in entry.record.epochs if _is_kept(line, entry.record)]
    if _is_search(entry):
        return {"epoch": [line["epoch"] for line in lines], MAIN: [line[MAIN] for line in lines]}
    other = {str(line["epoch"]): extra for line in lines if (extra := _extra(line))}
    curves = {key: [line.get(key) for line in lines] for key in CURVES}
    return {
        "epoch": [line["epoch"] for line in lines],
        **{key: values for key, values in curves.items() if any(value is not None for value in values)},
        **{f"final {key}": entry.record.final[key] for key in METRICS if key in entry.record.final},
        **({"other": json.dumps(other)} if other else {}),
    }


def _is_search(entry: Entry) -> bool:
    return bool(entry.cell) and entry.cell["view"] not in TESTED


def _is_kept(line: Mapping[str, Any], record: RunRecord) -> bool:
    """The evaluated epochs and the last; of a figure's densities, all that have them."""
    return MAIN in line or "densities" in line or line["epoch"] == record.epochs[-1]["epoch"]


def _extra(line: Mapping[str, Any]) -> dict[str, Any]:
    """What has no column: densities of a figure, and what an audit measured."""
    audited = "fn" in line
    return {key: value for key, value in line.items() if key == "densities" or (audited and key not in SKIPPED)}


SKIPPED: Final = ("epoch", *CURVES, "seconds", "skipped", "deciles", "candidates_reliability")


def _series(name: str, values: list[Any]) -> pl.Series:
    if name == "epoch":
        return pl.Series(name, values, dtype=pl.List(pl.UInt16))
    if name in CURVES:
        return pl.Series(name, values, dtype=pl.List(pl.Float32))
    return pl.Series(name, values, dtype=pl.Float32 if name.startswith("final ") else None)


def _starts(entries: Iterable[Entry]) -> list[int]:
    """The seeds at which a new average begins: where one row has 3 seeds and another 10, at seed 3."""
    n_seeds = Counter(_row(entry) for entry in entries if not _is_search(entry))
    return sorted(set(n_seeds.values()))[:-1]


def _per_user(entries: Sequence[Entry], starts: Sequence[int]) -> list[pl.Series]:
    """The group of each run, and on the first run of a group its values per user."""
    members: dict[tuple[str, int], list[int]] = {}
    for place, entry in enumerate(entries):
        if MAIN in (entry.record.per_user or {}) and not _is_search(entry):
            start = max((seed for seed in starts if seed <= entry.record.seed), default=0)
            members.setdefault((_row(entry), start), []).append(place)
    number: list[int | None] = [None] * len(entries)
    values: list[list[int] | None] = [None] * len(entries)
    for group, places in enumerate(members.values()):
        for place in places:
            number[place] = group
        values[places[0]] = _steps(np.mean([_values(entries[place]) for place in places], axis=0))
    return [
        pl.Series("group", number, dtype=pl.UInt16),
        pl.Series("per_user", values, dtype=pl.List(pl.UInt16)),
    ]


def _values(entry: Entry) -> np.ndarray:
    return (entry.record.per_user or {})[MAIN]


def _steps(values: np.ndarray) -> list[int]:
    """Whole steps; each rounding error is passed on to the next user, so that the mean stays exact."""
    return np.diff(np.round(np.cumsum(values * STEPS)), prepend=0.0).astype(np.uint16).tolist()


def _row(entry: Entry) -> str:
    """What the runs of different seeds share."""
    own = {name: value for name, value in entry.cell.items() if name not in ("seed", "label")}
    return json.dumps(own or (entry.record.dataset, entry.record.label), sort_keys=True)


def _unpacked(frame: pl.DataFrame) -> Iterable[Entry]:
    of_group = {
        row["group"]: np.array(row["per_user"]) / STEPS
        for row in frame.select("group", "per_user").drop_nulls().iter_rows(named=True)
    }
    for row in frame.iter_rows(named=True):
        texts = {name: json.loads(row[name]) for name in TEXTS}
        record = RunRecord(
            **{name: row[name] for name in PLAIN},
            **{name: texts[name] for name in TEXTS[1:]},
            epochs=_epochs(row),
            final={key[6:]: _rounded(value) for key, value in row.items() if key[:6] == "final " and value is not None},
            per_user={MAIN: of_group[row["group"]]} if row["group"] in of_group else {},
        )
        yield Entry(_key(texts["cell"], record), texts["cell"], record)


def _key(cell: Mapping[str, Any], record: RunRecord) -> str:
    return Cell.from_dict(cell).key if cell else f"{record.dataset}/{record.label}/{record.seed}"


def _epochs(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    other = json.loads(row.get("other") or "{}")
    lines = [{"epoch": epoch, **other.get(str(epoch), {})} for epoch in row["epoch"]]
    for key in CURVES:
        for line, value in zip(lines, row.get(key) or (), strict=False):
            line.update({} if value is None else {key: _rounded(value)})
    return lines


def _rounded(value: float) -> float:
    """The decimals that a ledger keeps, which four bytes hold."""
    return round(value, 6)


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    *ledgers, archive = map(Path, sys.argv[1:])
    known = read(archive)
    stored = {*known, *read(shared_of(archive))}
    found = {key: entry for key, entry in ledger.read(ledgers).items() if key not in stored}
    print(f"{len(found)} runs added to {write(archive, [*known.values(), *found.values()])}")


if __name__ == "__main__":
    main()
