"""Every sampler on the authors' ML-100K split at the paper's settings: MF, 100 epochs, last epoch, three seeds.

    BAYESNEG_DATA=… python benchmarks/quality_ml100k.py [--seeds 3] [--samplers rns,dns,bns]

Runs are kept under runs/ml100k and are not repeated when the script is started again. Writes
results/quality_ml100k.json, from which docs/results.md is made.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bayesneg.data.given import read_split
from bayesneg.experiments.compare import compare
from bayesneg.experiments.spec import SamplerSpec
from machine import data_folder, write_result

SAMPLERS = "rns,dns,bns,pns,dns:candidates=5,srns,posterior,bns-1,bns-2,bns-3,bns-4,aobpr,aobpr-factor,bns:cdf_over=all"
KEPT = ("precision", "recall", "ndcg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samplers", default=SAMPLERS)
    parser.add_argument("--jobs", type=int, default=None)
    arguments = parser.parse_args()
    folder = data_folder() / "bns-100k-split"
    split = read_split(
        folder / "100k_train.csv", folder / "100k_test.csv", user_file=folder / "mapping_users.csv", name="ml-100k"
    )
    specs = [SamplerSpec.parse(text) for text in arguments.samplers.split(",")]
    records = compare(
        split,
        {spec.label: spec.build(split) for spec in specs},
        seeds=arguments.seeds,
        select="last",
        jobs=arguments.jobs,
        out=Path("runs/ml100k"),
        resume=True,
    )
    runs = [
        {
            "label": record.label,
            "seed": record.seed,
            "fingerprint": record.data["fingerprint"],
            "spec": record.spec,
            "final": {key: value for key, value in record.final.items() if key.startswith(KEPT)},
            "tnr": record.last("tnr"),
            "tnr_uniform": record.last("tnr_uniform"),
            "inf": record.last("inf"),
            "best_ndcg@20_seen_on_test": max(record.at_epochs("ndcg@20").values()),
        }
        for record in records
    ]
    print(f"wrote {write_result('quality_ml100k', {'runs': runs})}")


if __name__ == "__main__":
    main()
