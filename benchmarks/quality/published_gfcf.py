"""GF-CF with its published settings on the published splits of Gowalla and Yelp2018, against the published figures.

    BAYESNEG_DATA=… python -m benchmarks.quality.published_gfcf

The settings are fixed, so that reading the test parts chooses nothing. Writes results/quality/published_gfcf.json.
"""

from __future__ import annotations

import sys

import bayesneg as bn
from benchmarks.machine import write_result
from benchmarks.studies.splits import StudySource


def main() -> None:
    found = {}
    for dataset in ("gowalla", "yelp2018"):
        final = bn.fit(bn.baselines.GFCF(), StudySource().split(dataset, "last"), progress=False).record.final
        found[dataset] = {name: final[name] for name in ("recall@20", "ndcg@20")}
        print(dataset, found[dataset], file=sys.stderr)
    print(f"wrote {write_result(__file__, found)}")


if __name__ == "__main__":
    main()
