"""NDCG@20 on ML-100K against the seconds of training, sampler by sampler, three seeds.

    BAYESNEG_DATA=… python -m benchmarks.quality.over_time [--seeds 3]

The authors' split, d = 32, one thread, 100 epochs, evaluated every fifth; evaluation is not timed. Writes
results/quality/over_time.json.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import bayesneg as bn
from bayesneg.interfaces import NegativeSampler
from benchmarks.data import splits
from benchmarks.machine import write_result

EPOCHS, EVERY = 100, 5
SAMPLERS: dict[str, NegativeSampler] = {
    "RNS": bn.RNS(),
    "DNS": bn.DNS(candidates=5),
    "BNS, refreshed F": bn.BNS(cdf="refreshed"),
    "BNS, exact F": bn.BNS(cdf="exact"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    parts = splits(None)["ml-100k"]
    bn.fit(bn.MF.paper(), parts, bn.RNS(), epochs=1, progress=False)  # compiles
    curves: dict[str, list[dict[str, list[float]]]] = {label: [] for label in SAMPLERS}
    for seed in range(seeds):
        for label, sampler in SAMPLERS.items():
            run = bn.fit(
                bn.MF.paper(),
                parts,
                sampler,
                epochs=EPOCHS,
                seed=seed,
                select="last",
                evaluate_every=EVERY,
                progress=False,
            )
            seconds = np.cumsum([line["seconds"] for line in run.record.epochs])
            judged = {int(epoch): value for epoch, value in run.record.at_epochs("ndcg@20").items()}
            curves[label].append(
                {"seconds": [float(seconds[epoch - 1]) for epoch in judged], "ndcg@20": [*judged.values()]}
            )
            print(label, seed, curves[label][-1]["seconds"][-1], curves[label][-1]["ndcg@20"][-1], file=sys.stderr)
    print(f"wrote {write_result(__file__, {'epochs': EPOCHS, 'every': EVERY, 'curves': curves})}")


if __name__ == "__main__":
    main()
