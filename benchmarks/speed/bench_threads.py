"""What a second thread gains and costs: MF's epoch and NDCG@20 on ML-100K with one and two threads, over seeds.

    BAYESNEG_DATA=… python -m benchmarks.speed.bench_threads [--seeds 10] [--repeats 5]

Threads write over each other's steps now and then, so that results are no longer the same for a seed; the difference
of quality is paired by seed. The authors' split, d = 32, epoch 100. Writes results/speed/bench_threads.json.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import bayesneg as bn
from bayesneg.evaluation.statistics import mean_interval
from bayesneg.interfaces import NegativeSampler
from benchmarks.data import splits
from benchmarks.machine import write_result
from benchmarks.speed.contenders import medians, our_epoch

SAMPLERS: dict[str, NegativeSampler] = {
    "RNS": bn.RNS(),
    "BNS": bn.BNS.paper(),
    "BNS, refreshed F": bn.BNS(cdf="refreshed"),
}
EPOCHS = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    parts = splits(None)["ml-100k"]
    found: dict[str, object] = {}
    for label, sampler in SAMPLERS.items():
        median, _ = medians(
            {str(threads): our_epoch(parts.train, sampler, threads=threads) for threads in (1, 2)}, arguments.repeats
        )
        quality = {
            threads: [_ndcg(parts, sampler, threads, seed) for seed in range(arguments.seeds)] for threads in (1, 2)
        }
        gaps = np.array(quality[2]) - np.array(quality[1])
        found[label] = {
            "seconds_per_epoch": median,
            "2 threads / 1": median["2"] / median["1"],
            "ndcg@20": {str(threads): values for threads, values in quality.items()},
            "difference": {"mean": float(gaps.mean()), "interval": list(mean_interval(gaps))},
        }
        print(label, found[label], file=sys.stderr)
    print(f"wrote {write_result(__file__, found)}")


def _ndcg(parts: bn.Split, sampler: NegativeSampler, threads: int, seed: int) -> float:
    run = bn.fit(
        bn.MF.paper(threads=threads), parts, sampler, epochs=EPOCHS, seed=seed, select="last", evaluate_every=EPOCHS,
        progress=False,
    )  # fmt: skip
    return float(run.record.final["ndcg@20"] or 0.0)


if __name__ == "__main__":
    main()
