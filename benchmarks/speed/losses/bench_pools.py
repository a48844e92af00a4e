"""A step of softmax over a shared pool: weights none against posterior weights, on the CPU or a GPU.

    [BAYESNEG_DATA=…] python -m benchmarks.speed.losses.bench_pools [--device auto] [--repeats 9] [--synthetic]

Matrix factorization with cosine scores, d = 64, batches of 2,048, a pool of 2,048 uniform items, Adam, Gowalla, all
cores. Without BAYESNEG_DATA, or with --synthetic, pairs are generated with the sizes of Gowalla, by popularity. Each
repeat times some steps of every contender, so that a busy machine slows all alike; a ratio is the median over the
repeats of a contender's time to that of no weights in the same repeat. Writes results/speed/bench_pools_DEVICE.json.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

import bayesneg as bn
from bayesneg.interfaces import NegativeSampler
from bayesneg.seeding import stream
from benchmarks.machine import write_result
from benchmarks.speed.contenders import Epoch, medians

SIZES: Final = 29_858, 40_981, 810_128  # Gowalla's users, items and training pairs
BATCH, POOL, DIM = 2048, 2048, 64
NONE, POPULARITY, LEARNED = "none", "posterior, popularity prior", "posterior, learned prior"
LOSS = bn.losses.Softmax(temperature=0.08, negative_weight=1.22)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--steps", type=int, help="timed together in each repeat; 8 on the CPU, 64 on a GPU")
    parser.add_argument("--synthetic", action="store_true", help="generate the pairs, whether or not there is data")
    parser.add_argument(
        "--without-learned", action="store_true", help="leave out the learned prior, which takes longest"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)  # this folder's default is one
    train = generated(*SIZES) if options.synthetic or "BAYESNEG_DATA" not in os.environ else gowalla()
    model = bn.TorchMF(
        dim=DIM, batch_size=BATCH, similarity="cosine", learning_rate=1e-3, regularization=0.0, device=options.device
    )
    device = model.start(train, rng=stream(0, "init")).device
    steps = options.steps or (64 if device.type == "cuda" else 8)
    prior, prior_facts = (None, {}) if options.without_learned else learned(train, device)
    contenders, memory = {}, {}
    for label, sampler in samplers(prior).items():
        contenders[label], memory[label] = steps_of(train, model, sampler, steps, device)
    median, seconds = medians(contenders, options.repeats)
    first, n_steps = np.array(seconds[NONE]), -(-len(train) // BATCH)
    found: dict[str, Any] = {
        "data": train.name, "device": device.type, "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else "",
        "batch": BATCH, "pool": POOL, "dim": DIM, "steps_per_epoch": n_steps, "repeats": options.repeats,
        "milliseconds_per_step": {label: 1e3 * value / steps for label, value in median.items()},
        "seconds_per_epoch": {label: value / steps * n_steps for label, value in median.items()},
        "ratios": {label: float(np.median(np.array(values) / first)) for label, values in seconds.items()},
        "gpu_peak_mib": memory if device.type == "cuda" else {},
        "host_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "learned_prior": prior_facts,
    }  # fmt: skip
    for label, ratio in found["ratios"].items():
        spent, epoch = found["milliseconds_per_step"][label], found["seconds_per_epoch"][label]
        print(f"{label:30s}{spent:9.2f} ms a step {epoch:8.2f} s an epoch {ratio:6.2f}", file=sys.stderr)
    print(f"wrote {write_result(__file__, found, suffix=f'_{device.type}')}")


def samplers(prior: bn.Prior | None) -> dict[str, NegativeSampler]:
    posterior: dict[str, Any] = {"candidates": POOL, "shared": True, "weighting": "posterior", "likelihood": "mixture"}
    found: dict[str, NegativeSampler] = {NONE: bn.RNS(negatives=POOL, shared=True), POPULARITY: bn.BNS(**posterior)}
    return found if prior is None else {**found, LEARNED: bn.BNS(**posterior, prior=prior)}


def learned(train: bn.Interactions, device: torch.device) -> tuple[bn.Prior, dict[str, float]]:
    """The fitted prior, and what its rows cost; a GPU solves EASE densely, which is faster there."""
    started = time.perf_counter()
    solved = bn.priors.Learned(item_model="ease", solver="dense") if device.type == "cuda" else bn.priors.Learned()
    prior = solved.fit(train)
    fitted = time.perf_counter()
    form = prior.form()
    return prior, {
        "fit_seconds": fitted - started,
        "rows_seconds": time.perf_counter() - fitted,
        "rows_mib": sum(part.nbytes for part in form) / 2**20,
        "items_per_user": len(form.items) / train.n_users,
    }


def steps_of(
    train: bn.Interactions, model: bn.TorchMF, sampler: NegativeSampler, steps: int, device: torch.device
) -> tuple[Epoch, float]:
    """The next steps with all that belongs to them, and the MiB they take on a GPU at the peak; the first warm up."""
    learner = model.start(train, rng=stream(0, "init"))
    ready = sampler.prepare(train, rng=stream(0, "sampler"))
    epochs = iter(range(1, 100_000))

    def run() -> float:
        epoch = next(epochs)
        order = stream(0, "order", epoch).permutation(len(train))[: steps * BATCH]
        wait(device)
        started = time.perf_counter()
        for _ in learner.train_epoch(ready, epoch=epoch, order=order, rng=stream(0, "draws", epoch), loss=LOSS):
            pass
        wait(device)
        return time.perf_counter() - started

    run()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    run()
    return run, torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else 0.0


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def gowalla() -> bn.Interactions:
    from bayesneg.data.load import read_split

    folder = Path(os.environ["BAYESNEG_DATA"]) / "gowalla"
    return read_split(folder / "train.txt", folder / "test.txt", name="gowalla").train


def generated(n_users: int, n_items: int, n_pairs: int) -> bn.Interactions:
    """Pairs with about the sizes of Gowalla: the k-th user has weight 1/√(k + 10), the k-th item 1/(k + 10)^0.8."""
    rng = np.random.default_rng(0)
    numbers = []
    for n, power in ((n_users, 0.5), (n_items, 0.8)):
        weights = 1.0 / (np.arange(n) + 10.0) ** power
        drawn = rng.choice(n, n_pairs, p=weights / weights.sum())
        drawn[:n] = np.arange(n)  # everyone and everything at least once
        numbers.append(rng.permutation(drawn))
    ids = np.arange(n_users), np.arange(n_items)
    return bn.Interactions.from_numbers(*numbers, user_ids=ids[0], item_ids=ids[1], name="generated, Gowalla's sizes")


if __name__ == "__main__":
    main()
