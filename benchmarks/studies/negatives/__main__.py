"""Run a stage of the study of docs/explanation/study.md; what is finished stays, and an interrupted stage resumes.

    BAYESNEG_DATA=… python -m benchmarks.studies.negatives pilot gowalla mf [--jobs 4] [--seconds 500]
    BAYESNEG_DATA=… python -m benchmarks.studies.negatives search gowalla mf [--only posterior,oracle]
    BAYESNEG_DATA=… python -m benchmarks.studies.negatives priors gowalla mf     # other priors of the posterior
    BAYESNEG_DATA=… python -m benchmarks.studies.negatives final gowalla mf
    python -m benchmarks.studies.negatives pilot gowalla mf --arrays data.npz    # packed by --pack data.npz
    python -m benchmarks.studies.negatives collect                               # into benchmarks/results/study/

Several datasets or models are separated by commas. A run is a file in runs/study/, until ``collect`` adds it to the
archive; ``--seconds`` starts none after that time. A learned prior is fitted once for each training part;
``--solver dense`` solves EASE on a GPU.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import bayesneg as bn
from benchmarks.studies.negatives import choosing, plan, store
from benchmarks.studies.negatives.contenders import BASELINES, CONTENDERS
from benchmarks.studies.negatives.plan import Trial
from benchmarks.studies.negatives.priors import store_prior
from benchmarks.studies.negatives.training import prior_named, prior_path, source_of, trained
from benchmarks.studies.packing import pack
from benchmarks.studies.splits import StudySource


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("pilot", "search", "priors", "final", "collect"))
    parser.add_argument("datasets", nargs="?", default=",".join(plan.DATASETS), help=f"of {', '.join(plan.DATASETS)}")
    parser.add_argument(
        "models", nargs="?", default=",".join(plan.MODELS), help=f"of {', '.join(plan.MODELS)}, or {plan.BASELINE}"
    )
    parser.add_argument("--only", default="", help="contenders, all unless given")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no training after these")
    parser.add_argument("--solver", default="auto", help="of EASE in the learned prior; dense needs a GPU")
    parser.add_argument("--arrays", type=Path, help="read the data from this file")
    parser.add_argument("--pack", type=Path, help="write the data to this file, and train nothing")
    parser.add_argument("--out", type=Path, default=store.RUNS, help="folder of the runs")
    given = parser.parse_args()
    started = time.monotonic()
    if given.stage == "collect":
        print("\n".join(store.collect(given.out)))
        return
    datasets, models = given.datasets.split(","), given.models.split(",")
    if given.pack is not None:
        pack(StudySource(), datasets, given.pack)
        return
    names = given.only.split(",") if given.only else [*CONTENDERS, *BASELINES]
    trials = [
        trial
        for dataset in datasets
        for model in models
        for trial in trials_of(given.stage, dataset, model, names, given.out)
    ]
    known = {key for dataset in datasets for model in models for key in store.finished(f"{dataset}-{model}", given.out)}
    todo = [trial for trial in trials if trial.key not in known]
    print(f"{len(trials)} trainings, {len(trials) - len(todo)} finished", file=sys.stderr)
    for dataset, view, learned in dict.fromkeys((one.dataset, one.view, prior_named(one)) for one in todo):
        if learned is not None:
            fit_prior(dataset, view, learned, given)
    failed = run_all(todo, given, started)
    raise SystemExit(1 if failed else 0)


def trials_of(stage: str, dataset: str, model: str, names: list[str], out: Path) -> list[Trial]:
    """The trainings of a stage, which needs the one before it."""
    finished = store.finished(f"{dataset}-{model}", out)
    if model == plan.BASELINE:
        searched = plan.baselines(dataset, [name for name in names if name in BASELINES])
    elif stage == "pilot":
        return plan.pilot(dataset, model)
    else:
        shared = choosing.of_pilot(finished, plan.pilot(dataset, model))
        there = plan.SEARCHING if model == "mf" else for_lightgcn(dataset, out)
        searched = plan.search(dataset, model, shared, [name for name in names if name in there])
    searched = choosing.widened(finished, searched)
    if stage == "search":
        return searched
    complete = choosing.complete(finished, searched)
    best = choosing.of_search(finished, complete)
    if stage == "priors":
        return plan.priors(best["bsl"][0]) if "bsl" in best else []
    pairs = list(best.values())
    for name, without in plan.EQUAL.items():
        if name in names and without in best:
            chosen, epoch = best[without]
            pairs.append((chosen._replace(contender=name), epoch))
    trials = [trial for chosen, epoch in pairs for trial in plan.final(chosen, epoch)]
    return list({trial.key: trial for trial in trials}.values())


def for_lightgcn(dataset: str, out: Path) -> list[str]:
    """The contenders that are searched with LightGCN, by the search with MF."""
    finished = store.finished(f"{dataset}-mf", out)
    shared = choosing.of_pilot(finished, plan.pilot(dataset, "mf"))
    trials = choosing.widened(finished, plan.search(dataset, "mf", shared, plan.SEARCHING))
    return choosing.for_lightgcn(finished, trials)


def fit_prior(dataset: str, view: str, item_model: Any, given: argparse.Namespace) -> None:
    path = prior_path(dataset, view, item_model, given.out)
    if not path.exists():
        started = time.monotonic()
        prior = bn.priors.Learned(item_model=item_model, solver=given.solver)
        store_prior(prior, source_of(given.arrays).split(dataset, view).train, path)
        print(f"prior of {dataset} {view} by {item_model} in {time.monotonic() - started:.0f} s", file=sys.stderr)


def run_all(todo: list[Trial], given: argparse.Namespace, started: float) -> int:
    """Train in worker processes; returns how many failed."""
    failed, waiting, running = 0, list(todo), dict[Future[float], Trial]()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.jobs, mp_context=context) as crew:
        while waiting or running:
            while waiting and len(running) < given.jobs and time.monotonic() - started < given.seconds:
                trial = waiting.pop(0)
                running[crew.submit(trained, trial, given.out, given.arrays)] = trial
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                trial, error = running.pop(future), future.exception()
                failed += error is not None
                said = f"failed: {error!r}" if error is not None else f"{future.result():.5f}"
                spent = time.monotonic() - started
                print(f"{spent:5.0f} s {trial.dataset} {trial.model} {trial.key} {said}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    main()
