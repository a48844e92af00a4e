"""The runs of the study: files of finished runs, and the archive in the repository that pages are made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import machine

RUNS: Final = machine.ROOT / "runs" / "study"
ARCHIVE: Final = machine.RESULTS / "study"
STEPS: Final = 10_000  # of NDCG@20 of a user, as it is stored

Finished = dict[str, dict[str, Any]]  # key of a trial → its run


def finished(name: str, runs: Path = RUNS) -> Finished:
    """The runs of a dataset and model, such as gowalla-mf, archived or not."""
    return {**archived(name), **_files(runs / name)}


def archived(name: str) -> Finished:
    path = ARCHIVE / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def per_user(name: str) -> dict[str, np.ndarray]:
    """Key of a final run → NDCG@20 (n_users,), NaN for users without test items."""
    path = ARCHIVE / f"{name}.npz"
    if not path.exists():
        return {}
    with np.load(path) as stored:
        return {key: np.where(stored[key] > STEPS, np.nan, stored[key] / STEPS) for key in stored.files}


def collect(runs: Path = RUNS) -> list[str]:
    """Add finished runs to the archive; returns what was written, in words."""
    said = []
    ARCHIVE.mkdir(parents=True, exist_ok=True)
    for folder in sorted(path for path in runs.glob("*-*") if path.is_dir()):
        found, users = _files(folder), per_user(folder.name)
        for key, run in found.items():
            if "per_user" in run:
                users[key] = np.array(run.pop("per_user"), dtype=np.float64)
        merged = {**archived(folder.name), **found}
        lines = ",\n".join(
            f"{json.dumps(key)}:{json.dumps(run, separators=(',', ':'))}" for key, run in sorted(merged.items())
        )
        (ARCHIVE / f"{folder.name}.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        if users:
            packed = {key: _packed(values) for key, values in sorted(users.items())}
            np.savez_compressed(ARCHIVE / f"{folder.name}.npz", **packed)  # type: ignore[arg-type]
        said.append(f"{folder.name}: {len(merged)} runs, {len(found)} of them from files")
    return said


def _packed(values: np.ndarray) -> np.ndarray:
    missing = np.isnan(values)
    return np.where(missing, STEPS + 1, np.rint(np.where(missing, 0.0, values) * STEPS)).astype(np.uint16)


def _files(folder: Path) -> Finished:
    """The runs in a folder, with the epochs that were evaluated and the seconds of all."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        lines = run["epochs"]
        run.setdefault("training_seconds", sum(line["seconds"] for line in lines))
        run["epochs"] = [line for line in lines if "ndcg@20" in line]
        found[path.stem] = run
    return found
