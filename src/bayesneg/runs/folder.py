"""The folder of a run: plain files, from which every table, plot and report is made.

run.json              the schema, label, model, sampler, seed, split, data facts and fingerprint, versions
run.toml              the same as a file from which bayesneg train makes the run again
epochs.jsonl          one line per epoch, appended as training goes
metrics.json          test metrics of the reported epoch, with intervals over users
per_user.parquet      the same, one row per user
weights.safetensors   embeddings of the reported epoch, an item model's weights, or a custom model's parameters
users.parquet, items.parquet, split.parquet
                      raw identifiers by dense number, and every pair with its part
checkpoint.safetensors, checkpoint.previous.safetensors
                      the state of training, to resume it, with its digest; and the one before, in case it is damaged
trained.safetensors   of a run that was saved later, the embeddings that training moved, where those of the weights are
                      normalised or smoothed
tracking.json         the tracked runs that a resumed run continues
manifest.json         size and sha256 of the others, but for checkpoints (in themselves), run.toml and tracking.json;
                      written last
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bayesneg import __version__
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.errors import BayesnegError, DamagedError, InputError, first_line, no_panic
from bayesneg.integrity.locks import FileLock
from bayesneg.runs.record import SCHEMA, RunRecord, check_schema
from bayesneg.runs.stored.checkpoint import damage_named as damage_named
from bayesneg.runs.stored.checkpoint import read_checkpoint as read_checkpoint
from bayesneg.runs.stored.checkpoint import read_trained as read_trained
from bayesneg.runs.stored.checkpoint import write_checkpoint as write_checkpoint
from bayesneg.runs.stored.manifest import check_finished as check_finished
from bayesneg.runs.stored.manifest import checked as checked
from bayesneg.runs.stored.manifest import seal as seal
from bayesneg.runs.stored.names import CHECKPOINT as CHECKPOINT
from bayesneg.runs.stored.names import EPOCHS as EPOCHS
from bayesneg.runs.stored.names import HEAD as HEAD
from bayesneg.runs.stored.names import LISTED as LISTED
from bayesneg.runs.stored.names import MANIFEST as MANIFEST
from bayesneg.runs.stored.names import METRICS as METRICS
from bayesneg.runs.stored.names import PARQUETS as PARQUETS
from bayesneg.runs.stored.names import PER_USER as PER_USER
from bayesneg.runs.stored.names import PREVIOUS as PREVIOUS
from bayesneg.runs.stored.names import RUN_FILE as RUN_FILE
from bayesneg.runs.stored.names import TRACKED as TRACKED
from bayesneg.runs.stored.names import TRAINED as TRAINED
from bayesneg.runs.stored.names import WAY_OUT as WAY_OUT
from bayesneg.runs.stored.names import WEIGHTS as WEIGHTS
from bayesneg.runs.stored.names import WRITTEN as WRITTEN
from bayesneg.runs.stored.writing import append_line as append_line
from bayesneg.runs.stored.writing import read_arrays as read_arrays
from bayesneg.runs.stored.writing import write_arrays as write_arrays
from bayesneg.runs.stored.writing import write_json as write_json
from bayesneg.runs.stored.writing import write_lines as write_lines
from bayesneg.runs.toml_text import toml_text
from bayesneg.whole_files import is_unfinished, remove_unfinished
from bayesneg.whole_files import write_whole as write_whole

RESULT_FIELDS = ("epochs", "final", "intervals", "reported_epoch")  # of a record, in separate files


def holds_run(folder: Path) -> bool:
    return (folder / HEAD).exists()


def find_runs(path: Path) -> list[Path]:
    """The folder itself if it holds a run, otherwise the run folders in it, by name."""
    if holds_run(path):
        return [path]
    inside = sorted(child for child in path.iterdir() if holds_run(child)) if path.is_dir() else []
    if not inside:
        raise no_run(path)
    return inside


def no_run(path: Path) -> InputError:
    """What to say of a folder without a run: an export is for other commands."""
    if (path / "config.json").is_file() and (path / "record.json").is_file():
        return InputError(
            f"{path} is an export, not a run; bayesneg serve and bn.load_export take it, for this give the run folder "
            "that it was exported from"
        )
    return InputError(f"{path} holds no run; give the folder that 'bayesneg train --out' wrote")


def new_folder(path: Path) -> Path:
    """The folder, made where it is missing; an error where it already holds something."""
    check_free(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def locked(path: Path) -> FileLock:
    """Hold the folder of a run: at most one process writes to it."""
    return FileLock(path, way_out="wait until it ends, or choose another folder for the run")


def begin(path: Path, record: RunRecord, split: Split) -> FileLock:
    """A new folder with what is known before the first epoch; nothing is left where the disk is full.

    Args:
        path: The folder.
        record: What is known of the run.
        split: The data.

    Returns:
        The lock of the folder, which this process holds.
    """
    lock = locked(new_folder(path))
    try:
        check_free(path)  # another process may have been faster
        remove_unfinished(path)
        try:
            write_head(path, record)
            write_split(path, split)
            seal(path, (HEAD,))
        except OSError:
            remove(path)
            raise
    except BaseException:
        lock.release()
        raise
    return lock


def check_free(path: Path) -> None:
    """An error where the folder of a new run already holds something."""
    if holds_run(path):
        raise InputError(f"{path} already holds a run; choose another folder, or resume it (--resume)")
    if path.exists() and not is_empty(path):
        raise InputError(f"{path} exists and is not an empty folder; choose another place for the run")


def is_empty(path: Path) -> bool:
    """Whether it is a folder with nothing in it but the unfinished files of a process that was killed."""
    return path.is_dir() and all(map(is_unfinished, path.iterdir()))


def remove(folder: Path) -> None:
    """Remove the files of a run, and the folder if nothing else is in it."""
    for name in reversed(WRITTEN):  # the head last: until then the folder holds a run
        (folder / name).unlink(missing_ok=True)
    remove_unfinished(folder)
    if not any(folder.iterdir()):
        folder.rmdir()


def write_head(folder: Path, record: RunRecord) -> None:
    """What is known before the first epoch."""
    head = {key: value for key, value in record.to_dict().items() if key not in RESULT_FIELDS}
    write_json(folder / HEAD, {"schema": SCHEMA, "manifest": MANIFEST, "record": head})
    write_run_file(folder, record.run_file)


def replace_head(folder: Path, record: RunRecord) -> None:
    """What is known before the first epoch, of a run that has ended; it counts as unfinished meanwhile."""
    seal(folder, ())
    write_head(folder, record)
    seal(folder)


def write_run_file(folder: Path, values: Mapping[str, Any]) -> None:
    """What makes the run again; nothing for a record that does not know it."""
    if values:
        about = f"bayesneg train {RUN_FILE} makes this run again; written by bayesneg {__version__}"
        text = toml_text(values, comment=about)
        write_whole(folder / RUN_FILE, lambda part: part.write_text(text, encoding="utf-8", errors="replace"))


def read_run_file(folder: Path) -> dict[str, Any]:
    """What the folder's run file holds; empty where a person has changed it into something else."""
    try:
        return tomllib.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}


def read_head(folder: Path) -> dict[str, Any]:
    head = json.loads((folder / HEAD).read_text(encoding="utf-8"))
    check_schema(head.get("schema"), folder / HEAD)
    checked(folder, HEAD)
    return dict(head["record"])


def read_epochs(folder: Path) -> list[dict[str, Any]]:
    """The epochs' lines; half a line of a killed process does not count."""
    path = checked(folder, EPOCHS)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """A missing or damaged file is one error, whichever reader finds it.

    A file that cannot be read for another reason, such as missing rights, is no damage.
    """
    try:
        with no_panic():
            yield
    except BayesnegError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None and not isinstance(error, FileNotFoundError):
            raise OSError(error.errno, error.strerror, error.filename or str(folder)) from error
        said = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"{folder}: the run is damaged, train it again ({said})") from error


def write_split(folder: Path, split: Split) -> None:
    """Identifiers by dense number, and every pair with its part."""
    import polars as pl

    train = split.train
    users = pl.DataFrame({"id": train.user_ids.tolist()}, strict=False)
    columns = [
        pl.Series(name, [None if value is None else str(value) for value in values.tolist()], dtype=pl.String)
        for name, values in train.user_columns.items()
    ]
    users = users.with_columns(column for column in columns if column.name != "id")
    parts = {"train": train, "validation": split.validation, "test": split.test}
    pairs = pl.concat(
        pl.DataFrame({"user": part.users, "item": part.indices}).with_columns(part=pl.lit(name))
        for name, part in parts.items()
        if part is not None
    )
    for name, frame in (("users", users), ("items", pl.DataFrame({"id": train.item_ids.tolist()})), ("split", pairs)):
        write_whole(folder / f"{name}.parquet", frame.write_parquet)


def read_split(folder: Path, *, name: str, how: str, fingerprint: str | None = None) -> Split:
    """The split, which must have the recorded fingerprint where one is given."""
    import polars as pl

    users, items, pairs = (pl.read_parquet(checked(folder, name)) for name in PARQUETS)
    user_ids, item_ids = users["id"].to_numpy(), items["id"].to_numpy()
    columns = {column: users[column].to_numpy() for column in users.columns if column != "id"}

    def part(which: str) -> Interactions | None:
        rows = pairs.filter(pl.col("part") == which)
        if len(rows) == 0:
            return None
        return Interactions.from_numbers(
            rows["user"].to_numpy(),
            rows["item"].to_numpy(),
            user_ids=user_ids,
            item_ids=item_ids,
            user_columns=columns,
            name=name,
        )

    train, test = part("train"), part("test")
    if train is None:
        raise InputError(f"{folder}: split.parquet has no training pairs; the run is damaged")
    if test is None:  # a final model, trained on everything
        test = train.select(np.zeros(len(train), dtype=bool))
    split = Split(train=train, test=test, validation=part("validation"), how=how)
    if fingerprint not in (None, split.fingerprint):
        raise DamagedError(
            f"{folder}: the run is damaged, its split does not have the recorded fingerprint {fingerprint}; {WAY_OUT}"
        )
    return split


def split_of(folder: Path, record: RunRecord) -> Split:
    """The split of a run, with the fingerprint that its record says."""
    how, fingerprint = str(record.data.get("split", "given")), record.data.get("fingerprint")
    return read_split(folder, name=record.dataset, how=how, fingerprint=fingerprint)


def read_record(folder: str | Path) -> RunRecord:
    """The record of a finished run's folder."""
    import polars as pl

    folder = Path(folder)
    if not holds_run(folder):
        raise no_run(folder)
    check_finished(folder)
    metrics = json.loads(checked(folder, METRICS).read_text(encoding="utf-8"))
    per_user, epochs = pl.read_parquet(checked(folder, PER_USER)), read_epochs(folder)
    if len(epochs) < metrics["reported_epoch"]:
        raise InputError(f"{folder}: the run is damaged, epochs are missing in {EPOCHS}; train it again")
    return RunRecord.from_dict(
        {
            **read_head(folder),
            "epochs": epochs,
            "final": metrics["mean"],
            "intervals": metrics["interval"],
            "reported_epoch": metrics["reported_epoch"],
            "per_user": {key: per_user[key].to_numpy() for key in per_user.columns if key != "user"},
            "run_file": read_run_file(folder),
        }
    )
