"""The time of the study's chosen methods from data to metrics: learned prior, training, evaluation.

    BAYESNEG_DATA=… python -m benchmarks.studies.negatives.end_to_end [gowalla] [--methods "in-batch,als"]

Each method has the setting and epoch that validation chose, one seed, and is trained alone on the training part. On a
GPU EASE in the learned prior is dense, on a CPU of low rank. Adds to results/studies/end_to_end_gpu.json or _cpu.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

import bayesneg as bn
from bayesneg.evaluation import ranking
from benchmarks.machine import device_name, machine, read_result, write_result
from benchmarks.studies.negatives import choosing, plan, store
from benchmarks.studies.negatives.contenders import BASELINES, NEED_PRIOR, Given, parts_of
from benchmarks.studies.negatives.plan import Trial
from benchmarks.studies.negatives.training import source_of

METHODS = ("in-batch posterior", "in-batch", "als", "rp3beta", "gfcf", "ease")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", default="gowalla", help=f"of {', '.join(plan.DATASETS)}")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--arrays", type=Path, help="read the data from this file")
    given = parser.parse_args()
    kind = "cpu" if device_name() == "cpu" else "gpu"
    result = read_result(f"studies/end_to_end_{kind}") or {"methods": {}}
    split = source_of(given.arrays).split(given.dataset, plan.TEST)
    for name in given.methods.split(","):
        found = chosen(given.dataset, name)
        if found is None:
            print(f"{name} is not searched on {given.dataset}", file=sys.stderr)
            continue
        line = {"dataset": given.dataset, "method": name, **measured(*found, split), "machine": machine(device_name())}
        result["methods"][f"{given.dataset} {name}"] = line
        print(name, {key: value for key, value in line.items() if key != "machine"}, file=sys.stderr)
        write_result(__file__, {"methods": result["methods"]}, suffix=f"_{kind}")


def chosen(dataset: str, name: str) -> tuple[Trial, int] | None:
    """The setting and epoch of a method with MF, or of a baseline; None where its search is not finished."""
    model = plan.BASELINE if name in BASELINES else "mf"
    finished = store.finished(f"{dataset}-{model}")
    if model == plan.BASELINE:
        trials = plan.baselines(dataset, [name])
    else:
        trials = plan.search(dataset, model, choosing.of_pilot(finished, plan.pilot(dataset, model)), [name])
    trials = choosing.complete(finished, choosing.widened(finished, trials))
    return choosing.of_search(finished, trials).get(name)


def measured(trial: Trial, epoch: int, split: bn.Split) -> dict[str, Any]:
    """Seconds of the prior, of training and of the evaluation, and NDCG@20."""
    started = time.perf_counter()
    prior: bn.Prior = bn.priors.Popularity()
    if trial.contender in NEED_PRIOR:
        solver: Literal["low-rank", "dense"] = "low-rank" if device_name() == "cpu" else "dense"
        prior = bn.priors.Learned(item_model="ease", solver=solver).fit(split.train)
        prior.form()
    fitted = time.perf_counter()
    scale = plan.SCALES.get((trial.dataset, trial.model))
    given = Given(split, prior, 0 if scale is None else scale.pool)
    model, sampler, loss = parts_of(trial.contender, trial.model, trial.setting, given)
    alone = replace(split, test=split.test.select(np.zeros(len(split.test), dtype=bool)), validation=None)
    run = bn.fit(model, alone, sampler, loss=loss, epochs=epoch, seed=0, select="last", progress=False)
    trained = time.perf_counter()
    value = ranking.evaluate(run.scorer, split, k=20, metrics="ndcg").mean["ndcg@20"]
    ended = time.perf_counter()
    seconds = {"prior": fitted - started, "training": trained - fitted, "evaluation": ended - trained}
    return {"setting": trial.setting._asdict(), "epochs": epoch, "seconds": seconds, "ndcg@20": value}


if __name__ == "__main__":
    main()
