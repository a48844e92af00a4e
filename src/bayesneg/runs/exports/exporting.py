"""Export a run to a folder that other programs read.

README.md             model card, with the header that the Hugging Face Hub reads
config.json           format, sizes, the sha256 of every file, and the index with its recall
model.safetensors     vectors of users and items, or the weights of an item model
users.parquet, items.parquet
                      raw identifiers, in the order of the rows of the vectors
split.parquet         every interaction with its part, by row number; left out on request
record.json           settings, measures of every epoch and metrics of the run
index.usearch         the index, where asked for
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayesneg import __version__
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.integrity.digests import facts_of, file_digest, sealed
from bayesneg.models.serialization import COLD_ITEMS, ITEM_MODEL, weights_of
from bayesneg.runs import folder as files
from bayesneg.runs.exports import item_index
from bayesneg.runs.exports.model_card import Contents, model_card
from bayesneg.whole_files import check_regular, sync, unfinished

if TYPE_CHECKING:
    from bayesneg.runs.run import Run

FORMAT, SCHEMA = "bayesneg-export", 1
CARD, CONFIG, MODEL, RECORD, INDEX = "README.md", "config.json", "model.safetensors", "record.json", "index.usearch"
USERS, ITEMS, INTERACTIONS = files.PARQUETS
CONTENT: Final = {
    MODEL: "vectors of users and items",
    USERS: "raw identifiers of the users, in the order of the rows",
    ITEMS: "raw identifiers of the items, in the order of the rows",
    INTERACTIONS: "every interaction with its part of the split, by row numbers",
    RECORD: "settings, measures of every epoch and metrics",
    INDEX: "an index of the item vectors for approximate search",
    CONFIG: "format, sizes, settings of the index, and the sha256 of every file and of itself",
}


def export_run(
    run: Run,
    path: str | Path,
    *,
    index: str | None = None,
    interactions: bool = True,
    licence: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the files to a folder beside the target, and rename it when it is complete."""
    target = Path(path)
    check_target(target, overwrite=overwrite)
    arrays = _arrays(run)
    item_index.check_library(index)
    if index is not None and "items" not in arrays:
        raise InputError(
            f"index needs a model with vectors of users and items; {run.record.label} has item–item weights; export it "
            "without an index"
        )
    if not interactions and "users" not in arrays:
        raise InputError(
            f"interactions=False (--no-interactions): {run.record.label} scores a user from its interactions; export "
            "it with them"
        )
    if not interactions:  # which users have some is not told either
        arrays = {key: array for key, array in arrays.items() if key in ("users", "items", COLD_ITEMS)}
    if licence is not None and not (isinstance(licence, str) and licence.strip()):
        raise InputError(f"licence must be an identifier such as cc-by-4.0, got {licence!r}")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = unfinished(target)
    try:
        part.mkdir()
        _write(part, run, arrays, index=index, interactions=interactions, licence=licence)
        _put(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def check_target(target: Path, *, overwrite: bool) -> None:
    """An error where the folder holds something that must not be replaced."""
    check_regular(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not target.is_dir():
        raise InputError(f"{target} is a file; name a folder for the export")
    if not (target / CONFIG).is_file():
        raise InputError(f"{target} exists and holds no export; choose another folder")
    if not overwrite:
        raise InputError(f"{target} already holds an export; choose another folder, or overwrite=True (--force)")
    from bayesneg.runs.exports.loading import read_config

    read_config(target)
    known = {*CONTENT, CARD}
    if foreign := sorted(child.name for child in target.iterdir() if child.name not in known):
        raise InputError(f"{target} holds {foreign[0]}, which is not part of an export; move it away first")


def _arrays(run: Run) -> dict[str, np.ndarray]:
    arrays = weights_of(run.scorer)
    if not {"users", "items"} <= arrays.keys() and not any(key.startswith(ITEM_MODEL) for key in arrays):
        raise InputError(
            f"{run.record.label} gives scores without vectors of users and items, which cannot be exported; export a "
            "model with embeddings, or a built-in baseline"
        )
    return arrays


def _write(
    folder: Path,
    run: Run,
    arrays: Mapping[str, np.ndarray],
    *,
    index: str | None,
    interactions: bool,
    licence: str | None,
) -> None:
    split = _without_attributes(run.split)
    files.write_arrays(folder / MODEL, arrays)
    files.write_split(folder, split)
    if not interactions:
        (folder / INTERACTIONS).unlink()
    files.write_json(folder / RECORD, run.record.to_dict())
    described = None if index is None else _write_index(folder, arrays, split, interactions=interactions)
    written = sorted(child.name for child in folder.iterdir())
    config = {
        "format": FORMAT,
        "schema": SCHEMA,
        "library_name": "bayesneg",
        "library_version": __version__,
        "model_type": _model_type(run),
        "scoring": "inner product" if "users" in arrays else "item model",
        "n_users": split.train.n_users,
        "n_items": split.train.n_items,
        "dim": int(arrays["items"].shape[1]) if "items" in arrays else None,
        "dataset": run.record.dataset,
        "split": split.how,
        "fingerprint": split.fingerprint,
        "has_interactions": interactions,
        "index": described,
        "files": facts_of(folder, written),
    }
    files.write_json(folder / CONFIG, sealed(config))
    content = {name: what for name, what in CONTENT.items() if (folder / name).exists()}
    if "users" not in arrays:
        content[MODEL] = "weights between items, which score a user from the user's training items"
    contents = Contents(content, "users" in arrays, interactions, described, licence)
    card = model_card(run.record, contents)
    files.write_whole(folder / CARD, lambda part: part.write_text(card, encoding="utf-8"))


def _without_attributes(split: Split) -> Split:
    """Attributes of users, such as their age, are not needed to recommend."""
    return replace(split, train=replace(split.train, user_columns={}))


def _model_type(run: Run) -> str:
    described = run.record.spec.get("model")
    return str(described.get("class", "")) if isinstance(described, Mapping) else run.record.model


def _write_index(folder: Path, arrays: Mapping[str, np.ndarray], split: Split, *, interactions: bool) -> dict[str, Any]:
    built = item_index.ItemIndex.build(arrays["items"])
    files.write_whole(folder / INDEX, built.save)
    return {
        "file": INDEX,
        "library": "usearch",
        "version": metadata.version("usearch"),
        "connectivity": item_index.CONNECTIVITY,
        "expansion_add": item_index.EXPANSION_ADD,
        "expansion_search": item_index.EXPANSION_SEARCH,
        "vectors_sha256": file_digest(folder / MODEL),
        **built.recall(arrays["users"], split.known if interactions else no_interactions(split.train)),
    }


def no_interactions(of: Interactions) -> Interactions:
    """The same users and items, without any interaction."""
    return of.select(np.zeros(len(of), dtype=bool))


def _put(part: Path, target: Path) -> None:
    """Rename into place; an export that is replaced is moved away first and removed last."""
    old = unfinished(target).with_suffix(".old")
    if target.exists() and any(target.iterdir()):
        target.rename(old)
    try:
        part.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)
