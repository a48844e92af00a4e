"""Two kinds of validation part and how they rank methods: baselines on Gowalla.

    BAYESNEG_DATA=… python -m benchmarks.quality.validation_parts

``blind`` is a random tenth of all training pairs, ``fifth`` a random fifth of each user's; no test label is read.
Writes results/quality/validation_parts.json.
"""

from __future__ import annotations

import sys

import bayesneg as bn
from benchmarks.machine import write_result
from benchmarks.studies.splits import FIFTH, StudySource

METHODS = {
    "RP3β": bn.baselines.RP3Beta(alpha=0.8, beta=0.2),
    "GF-CF": bn.baselines.GFCF(),
    "ALS": bn.baselines.ALS(dim=256, regularization=50.0, alpha=20.0),
}


def main() -> None:
    source, found = StudySource(), {}
    for view in ("blind", FIFTH):
        split = source.split("gowalla", view)
        values = {
            name: bn.fit(method, split, progress=False).record.final["ndcg@20"] for name, method in METHODS.items()
        }
        found[view] = {
            "training_pairs": len(split.train),
            "validation_pairs": len(split.test),
            "users_evaluated": int((split.test.counts > 0).sum()),
            "ndcg@20": values,
        }
        print(view, values, file=sys.stderr)
    print(f"wrote {write_result(__file__, found)}")


if __name__ == "__main__":
    main()
