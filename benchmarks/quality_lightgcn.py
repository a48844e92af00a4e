"""LightGCN at the paper's settings on ML-100K (the authors' split) and ML-1M (random 80/20), four samplers.

    BAYESNEG_DATA=… python benchmarks/quality_lightgcn.py [--device cuda] [--arrays FILE.npz] [--datasets ml-100k,ml-1m]

d = 32, one layer, Adam 0.01 falling tenfold every 20 epochs, epoch 100; batches of 128 and 1,024, decay
1e-5 · 128 / batch. The results also hold the curves, on ML-1M through epoch 45, which is what the probes saw. Writes
results/quality_lightgcn.json; what it holds of other datasets is kept.
"""

from __future__ import annotations

import argparse
import json
import sys

import torch

import bayesneg as bn
from arrays import NAMES, splits
from machine import RESULTS, write_result

BATCHES = {"ml-100k": 128, "ml-1m": 1024}
EPOCHS = 100
EVALUATE_EVERY = {"ml-100k": 5, "ml-1m": 15}
SAMPLERS = {"RNS": bn.RNS(), "PNS": bn.PNS(), "DNS": bn.DNS(), "BNS": bn.BNS()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--arrays")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--datasets", default=",".join(NAMES))
    arguments = parser.parse_args()
    asked = arguments.datasets.split(",")
    known = RESULTS / "quality_lightgcn.json"
    runs = (
        [run for run in json.loads(known.read_text())["runs"] if run["dataset"] not in asked] if known.exists() else []
    )
    for name, parts in splits(arguments.arrays).items():
        if name not in asked:
            continue
        model = bn.LightGCN(batch_size=BATCHES[name], device=arguments.device)
        for seed in range(arguments.seeds):
            for label, sampler in SAMPLERS.items():
                run = bn.fit(
                    model, parts, sampler, epochs=EPOCHS, seed=seed, evaluate_every=EVALUATE_EVERY[name], progress=False
                )
                record = run.record
                runs.append(
                    {
                        "dataset": name,
                        "label": label,
                        "seed": seed,
                        "epochs": EPOCHS,
                        "final": {
                            k: v for k, v in record.final.items() if k.startswith(("ndcg", "precision", "recall"))
                        },
                        "ndcg@20 by epoch": record.at_epochs("ndcg@20"),
                        "tnr": record.last("tnr"),
                        "inf": record.last("inf"),
                        "seconds_per_epoch": sum(line["seconds"] for line in record.epochs) / len(record.epochs),
                    }
                )
                print(
                    name,
                    label,
                    seed,
                    round(record.final["ndcg@20"] or 0.0, 4),
                    runs[-1]["seconds_per_epoch"],
                    file=sys.stderr,
                )
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    print(f"wrote {write_result('quality_lightgcn', {'device': device, 'runs': runs})}")


if __name__ == "__main__":
    main()
