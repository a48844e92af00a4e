"""BNS with a refreshed F against DNS and RNS, and how often it picks what the exact F picks.

    BAYESNEG_DATA=… python -m benchmarks.speed.bench_cdf [--worlds ml-100k,ml-1m,100k-items]

MF, d = 32, one thread, five candidates; ML-100K, ML-1M and a generated world of 100,000 items. Seconds: every contender
trains its own model, and all take turns epoch by epoch, so that a busy machine slows all alike; ratios are of medians,
drawing candidates and refreshing summaries included. Agreement: within a training by refreshed BNS exact F chooses as
well, at each example or every so many, from the same draws and the same vectors. Adds to results/bench_cdf.json, world
by world.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from numba import njit

import bayesneg as bn
from bayesneg.interfaces import Batch, NegativeSampler
from bayesneg.kernels.numba import scoring, sgd
from bayesneg.kernels.numba.choices.base import Example, choose
from bayesneg.kernels.reference.choices.take import TakeHighest
from bayesneg.models.mf import BLOCK
from bayesneg.seeding import stream
from benchmarks.data import splits
from benchmarks.machine import result_path, write_result
from benchmarks.speed.contenders import DECAY, DIM, RATE, Epoch, our_epoch

CANDIDATES = 5
# how many epochs are timed, in how many the choices are compared, and at every how many-th example
PLANS = {"ml-100k": (60, 40, 1), "ml-1m": (15, 12, 4), "100k-items": (8, 6, 200)}
CONTENDERS: dict[str, Callable[[], NegativeSampler]] = {
    "RNS": bn.RNS,
    "DNS": lambda: bn.DNS(candidates=CANDIDATES),
    "BNS, refreshed": lambda: bn.BNS(cdf="refreshed"),
    "BNS, exact": bn.BNS,
}


def train_part(world: str) -> bn.Interactions:
    if world == "100k-items":
        return bn.synthetic(10_000, 100_000, n_interactions=1_000_000, seed=0)
    return splits(None)[world].train


def epochs_of(train: bn.Interactions, sampler: NegativeSampler) -> Epoch:
    """Each call is one epoch more, from the first on; the compiling is done beforehand, on another model."""
    our_epoch(train, sampler)
    return our_epoch(train, sampler, warm=False)


def times(train: bn.Interactions, n_epochs: int, names: list[str]) -> dict[str, object]:
    runs = {name: epochs_of(train, CONTENDERS[name]()) for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(n_epochs):
        for name, run in runs.items():
            seconds[name].append(run())
    median = {name: float(np.median(values)) for name, values in seconds.items()}
    mean = {name: float(np.mean(values)) for name, values in seconds.items()}
    ratios = {
        f"{kind}, BNS refreshed / {other}": middle["BNS, refreshed"] / middle[other]
        for kind, middle in (("median", median), ("mean", mean))
        for other in names
        if other != "BNS, refreshed"
    }
    return {"seconds_per_epoch": median, "ratios": ratios, "all_seconds": seconds}


def parts(train: bn.Interactions, sampler: NegativeSampler, n_epochs: int) -> dict[str, float]:
    """Where an epoch's seconds go, medians: drawing candidates and priors, refreshing summaries, and all the rest."""
    learner = bn.MF.paper(dim=DIM).start(train, rng=stream(0, "init"))
    ready = sampler.prepare(train, rng=stream(0, "sampler"))
    order = stream(0, "order").permutation(len(train))
    spent = {"draws": 0.0, "rule": 0.0}

    def timed(name: str, ask: Callable[[Batch], object]) -> Callable[[Batch], object]:
        def run(batch: Batch) -> object:
            started = time.perf_counter()
            answer = ask(batch)
            spent[name] += time.perf_counter() - started
            return answer

        return run

    for name in spent:
        object.__setattr__(ready, name, timed(name, getattr(ready, name)))
    lines = []
    for epoch in range(1, n_epochs + 1):
        before, started = dict(spent), time.perf_counter()
        for _ in learner.train_epoch(ready, epoch=epoch, order=order, rng=stream(0, "sampler", epoch)):
            pass
        draws, summaries = (spent[name] - before[name] for name in ("draws", "rule"))
        lines.append((draws, summaries, time.perf_counter() - started - draws - summaries))
    return dict(zip(("draws", "summaries", "choices and steps"), np.median(lines, axis=0).tolist(), strict=True))


@njit(nogil=True)
def train_and_compare(  # type: ignore[no-untyped-def]
    rule, exact, highest, users, positives, draws, indptr, indices, factors, every, counts
):
    """Train a block by ``rule``; at each ``every``-th example count how often the others would have picked the same."""
    x = np.empty(len(factors.items) + draws.candidates.shape[1] + scoring.TILE, dtype=np.float32)
    for b in range(len(users)):
        user, i = users[b], positives[b]
        example = Example(b, user, i, indptr[user], indptr[user + 1], True)
        j = choose(rule, draws, example, indices, factors, x)
        if b % every == 0:
            counts[0] += 1
            truth = choose(exact, draws, example, indices, factors, x)
            counts[1] += j == truth
            counts[2] += choose(highest, draws, example, indices, factors, x) == truth
        sgd.step(factors.users[user], factors.items[i], factors.items[j], sgd.SGDConfig(RATE, DECAY, False, 1))
        scoring.update_tile(factors.tiled, i, factors.items[i])
        scoring.update_tile(factors.tiled, j, factors.items[j])


def agreement(train: bn.Interactions, n_epochs: int, every: int) -> dict[str, list[float]]:
    """The share of examples, epoch by epoch, in which exact F picks the same; of DNS as well, for comparison."""
    learner = bn.MF.paper(dim=DIM).start(train, rng=stream(0, "init"))
    refreshed, exact = (bn.BNS(cdf=cdf).prepare(train, rng=stream(0, "sampler")) for cdf in ("refreshed", "exact"))
    tiled = scoring.tile_items(learner.items, scoring.tile_layout(train.users, train.indices, train.n_items))
    factors = scoring.Factors(learner.users, learner.items, tiled)
    order = stream(0, "order").permutation(len(train))
    same: dict[str, list[float]] = {"BNS, refreshed": [], "DNS": []}
    for epoch in range(1, n_epochs + 1):
        rng, counts = stream(0, "sampler", epoch), np.zeros(3, dtype=np.int64)
        for first in range(0, len(order), BLOCK):
            positions = order[first : first + BLOCK]
            batch = Batch(train.users[positions], train.indices[positions], positions, epoch, train, learner, rng)
            draws = refreshed.draws(batch)._replace(uniforms=np.zeros((len(positions), 1)))
            train_and_compare(
                refreshed.rule(batch), exact.rule(batch), TakeHighest(1), batch.users, batch.positives, draws,
                train.indptr, train.indices, factors, every, counts,
            )  # fmt: skip
        same["BNS, refreshed"].append(float(counts[1] / counts[0]))
        same["DNS"].append(float(counts[2] / counts[0]))
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default=",".join(PLANS))
    path = result_path(__file__)
    results = json.loads(path.read_text(encoding="utf-8"))["worlds"] if path.exists() else {}
    for world in parser.parse_args().worlds.split(","):
        timed, compared, every = PLANS[world]
        train = train_part(world)
        names = [name for name in CONTENDERS if name != "BNS, exact" or train.n_items < 10_000]
        found = {"users": train.n_users, "items": train.n_items, "interactions": len(train)}
        results[world] = {**found, **times(train, timed, names), "agreement": agreement(train, compared, every)}
        results[world]["parts"] = {name: parts(train, CONTENDERS[name](), timed) for name in ("DNS", "BNS, refreshed")}
        same = results[world]["agreement"]["BNS, refreshed"]
        print(world, {name: round(ratio, 2) for name, ratio in results[world]["ratios"].items()})
        print(f"  agreement: least {min(same):.4f}, mean {np.mean(same):.4f}")
        write_result(__file__, {"worlds": results})
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
