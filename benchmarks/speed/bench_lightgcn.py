"""LightGCN's epoch with BNS over its epoch with RNS, on the CPU or a GPU, in one run; and a step with a million items.

    BAYESNEG_DATA=… python -m benchmarks.speed.bench_lightgcn [--device cpu|cuda] [--arrays FILE.npz] [--repeats 3]

d = 32, one layer, m = 5; batches of 128 on ML-100K and 1,024 on ML-1M. Evaluation is not timed. Every repeat times each
sampler once, ratios are of medians; on a GPU a hundred epochs in a row are timed as well. Writes
results/speed/bench_lightgcn_DEVICE.json.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from typing import Literal

import numpy as np
import torch

import bayesneg as bn
from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import NegativeSampler
from bayesneg.models.torch.learner import TorchLearner
from bayesneg.seeding import stream
from benchmarks.data import splits
from benchmarks.machine import write_result

Device = Literal["cpu", "cuda"]
BATCHES = {"ml-100k": 128, "ml-1m": 1024}
SAMPLERS: dict[str, NegativeSampler] = {"RNS": bn.RNS(), "DNS": bn.DNS(), "BNS": bn.BNS.paper()}


class Epochs:
    """Epochs of one learner and sampler, one after another."""

    def __init__(self, train: Interactions, sampler: NegativeSampler, device: Device, batch_size: int) -> None:
        self.learner: TorchLearner = bn.LightGCN.paper(device=device, batch_size=batch_size).start(
            train, rng=stream(0, "init")
        )
        self.sampler, self.train, self.epoch = sampler.prepare(train, rng=stream(0, "sampler")), train, 0

    def run(self) -> float:
        self.epoch += 1
        _wait()
        started = time.perf_counter()
        order = stream(0, "order", self.epoch).permutation(len(self.train))
        rng = stream(0, "sampler", self.epoch)
        for _ in self.learner.train_epoch(self.sampler, epoch=self.epoch, order=order, rng=rng):
            pass
        _wait()
        return time.perf_counter() - started


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measure(name: str, train: Interactions, device: Device, repeats: int) -> dict[str, object]:
    seconds: dict[str, list[float]] = {label: [] for label in SAMPLERS}
    epochs = {label: Epochs(train, sampler, device, BATCHES[name]) for label, sampler in SAMPLERS.items()}
    for label in SAMPLERS:
        epochs[label].run()  # compiles, records the graph, warms up
    for repeat in range(repeats):
        for label in SAMPLERS:
            seconds[label].append(epochs[label].run())
        print(
            f"{name} repeat {repeat + 1}: " + ", ".join(f"{k} {v[-1]:.3f} s" for k, v in seconds.items()),
            file=sys.stderr,
        )
    median = {label: float(np.median(values)) for label, values in seconds.items()}
    found: dict[str, object] = {"seconds_per_epoch": median, "BNS / RNS": median["BNS"] / median["RNS"]}
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        whole = Epochs(train, bn.BNS.paper(), device, BATCHES[name])
        found["BNS, 100 epochs, seconds"] = sum(whole.run() for _ in range(100))
        found["peak GPU memory, MiB"] = torch.cuda.max_memory_allocated() / 2**20
    return found


def a_million_items(device: Device, sampler: NegativeSampler) -> dict[str, float]:
    """BNS steps with a batch of 1,024 on a catalogue of a million items, and the memory they need."""
    rng = np.random.default_rng(0)
    n_users, n_items = 20_000, 1_000_000
    users, items = rng.integers(0, n_users, 400_000), (rng.random(400_000) ** 3 * n_items).astype(np.int64)
    train = Interactions.from_numbers(users, items, user_ids=np.arange(n_users), item_ids=np.arange(n_items))
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    learner = bn.LightGCN.paper(device=device, batch_size=1024).start(train, rng=rng)
    ready = sampler.prepare(train, rng=rng)
    order = rng.permutation(len(train))

    def steps(first: int, last: int) -> float:
        _wait()
        started = time.perf_counter()
        part = order[first * 1024 : last * 1024]
        for _ in learner.train_epoch(ready, epoch=1, order=part, rng=rng):
            pass
        _wait()
        return time.perf_counter() - started

    found = {"seconds for the first 4 steps, with compiling and recording": steps(0, 4)}
    found["seconds per step of the next 8"] = steps(4, 12) / 8
    found["peak resident, GiB"] = _resident()
    if device == "cuda":
        found["peak GPU memory, GiB"] = torch.cuda.max_memory_allocated() / 2**30
    return found


def _resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--arrays")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    result: dict[str, object] = {"device": torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu"}
    result["a million items"] = a_million_items(arguments.device, bn.BNS(cdf="exact"))
    result["a million items, refreshed F"] = a_million_items(arguments.device, bn.BNS(cdf="refreshed"))
    for name, parts in splits(arguments.arrays).items():
        result[name] = measure(name, parts.train, arguments.device, arguments.repeats)
    for key, value in result.items():
        print(key, value)
    print(f"wrote {write_result(__file__, result, suffix=f'_{arguments.device}')}")


if __name__ == "__main__":
    main()
