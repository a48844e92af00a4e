"""One step of a bare MF loop in torch: ``torch.randint`` negatives against those of ``bayesneg.torch.Sampler``.

    python -m benchmarks.speed.losses.bench_drop_in [--device cuda] [--data gowalla,ml-100k,ml-1m] [--repeats 15]

d = 64, batches of 1,024, Adam. The data are generated, with the sizes of Gowalla, ML-100K and ML-1M; none are read.
Each repeat times every contender once, so that a busy machine slows all alike; a ratio is the median over the repeats
of a contender's time to that of ``torch.randint`` in the same repeat. Writes results/speed/bench_drop_in_DEVICE.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Final

import numpy as np
import torch
from torch import Tensor

import bayesneg as bn
import bayesneg.torch as bnt
from benchmarks.machine import write_result
from benchmarks.speed.contenders import Epoch, medians

SIZES: Final = {"gowalla": (29_858, 40_981, 810_128), "ml-100k": (943, 1_682, 80_000), "ml-1m": (6_040, 3_706, 800_167)}
BATCH, DIM = 1024, 64
FIRST = "torch.randint"
Draw = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", default=",".join(SIZES))
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--steps", type=int, default=40, help="timed together in each repeat")
    options = parser.parse_args()
    device, found = torch.device(options.device), {}
    for name in options.data.split(","):
        train = generated(*SIZES[name])
        contenders = {label: steps(draw, train, device, options.steps) for label, draw in draws(train).items()}
        contenders["BNS and bnt.losses.bpr"] = drop_in_steps(train, device, options.steps)
        median, seconds = medians(contenders, options.repeats)
        first = np.array(seconds[FIRST])
        found[name] = {
            "milliseconds_per_step": {label: 1e3 * value / options.steps for label, value in median.items()},
            "ratios": {label: float(np.median(np.array(values) / first)) for label, values in seconds.items()},
        }
        for label, ratio in found[name]["ratios"].items():
            spent = found[name]["milliseconds_per_step"][label]
            print(f"{name:10s}{label:26s}{spent:8.3f} ms {ratio:6.2f}", file=sys.stderr)
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    settings = {"batch": BATCH, "dim": DIM, "device": str(device), "gpu": gpu, "threads": torch.get_num_threads()}
    path = write_result(__file__, {**settings, "data": found}, suffix=f"_{device.type}")
    print(f"wrote {path}")


def generated(n_users: int, n_items: int, n_pairs: int) -> bn.Interactions:
    """Pairs of a long-tailed catalogue and users of unequal activity."""
    rng = np.random.default_rng(0)
    activity, popularity = rng.lognormal(sigma=1.0, size=n_users), 1.0 / (np.arange(n_items) + 10.0) ** 0.8
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < n_pairs:
        users = rng.choice(n_users, n_pairs, p=activity / activity.sum())
        items = rng.choice(n_items, n_pairs, p=popularity / popularity.sum())
        keys = np.unique(np.concatenate((keys, users * n_items + items)))
    keys = np.sort(rng.permutation(keys)[:n_pairs])
    return bn.Interactions.from_numbers(
        keys // n_items, keys % n_items, user_ids=np.arange(n_users), item_ids=np.arange(n_items)
    )


def draws(train: bn.Interactions) -> dict[str, Draw]:
    """The negatives (B,) of a batch, by contender."""

    def of(sampler: bn.NegativeSampler) -> Draw:
        bound = bnt.Sampler(sampler, train, seed=0)
        return lambda users, items, U, V: bound(users, items, U, V).items[:, 0]

    def randint(users: Tensor, items: Tensor, U: Tensor, V: Tensor) -> Tensor:
        return torch.randint(train.n_items, users.shape, device=users.device)

    return {
        FIRST: randint,
        "RNS": of(bn.RNS()),
        "DNS, m = 5": of(bn.DNS(candidates=5)),
        "BNS, m = 5": of(bn.BNS(candidates=5)),
    }


def steps(draw: Draw, train: bn.Interactions, device: torch.device, n: int) -> Epoch:
    """Steps with the BPR loss written by hand."""

    def loss(users: Tensor, items: Tensor, U: Tensor, V: Tensor) -> Tensor:
        negatives = draw(users, items, U, V)
        return torch.nn.functional.softplus((U[users] * (V[negatives] - V[items])).sum(dim=1)).mean()

    return timed(loss, train, device, n)


def drop_in_steps(train: bn.Interactions, device: torch.device, n: int) -> Epoch:
    """The loop as the README writes it."""
    sampler = bnt.Sampler(bn.BNS(candidates=5), train, seed=0)

    def loss(users: Tensor, items: Tensor, U: Tensor, V: Tensor) -> Tensor:
        return bnt.losses.bpr(U[users], V[items], V, sampler(users, items, U, V))

    return timed(loss, train, device, n)


def timed(loss: Callable[..., Tensor], train: bn.Interactions, device: torch.device, n: int) -> Epoch:
    """The next ``n`` steps of Adam; the first ones warm up, and the summaries of an epoch are then computed."""
    generator = torch.Generator().manual_seed(0)
    U, V = (
        torch.nn.Parameter((0.1 * torch.randn(rows, DIM, generator=generator)).to(device))
        for rows in (train.n_users, train.n_items)
    )
    optimizer = torch.optim.Adam([U, V], lr=1e-3)
    users, items = (torch.from_numpy(part.astype(np.int64)).to(device) for part in (train.users, train.indices))
    order = torch.randperm(len(users), generator=generator).to(device)
    batches = order.split(BATCH)[:-1]  # type: ignore[no-untyped-call]
    position = 0

    def run(steps: int = n) -> float:
        nonlocal position
        started = now(device)
        for _ in range(steps):
            batch = batches[position % len(batches)]
            position += 1
            loss(users[batch], items[batch], U, V).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
        return now(device) - started

    run(max(n, 5))
    return run


def now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


if __name__ == "__main__":
    main()
