"""What a refreshed F costs in quality: BNS exact and refreshed, and DNS, on the authors' ML-100K split, ten seeds.

    BAYESNEG_DATA=… python -m benchmarks.quality.score_cdf [--seeds 10]

MF at the paper's settings, 100 epochs, last epoch. Differences are paired by seed, with Student t intervals. Runs are
kept under runs/cdf and are not repeated when the script is started again. Writes results/quality/score_cdf.json.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import numpy as np

import bayesneg as bn
from bayesneg.evaluation.statistics import mean_interval, paired_difference
from benchmarks.data import splits
from benchmarks.machine import write_result

SAMPLERS = {
    "exact": bn.BNS.paper(),
    "refreshed": bn.BNS(cdf="refreshed"),
    "refreshed, two threads": bn.BNS(cdf="refreshed"),
    "DNS, 5 candidates": bn.DNS(candidates=5),
}
MEASURE = "ndcg@20"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    split = splits(None)["ml-100k"]
    values: dict[str, list[float]] = {}
    for label, sampler in SAMPLERS.items():
        records = bn.compare(
            bn.MF.paper(threads=2 if "threads" in label else 1),
            split,
            {label: sampler},
            baselines=(),
            seeds=arguments.seeds,
            select="last",
            evaluate_every=100,
            jobs=arguments.jobs,
            out=Path("runs/cdf"),
            resume=True,
        )
        values[label] = [float(record.final[MEASURE] or 0.0) for record in records]
    found = {
        label: {"mean": float(np.mean(own)), "interval": mean_interval(np.array(own)), "by_seed": own}
        for label, own in values.items()
    }
    exact = np.array(values["exact"])
    differences = {
        f"{label} − exact": asdict(paired_difference(np.array(own), exact))
        for label, own in values.items()
        if label != "exact"
    }
    path = write_result(__file__, {"measure": MEASURE, "samplers": found, "differences": differences})
    for label, own in found.items():
        print(f"{label:<25} {own['mean']:.4f}")
    for label, difference in differences.items():
        print(f"{label:<35} {difference['mean']:+.4f} [{difference['low']:+.4f}, {difference['high']:+.4f}]")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
