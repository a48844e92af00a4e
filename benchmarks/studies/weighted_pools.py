"""What the weights of a shared pool are worth: MF with a softmax on Gowalla, ω = 1, posterior and oracle.

    BAYESNEG_DATA=… python -m benchmarks.studies.weighted_pools --only rates              # the learning rate, ω = 1
    BAYESNEG_DATA=… python -m benchmarks.studies.weighted_pools [--only none,posterior] [--seeds 3] [--solver dense]
    python -m benchmarks.studies.weighted_pools --arrays data.npz         # packed by --pack data.npz, without polars

Nine tenths of the training part are trained on and the tenth is evaluated; the test labels are not in the split. One
setting for all: cosine, temperature 0.08, negative weight 1.22, a pool of 2,048, batches of 2,048, 64 dimensions. The
learning rate is the best of three for ω = 1 on the same tenth. The oracle knows the evaluated tenth and is an upper
bound. A run is a file in runs/weighted_pools/, and an interrupted study resumes; with all runs there,
results/studies/weighted_pools.json is written, from which ``benchmarks.pages`` makes the page weighted-pools.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import bayesneg as bn
from bayesneg.interfaces import NegativeSampler
from bayesneg.runs.record import jsonable
from benchmarks import machine
from benchmarks.studies.packing import PackedSource, pack
from benchmarks.studies.splits import StudySource

RUNS: Final = machine.ROOT / "runs" / "weighted_pools"
POOL: Final = 2048
EVERY: Final = 10  # epochs between two evaluations
LOSS: Final = bn.losses.Softmax(temperature=0.08, negative_weight=1.22)
WEIGHTINGS: Final = ("none", "posterior", "oracle")
RATES: Final = (0.001, 0.002, 0.005)
KEPT: Final = ("epoch", "seconds", "tnr", "inf", "gradient_fn", "tnr_uniform", "ndcg@20")


def model_of(learning_rate: float) -> bn.TorchMF:
    return bn.TorchMF(
        dim=64,
        similarity="cosine",
        batch_size=2048,
        learning_rate=learning_rate,
        regularization=0.0,
    )


def sampler_of(weighting: str, split: bn.Split, prior: bn.Prior) -> NegativeSampler:
    if weighting == "none":
        return bn.RNS(negatives=POOL, shared=True)
    if weighting == "oracle":
        return bn.BNS(candidates=POOL, shared=True, weighting="oracle", prior=bn.priors.Oracle(split.test))
    return bn.BNS(candidates=POOL, shared=True, weighting="posterior", prior=prior, likelihood="mixture")


def trained(weighting: str, seed: int, rate: float, split: bn.Split, prior: bn.Prior, epochs: int) -> Any:
    """One run, as it is stored."""
    model, sampler = model_of(rate), sampler_of(weighting, split, prior)

    def show(line: dict[str, Any]) -> None:
        if "ndcg@20" in line:
            print(weighting, seed, {name: round(line[name], 5) for name in KEPT[1:] if name in line}, file=sys.stderr)

    run = bn.fit(
        model,
        split,
        sampler,
        loss=LOSS,
        epochs=epochs,
        seed=seed,
        select="last",
        evaluate_every=EVERY,
        progress=show,
    )
    record = run.record.to_dict()
    return {
        "weighting": weighting,
        "seed": seed,
        "learning_rate": rate,
        "machine": machine.machine(machine.device_name()),
        **{name: record[name] for name in ("label", "dataset", "spec")},
        "final": run.record.final,
        "epochs": [{name: line[name] for name in KEPT if name in line} for line in run.record.epochs],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(WEIGHTINGS), help="weightings, or rates, separated by commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--learning-rate", type=float, default=0.005)
    parser.add_argument("--solver", default="auto", help="of EASE in the learned prior; dense needs a GPU")
    parser.add_argument("--arrays", type=Path, help="read the data from this file")
    parser.add_argument("--pack", type=Path, help="write the data to this file, and train nothing")
    parser.add_argument("--out", type=Path, default=RUNS, help="folder of the finished runs")
    arguments = parser.parse_args()
    if arguments.pack is not None:
        return pack(StudySource(), ["gowalla"], arguments.pack)
    source = StudySource() if arguments.arrays is None else PackedSource(arrays=arguments.arrays)
    split = source.split("gowalla", "blind")
    prior = bn.priors.Learned(solver=arguments.solver)
    if arguments.solver != "auto":
        prior = replace(prior, item_model="ease")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for weighting in arguments.only.split(","):
        for name, run in _wanted(weighting, arguments).items():
            path = arguments.out / f"{name}.json"
            if not path.exists():
                found = trained(*run, split, prior, arguments.epochs)
                path.write_text(json.dumps(jsonable(found)) + "\n", encoding="utf-8")
    return collect(arguments.out, arguments.seeds)


def _wanted(weighting: str, arguments: argparse.Namespace) -> dict[str, tuple[str, int, float]]:
    """Name → weighting, seed and learning rate."""
    if weighting == "rates":
        return {f"rate-{rate}": ("none", 0, rate) for rate in RATES}
    return {f"{weighting}-{seed}": (weighting, seed, arguments.learning_rate) for seed in range(arguments.seeds)}


def collect(folder: Path, seeds: int) -> None:
    """Write the result once all runs are there."""
    names = [f"rate-{rate}" for rate in RATES] + [f"{name}-{seed}" for name in WEIGHTINGS for seed in range(seeds)]
    paths = [folder / f"{name}.json" for name in names]
    if not all(path.exists() for path in paths):
        return
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    path = machine.result_path(__file__)
    path.parent.mkdir(parents=True, exist_ok=True)
    value = {"rates": found[: len(RATES)], "runs": found[len(RATES) :]}
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
