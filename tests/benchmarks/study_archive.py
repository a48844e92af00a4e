"""A small archive of the study, made without training: the value of a run follows from its contender and setting."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.pages.study.records import OURS
from benchmarks.studies.negatives import plan, store
from benchmarks.studies.negatives.__main__ import trials_of
from benchmarks.studies.negatives.contenders import BASELINES, CONTENDERS
from benchmarks.studies.negatives.plan import Trial

N_USERS = 200
MACHINE = {"processor": "P", "cores": 2, "system": "Linux", "versions": {"python": "3.11"}, "device": "a GPU"}
NAMES = [*CONTENDERS, *BASELINES]


def level(trial: Trial) -> float:
    """The middle temperature, margin or learning rate is best, so that no search is widened.

    The best negative weight is 1.22 with weights and 1.1 without: an equal setting is not each one's best.
    """
    base = 0.12 if trial.contender in BASELINES else 0.1 + 0.002 * list(CONTENDERS).index(trial.contender)
    gain = 0.05 if CONTENDERS.get(trial.contender, CONTENDERS["bpr"]).is_oracle else 0.02
    base += gain * (trial.contender.endswith("oracle") or trial.contender in OURS)
    if trial.contender in BASELINES:
        return base
    if "temperature" in trial.setting.loss:
        base -= 0.05 * abs(
            trial.setting.loss.get("negative_weight", 1.1) - (1.22 if trial.contender in plan.EQUAL else 1.1)
        )
    part, key, _ = plan.ladder_of(trial)
    middle = plan.SCALES[trial.dataset, trial.model].temperatures[1]
    middle = {"temperature": middle, "margin": 0.6, "learning_rate": 0.002}[key]
    return base - 0.01 * abs(np.log(getattr(trial.setting, part)[key] / middle))


def run_of(trial: Trial, bonus: Mapping[str, float] = {}) -> dict[str, Any]:
    """As the study writes it; the second to last epoch is the best. ``bonus`` is added on the test part."""
    rng = np.random.default_rng(int(trial.key[-12:], 16))
    at = list(range(plan.EVERY, trial.epochs + 1, plan.EVERY)) or [trial.epochs]
    if trial.view == plan.TEST:
        at = [trial.epochs]
    best = at[-2] if len(at) > 1 else at[-1]
    share = 0.0 if trial.contender.endswith("oracle") else 0.02 * rng.random()
    lines = [
        {"epoch": epoch, "seconds": 1.0, "ndcg@20": level(trial) - 0.001 * abs(epoch - best) / plan.EVERY}
        | ({} if trial.contender in BASELINES else {"gradient_fn": share})
        for epoch in at
    ]
    run = {
        "trial": {**trial._asdict(), "setting": trial.setting._asdict()},
        "machine": MACHINE,
        "seconds": 2.0 * trial.epochs,
        "training_seconds": float(trial.epochs) * (1 + rng.random()),
        "final": {"ndcg@20": lines[-1]["ndcg@20"], "recall@20": 1.3 * lines[-1]["ndcg@20"]},
        "epochs": lines,
    }
    if trial.view == plan.TEST:
        values = level(trial) + bonus.get(trial.contender, 0.0)
        values = values + 0.05 * np.random.default_rng(trial.seed).random(N_USERS) + 0.2 * rng.random(N_USERS)
        values[::7] = np.nan  # users without test items
        run["per_user"] = [round(float(value), 4) for value in values]
    return run


def write(runs: Path, trials: Iterable[Trial], bonus: Mapping[str, float] = {}) -> None:
    for trial in trials:
        path = runs / f"{trial.dataset}-{trial.model}" / f"{trial.key}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(run_of(trial, bonus)), encoding="utf-8")


def complete(
    runs: Path,
    dataset: str,
    models: Sequence[str] = (*plan.MODELS, plan.BASELINE),
    *,
    stages: Sequence[str] = ("pilot", "search", "final"),
    bonus: Mapping[str, float] = {},
) -> None:
    """All runs of some stages, stage by stage, as the study itself asks for them, collected into the archive."""
    for model in models:
        for stage in stages:
            if stage != "pilot" or model != plan.BASELINE:
                for _ in range(1 + plan.WIDENED if stage == "search" else 1):
                    write(runs, trials_of(stage, dataset, model, NAMES, runs), bonus)
    store.collect(runs)


def into(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty archive in ``folder`` in place of that of the repository; returns the folder of runs."""
    monkeypatch.setattr(store, "ARCHIVE", folder / "archive")
    return folder / "runs"
