"""One epoch of MF on ML-100K: exact BNS against a plain NumPy loop, RNS against implicit's BPR, in one run.

    BAYESNEG_DATA=… python -m benchmarks.speed.bench_epoch [--repeats 7]

d = 32, one thread, the authors' training part (80,000 examples). Each repeat times every contender once, so that a busy
machine slows all alike; ratios are of medians. "exact BNS" is the mean over a training of 100 epochs, "first epochs"
are those right after the start. The NumPy loops see a part of the examples and are scaled up.
Writes results/speed/bench_epoch.json.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import numpy as np

import bayesneg as bn
from bayesneg.seeding import stream
from benchmarks.machine import data_folder, write_result
from benchmarks.speed.contenders import DECAY, DIM, RATE, Epoch, implicit_epoch, medians, our_epoch, whole_training

CANDIDATES, WEIGHT = 5, 5.0
PLAIN_EXAMPLES = 4000
CACHE_PROBE = """
import bayesneg as bn
from bayesneg.kernels.numba import sgd
split = bn.split(bn.synthetic(30, 40, seed=0), test=0.2, seed=0)
for sampler in (bn.RNS(), bn.BNS.paper()):
    bn.fit(bn.MF.paper(dim=2), split, sampler, epochs=1, progress=False)
print(sum(sgd.train_block.stats.cache_misses.values()))
"""


def plain_numpy_loop(train: bn.Interactions, order: np.ndarray, *, candidate_by_candidate: bool) -> None:
    """Algorithm 1 of the paper as NumPy: the whole rating vector per example, F over the stored complement."""
    rng = np.random.default_rng(0)
    W = rng.normal(0, 0.1, (train.n_users, DIM))
    H = rng.normal(0, 0.1, (train.n_items, DIM))
    prior = train.popularity / len(train)
    everything = np.arange(train.n_items)
    unobserved = [np.setdiff1d(everything, train.row(user)) for user in range(train.n_users)]
    for position in order:
        user, i = train.users[position], train.indices[position]
        x = H @ W[user]  # the rating vector of the user
        negatives = unobserved[user]
        candidates = rng.choice(negatives, CANDIDATES, replace=False)
        info = 1 - 1 / (1 + np.exp(x[candidates] - x[i]))
        if candidate_by_candidate:
            F = np.array([np.sum(x[negatives] <= x[item]) for item in candidates]) / (len(negatives) + 1)
        else:
            F = (x[negatives][None, :] <= x[candidates][:, None]).sum(axis=1) / (len(negatives) + 1)
        p = prior[candidates]
        unbias = (1 - F) * (1 - p) / (1 - F - p + 2 * F * p)
        j = candidates[np.argmin(info * (1 - (1 + WEIGHT) * unbias))]
        gradient = 1 - 1 / (1 + np.exp(x[j] - x[i]))
        W[user] += RATE * (gradient * (H[i] - H[j]) - DECAY * W[user])
        H[i] += RATE * (gradient * W[user] - DECAY * H[i])
        H[j] += RATE * (-gradient * W[user] - DECAY * H[j])


def plain_epoch(train: bn.Interactions, *, candidate_by_candidate: bool) -> Epoch:
    order = stream(0, "order").permutation(len(train))[:PLAIN_EXAMPLES]

    def run() -> float:
        started = time.perf_counter()
        plain_numpy_loop(train, order[:1], candidate_by_candidate=candidate_by_candidate)
        setup = time.perf_counter() - started
        started = time.perf_counter()
        plain_numpy_loop(train, order, candidate_by_candidate=candidate_by_candidate)
        return (time.perf_counter() - started - setup) * len(train) / PLAIN_EXAMPLES

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    folder = data_folder() / "bns-100k-split"
    train = bn.read_split(folder / "100k_train.csv", folder / "100k_test.csv").train
    contenders = {
        "plain NumPy, candidate by candidate": plain_epoch(train, candidate_by_candidate=True),
        "plain NumPy, candidates at once": plain_epoch(train, candidate_by_candidate=False),
        "exact BNS": whole_training(train, bn.BNS.paper(candidates=CANDIDATES, weight=WEIGHT), 100),
        "exact BNS, first epochs": our_epoch(train, bn.BNS.paper(candidates=CANDIDATES, weight=WEIGHT)),
        "DNS, 5 candidates": our_epoch(train, bn.DNS(candidates=CANDIDATES)),
        "RNS": our_epoch(train, bn.RNS()),
        "implicit's BPR": implicit_epoch(train),
    }
    median, seconds = medians(contenders, repeats)
    ratios = {
        "plain NumPy, candidate by candidate / exact BNS": _ratio(
            median, "plain NumPy, candidate by candidate", "exact BNS"
        ),
        "plain NumPy, candidates at once / exact BNS": _ratio(median, "plain NumPy, candidates at once", "exact BNS"),
        "plain NumPy, candidate by candidate / exact BNS, first epochs": _ratio(
            median, "plain NumPy, candidate by candidate", "exact BNS, first epochs"
        ),
        "exact BNS / RNS": _ratio(median, "exact BNS", "RNS"),
        "RNS / implicit's BPR": _ratio(median, "RNS", "implicit's BPR"),
    }
    misses = [_compilations() for _ in range(2)][-1]
    path = write_result(
        __file__,
        {
            "seconds_per_epoch": median,
            "all_seconds": seconds,
            "ratios": ratios,
            "compilations_in_second_process": misses,
        },
    )
    for name, value in median.items():
        print(f"{name:<40} {value * 1000:10.1f} ms per epoch")
    for name, value in ratios.items():
        print(f"{name:<60} {value:8.2f}")
    print(f"kernels compiled by a second process: {misses}\nwrote {path}")


def _ratio(median: dict[str, float], above: str, below: str) -> float:
    return median[above] / median[below]


def _compilations() -> int:
    done = subprocess.run([sys.executable, "-c", CACHE_PROBE], capture_output=True, text=True, check=True)
    return int(done.stdout)


if __name__ == "__main__":
    main()
