"""One epoch of MF on ML-100K with 1, 8 and 32 negatives: BPR and softmax, inner product and cosine, uniform and BNS.

    BAYESNEG_DATA=… python -m benchmarks.speed.losses.bench_losses [--repeats 7]

d = 32, one thread, the authors' training part (80,000 examples). Each repeat times every contender once, so that a busy
machine slows all alike; ratios are of medians, to BPR with one uniform negative, which has kernels of its own. Writes
results/speed/bench_losses.json.
"""

from __future__ import annotations

import argparse
import sys
import time

import bayesneg as bn
from bayesneg.interfaces import NegativeSampler
from bayesneg.seeding import stream
from benchmarks.data import splits
from benchmarks.machine import write_result
from benchmarks.speed.contenders import DIM, Epoch, medians

FIRST = "BPR, RNS, 1"
INNER, COSINE = bn.MF.paper(dim=DIM), bn.MF.paper(dim=DIM, similarity="cosine")
# a temperature at which the inner product does not diverge
SOFTMAX = {INNER: bn.losses.Softmax(temperature=1.0, include_positive=True), COSINE: bn.losses.Softmax()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    train = splits(None)["ml-100k"].train
    epochs = {FIRST: epoch_of(train, INNER, bn.RNS(), bn.losses.BPR())}
    for negatives in (1, 8, 32):
        sampler = bn.RNS(negatives=negatives)
        if negatives > 1:
            epochs[f"BPR, RNS, {negatives}"] = epoch_of(train, INNER, sampler, bn.losses.BPR())
        epochs[f"softmax, RNS, {negatives}"] = epoch_of(train, INNER, sampler, SOFTMAX[INNER])
        epochs[f"softmax, cosine, RNS, {negatives}"] = epoch_of(train, COSINE, sampler, SOFTMAX[COSINE])
    for cdf in ("exact", "refreshed"):
        weighted = bn.BNS(candidates=32, weighting="posterior", cdf=cdf)
        epochs[f"softmax, cosine, BNS weights, F {cdf}, 32"] = epoch_of(train, COSINE, weighted, SOFTMAX[COSINE])
    median, _ = medians(epochs, parser.parse_args().repeats)
    found = {
        "seconds_per_epoch": median,
        "ratios": {label: seconds / median[FIRST] for label, seconds in median.items()},
        "examples": len(train),
    }
    for label, seconds in median.items():
        print(f"{label:50s}{seconds * 1e3:8.1f} ms {seconds / median[FIRST]:6.1f}", file=sys.stderr)
    print(f"wrote {write_result(__file__, found)}")


def epoch_of(train: bn.Interactions, model: bn.MF, sampler: NegativeSampler, loss: bn.losses.Loss) -> Epoch:
    """The next epoch with all that belongs to it; the first one warms up."""
    learner = model.start(train, rng=stream(0, "init"))
    ready = sampler.prepare(train, rng=stream(0, "sampler"))
    order = stream(0, "order").permutation(len(train))
    epochs = iter(range(1, 10_000))

    def run() -> float:
        epoch = next(epochs)
        started = time.perf_counter()
        rng = stream(0, "sampler", epoch)
        for _ in learner.train_epoch(ready, epoch=epoch, order=order, rng=rng, loss=loss, labels={}):
            pass
        return time.perf_counter() - started

    run()
    return run


if __name__ == "__main__":
    main()
