"""One training of the study, in a worker process."""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from typing import Any, Final

import bayesneg as bn
from bayesneg.runs.record import jsonable
from benchmarks import machine
from benchmarks.studies.negatives import plan
from benchmarks.studies.negatives.contenders import NEED_PRIOR, PRIOR, Given, parts_of
from benchmarks.studies.negatives.plan import Trial
from benchmarks.studies.negatives.priors import StoredPrior
from benchmarks.studies.packing import PackedSource
from benchmarks.studies.splits import StudySource

KEPT: Final = ("epoch", "seconds", "tnr", "inf", "gradient_fn", "tnr_uniform", "ndcg@20")


def path_of(trial: Trial, out: Path) -> Path:
    return out / f"{trial.dataset}-{trial.model}" / f"{trial.key}.json"


def prior_path(dataset: str, view: str, item_model: str, out: Path) -> Path:
    return out / "priors" / f"{dataset}-{view}-{item_model}.npz"


def prior_named(trial: Trial) -> str | None:
    """The item model of the learned prior that a training needs; None if it needs none."""
    name = trial.setting.sampler.get("prior", PRIOR)
    return name if trial.contender in NEED_PRIOR and name != "popularity" else None


@cache
def source_of(arrays: Path | None) -> StudySource:
    return StudySource() if arrays is None else PackedSource(arrays=arrays)


@cache
def prior_of(path: Path) -> StoredPrior:
    return StoredPrior(path)


def trained(trial: Trial, out: Path, arrays: Path | None) -> float:
    """Train once and write the run; returns its last NDCG@20."""
    split = source_of(arrays).split(trial.dataset, trial.view)
    learned = prior_named(trial)
    prior = prior_of(prior_path(trial.dataset, trial.view, learned, out)) if learned else bn.priors.Popularity()
    scale = plan.SCALES.get((trial.dataset, trial.model))
    given = Given(split, prior, 0 if scale is None else scale.pool)
    others = {key: value for key, value in trial.setting.sampler.items() if key != "prior"}
    model, sampler, loss = parts_of(trial.contender, trial.model, trial.setting._replace(sampler=others), given)
    began = time.perf_counter()
    run = bn.fit(
        model, split, sampler, loss=loss, epochs=trial.epochs, seed=trial.seed, select="last",
        evaluate_every=plan.EVERY if trial.view != plan.TEST else trial.epochs, progress=False,
    )  # fmt: skip
    found: dict[str, Any] = {
        "trial": {**trial._asdict(), "setting": trial.setting._asdict()},
        "machine": machine.machine() | {"device": device()},
        "seconds": time.perf_counter() - began,
        "label": run.record.label,
        "dataset": run.record.dataset,
        "final": run.record.final,
        "epochs": [{name: line[name] for name in KEPT if name in line} for line in run.record.epochs],
    }
    if trial.view == plan.TEST and run.record.per_user is not None:
        found["per_user"] = [round(float(value), 4) for value in run.record.per_user["ndcg@20"]]
    path = path_of(trial, out)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".part").write_text(json.dumps(jsonable(found)) + "\n", encoding="utf-8")
    path.with_suffix(".part").replace(path)
    return float(run.record.final["ndcg@20"] or 0.0)


def device() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
