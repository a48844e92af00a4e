"""What the step from the counted share to F does, with two priors, on the authors' ML-100K split: MF, last epoch.

    BAYESNEG_DATA=… python -m benchmarks.quality.likelihoods [--seeds 1] [--epochs 100]

The second prior is the one that the mixture asks for, a probability that an unobserved pair is a false negative.
Writes results/quality/likelihoods.json.
"""

from __future__ import annotations

import argparse
import time

import bayesneg as bn
from bayesneg.data.load import read_split
from benchmarks.machine import data_folder, write_result

HIDDEN = 0.25
KEPT = ("precision", "recall", "ndcg")

SAMPLERS = {
    f"{prior} prior, {likelihood}": bn.BNS.paper(prior=made, likelihood=likelihood)
    for prior, made in (("popularity", bn.priors.Popularity()), ("rate", bn.priors.Rate(hidden=HIDDEN)))
    for likelihood in ("paper", "mixture", "empirical")
} | {
    f"self-estimated prior, flat, weight {weight:g}": bn.BNS.paper(
        prior=bn.priors.SelfEstimated(hidden=HIDDEN), likelihood="uninformative", weight=weight
    )
    for weight in (5.0, 1.0)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--only", default="", help="samplers whose name has this in it")
    arguments = parser.parse_args()
    folder = data_folder() / "bns-100k-split"
    split = read_split(
        folder / "100k_train.csv", folder / "100k_test.csv", user_file=folder / "mapping_users.csv", name="ml-100k"
    )
    runs = []
    for name, sampler in SAMPLERS.items():
        for seed in range(arguments.seeds if arguments.only in name else 0):
            started = time.perf_counter()
            run = bn.fit(
                bn.MF.paper(), split, sampler, epochs=arguments.epochs, seed=seed, select="last",
                evaluate_every=arguments.epochs, progress=False,
            )  # fmt: skip
            record, seconds = run.record, time.perf_counter() - started
            final = {key: value for key, value in record.final.items() if key.startswith(KEPT)}
            quality = {key: record.last(key) for key in ("tnr", "inf")}
            runs.append({"label": name, "seed": seed, "final": final, **quality})
            print(f"{name}, seed {seed}: NDCG@20 {final['ndcg@20']:.4f}, {seconds:.0f} s", flush=True)
    if not arguments.only:
        print(f"wrote {write_result(__file__, {'epochs': arguments.epochs, 'runs': runs})}")


if __name__ == "__main__":
    main()
