"""One epoch of BPR with random negatives on ML-100K and ML-1M: ours against implicit's and Cornac's, in one run.

    BAYESNEG_DATA=… python -m benchmarks.speed.bench_peers [--repeats 7]

d = 32, one thread; ratios are of medians over the repeats. Writes results/speed/bench_peers.json.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version

import bayesneg as bn
from benchmarks.data import splits
from benchmarks.machine import write_result
from benchmarks.speed.contenders import cornac_epoch, implicit_epoch, medians, our_epoch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    found: dict[str, object] = {"peers": {name: version(name) for name in ("implicit", "cornac")}}
    for name, parts in splits(None).items():
        contenders = {
            "RNS": our_epoch(parts.train, bn.RNS()),
            "implicit": implicit_epoch(parts.train),
            "Cornac": cornac_epoch(parts.train),
        }
        median, seconds = medians(contenders, repeats)
        ratios = {f"RNS / {peer}": median["RNS"] / median[peer] for peer in ("implicit", "Cornac")}
        found[name] = {"seconds_per_epoch": median, "all_seconds": seconds, "ratios": ratios}
        print(name, {key: f"{value * 1000:.1f} ms" for key, value in median.items()}, ratios)
    print(f"wrote {write_result(__file__, found)}")


if __name__ == "__main__":
    main()
