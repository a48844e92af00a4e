"""Several processes against one: quality, bytes sent against the formula, peak memory, overhead.

    python -m benchmarks.scale.bench_ranks [--device cuda] [--only quality,bytes,memory,overhead]

- quality: TorchMF with exact BNS on ``synthetic``, several seeds, by 1, 2 and 4 processes; NDCG@20 against 1 process.
- bytes: payload that the processes count, per step, against the formula of docs/how-to/scale.md, and what the loopback
  device of the system has carried (Linux, gloo).
- memory: the peak of a process above what it holds before the model is made, with tables of 1, 1/2 and 1/4.
- overhead: seconds per epoch of one process through the distributed path and through the plain one, in turns.

Writes results/scale/bench_ranks-PART.json; with --device cuda the overhead alone, bench_ranks-overhead-cuda.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import numpy as np

import bayesneg as bn
from benchmarks.machine import device_name, write_result
from benchmarks.scale.processes import finished, torchrun

SIZES, SEEDS = (1, 2, 4), 5
LOOPBACK = Path("/sys/class/net/lo/statistics/tx_bytes")
BATCH, DIM, CANDIDATES = 1024, 32, 5


def resident(name: str) -> float:
    """MiB of this process, ``VmRSS`` or its peak ``VmHWM``."""
    found = re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))
    return int(found[1]) / 2**10 if found else float("nan")


# ------------------------------------------------------------------------------------------------- in each process


def quality(size: int, device: Any) -> dict[str, Any]:
    found = []
    for seed in range(SEEDS):
        split = bn.split(bn.synthetic(400, 600, seed=seed), test=0.2, validation=0.1, seed=seed)
        model = bn.TorchMF(dim=16, batch_size=128, device=device)
        run = bn.fit(model, split, bn.BNS(cdf="exact"), epochs=15, seed=seed, progress=False, evaluate_every=5)
        found.append(run.record.final["ndcg@20"])
    return {"ndcg@20": found}


def sent(size: int, device: Any) -> dict[str, Any]:
    """An epoch of RNS and one of exact BNS: bytes by what they are, and the expectation of the formula."""
    split = bn.split(bn.synthetic(2000, 3000, seed=0), test=0.2, seed=0)
    found = {}
    for name, sampler in (("RNS", bn.RNS()), ("BNS", bn.BNS(cdf="exact", candidates=CANDIDATES))):
        _, group, train = started(bn.TorchMF(dim=DIM, batch_size=BATCH, device=device), split, sampler)
        steps = -(-len(split.train) // BATCH)
        group.wait()
        before, loopback = dict(group.sent), int(LOOPBACK.read_text()) if LOOPBACK.exists() else 0
        train()
        group.wait()
        carried = int(LOOPBACK.read_text()) - loopback if LOOPBACK.exists() else 0
        own = {key: (value - before.get(key, 0)) / steps for key, value in group.sent.items()}
        totals: dict[str, float] = {}
        for part in group.objects(own):
            for key, value in part.items():
                totals[key] = totals.get(key, 0.0) + value
        found[name] = {
            "bytes per step of all processes": totals,
            "formula": formula(split.train, size, name == "BNS"),
            "loopback per step": carried / steps,
        }
    return found


def started(model: Any, split: Any, sampler: Any) -> tuple[Any, Any, Any]:
    """A learner of this group, the group, and a function that trains an epoch."""
    from bayesneg.interfaces import BPR_LOSS
    from bayesneg.seeding import stream
    from bayesneg.training.processes import begun

    group, learner = begun(model, split, sampler, BPR_LOSS, split.train, stream(0, "init"), None)
    ready = sampler.prepare(split.train, rng=stream(0, "sampler"))

    def train() -> None:
        order = stream(0, "order", 1).permutation(len(split.train))
        list(learner.train_epoch(ready, epoch=1, order=order, rng=stream(0, "sampler", 1)))

    return learner, group, train


def formula(train: Any, size: int, counts: bool) -> dict[str, float]:
    """Expected bytes per step of all processes together, as docs/how-to/scale.md has them."""
    m, b, away = CANDIDATES if counts else 1, BATCH / size, (size - 1) / size
    p = train.popularity / len(train)
    missed = (1 - p) ** b * (1 - 1 / train.n_items) ** (b * m)
    unique = float((1 - missed).sum())  # items of b examples, each with its positive and m candidates
    found = {"ids": 4 * unique * away * size, "rows": 4 * DIM * unique * away * size}
    found["gradients"] = found["rows"]
    if counts:
        observed = float((train.counts[train.users]).mean())  # items of the user of a random pair
        found["hidden"] = 4 * BATCH * (observed * away + (size - 1))
        found["users and scores"] = 4 * BATCH * (DIM + m) * (size - 1)
        found["counts of F"] = 4 * BATCH * m * (size - 1)
    return found


def memory(size: int, device: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    n_users, n_items, n = 300_000, 200_000, 400_000
    users = np.concatenate([np.arange(n_users), rng.integers(0, n_users, n - n_users)])
    items = np.concatenate([np.arange(n_items), rng.integers(0, n_items, n - n_items)])
    whole = bn.Interactions.from_numbers(users, items, user_ids=np.arange(n_users), item_ids=np.arange(n_items))
    split = bn.split(whole, test=0.01, seed=0)
    _ = split.train.users, split.train.observed, split.fingerprint  # what data costs is not what tables cost
    before = resident("VmRSS")
    model = bn.TorchMF(dim=64, batch_size=16384, device=device)
    _, group, train = started(model, split, bn.RNS())
    train()
    return {"MiB": max(group.objects(resident("VmHWM") - before)), "tables, MiB": 500_000 * 64 * 4 * 4 / 2**20 / size}


def overhead(size: int, device: Any) -> dict[str, Any]:
    """Seconds per epoch through the distributed path, in one process, and through the plain one, in turns."""
    import torch

    from bayesneg.interfaces import BPR_LOSS
    from bayesneg.seeding import stream

    found: dict[str, Any] = {}
    n_users, n_items = (1_500, 2_000) if device == "cpu" else (200_000, 100_000)
    data = bn.synthetic(n_users, n_items, seed=0) if device == "cpu" else skewed(n_users, n_items, 5_000_000)
    split = bn.split(data, test=0.1, seed=0)
    samplers: dict[str, Any] = {"RNS": bn.RNS(), "BNS, refreshed": bn.BNS(cdf="refreshed")}
    if device == "cuda":
        samplers["posterior pool"] = bn.BNS(candidates=2048, shared=True, weighting="posterior", cdf="pool")
    for name, sampler in samplers.items():
        model = bn.TorchMF(dim=64, batch_size=2048 if device == "cpu" else 65536, device=device)
        _, _, distributed = started(model, split, sampler)
        plain, ready = model.start(split.train, rng=stream(0, "init")), sampler.prepare(split.train, rng=stream(0, "s"))

        def alone(learner: Any = plain, prepared: Any = ready) -> None:
            order = stream(0, "order", 1).permutation(len(split.train))
            given = {"epoch": 1, "order": order, "rng": stream(0, "sampler", 1), "loss": BPR_LOSS}
            list(learner.train_epoch(prepared, **given))

        seconds: dict[str, list[float]] = {"plain": [], "distributed": []}
        for turn in range(4):
            for way, train in (("plain", alone), ("distributed", distributed)):
                begun = time.perf_counter()
                train()
                if device == "cuda":
                    torch.cuda.synchronize()
                if turn:  # the first compiles
                    seconds[way].append(time.perf_counter() - begun)
        best = {way: min(values) for way, values in seconds.items()}
        found[name] = {**seconds, "ratio": best["distributed"] / best["plain"]}
    return found


def skewed(n_users: int, n_items: int, n: int) -> Any:
    rng = np.random.default_rng(0)
    users, items = (rng.random(n) ** 1.5 * n_users).astype(np.int64), (rng.random(n) ** 3 * n_items).astype(np.int64)
    return bn.Interactions.from_numbers(users, items, user_ids=np.arange(n_users), item_ids=np.arange(n_items))


WORK = {"quality": quality, "bytes": sent, "memory": memory, "overhead": overhead}


def work(name: str, device: Any) -> None:
    """What one process does; rank 0 prints the result."""
    from bayesneg.distributed.group import begin, end

    begin(device, 600.0)
    found = WORK[name](int(os.environ["WORLD_SIZE"]), device)
    if os.environ["RANK"] == "0":
        print(json.dumps(found))
    end()


# ------------------------------------------------------------------------------------------------------------- all


def compared(name: str, device: Any) -> dict[str, Any]:
    sizes = (1,) if name == "overhead" or device == "cuda" else SIZES
    found = {}
    for size in sizes:
        arguments = ("-m", "benchmarks.scale.bench_ranks", "--work", name, "--device", device)
        found[str(size)] = json.loads(finished(torchrun(size, *arguments)).strip().splitlines()[-1])
        print(name, size, json.dumps(found[str(size)])[:600], flush=True)
    if name == "quality":
        one = np.array(found["1"]["ndcg@20"])
        for size in sizes[1:]:
            gaps = np.array(found[str(size)]["ndcg@20"]) - one
            error = 2.776 * gaps.std(ddof=1) / len(gaps) ** 0.5  # t, 4 degrees of freedom
            found[f"difference of {size}"] = {"mean": gaps.mean(), "95%": [gaps.mean() - error, gaps.mean() + error]}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--only", default=",".join(WORK))
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.work, asked.device)
        return
    on_gpu = asked.device == "cuda"
    for name in ["overhead"] if on_gpu else asked.only.split(","):
        found: dict[str, Any] = {"batch": BATCH, "dim": DIM, "candidates": CANDIDATES} if name == "bytes" else {}
        found |= {"device": device_name()} if on_gpu else {}
        suffix = f"-{name}-cuda" if on_gpu else f"-{name}"
        print(write_result(__file__, {**found, **compared(name, asked.device)}, suffix=suffix))


if __name__ == "__main__":
    main()
