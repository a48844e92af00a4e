"""A million users, a million items, twenty million interactions: epochs of BNS with a refreshed F on two cores.

    python -m benchmarks.speed.bench_million [--users 1000000 --items 1000000 --interactions 20000000 --epochs 3]

MF, d = 32, two threads, a generated world. After each epoch: its seconds, the most memory the process has had, and for
200 users how far the summary's count of items above a score lies from the count over all items, at some ranks of the
list: |ln((above + 1) / (true above + 1))|, from summaries as old as the epoch left them and from fresh ones. Writes
results/speed/bench_million.json after every epoch.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

import bayesneg as bn
from bayesneg.interfaces import Batch
from bayesneg.kernels.reference import formulas
from bayesneg.models.mf import MFLearner
from bayesneg.samplers.bns import BNS
from bayesneg.seeding import stream
from benchmarks.machine import write_result

RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 20_000, 100_000, 500_000)
N_JUDGED = 200


def errors(sampler: BNS, batch: Batch) -> dict[str, dict[str, float]]:
    """By rank, the median and the 90% quantile over the batch's users, of the summaries as they stand."""
    summaries: Any = sampler.summaries
    vectors = batch.scorer.embeddings()
    ranks = [rank for rank in RANKS if rank < batch.train.n_items // 2]
    off = np.empty((len(batch.users), len(ranks)))
    for b, user in enumerate(batch.users):
        w = vectors.users[user]
        x = np.sort(np.delete(vectors.items @ w, batch.train.row(user)))[::-1]
        z = x[np.array(ranks) - 1] / max(float(np.linalg.norm(w)), 1e-30)
        off[b] = np.abs(
            np.log((formulas.items_above(summaries.knots[user], summaries.ranks, z) + 1.0) / np.array(ranks))
        )
    return {
        str(rank): {"median": float(np.median(off[:, k])), "90%": float(np.quantile(off[:, k], 0.9))}
        for k, rank in enumerate(ranks)
    }


def judged(learner: MFLearner, train: bn.Interactions, epoch: int, users: np.ndarray) -> Batch:
    nothing = np.zeros(len(users), dtype=np.int64)
    return Batch(users, train.indices[train.indptr[users]], nothing, epoch, train, learner, stream(0, "judged"))


def peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--interactions", type=int, default=20_000_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    asked = parser.parse_args()
    train = bn.synthetic(asked.users, asked.items, n_interactions=asked.interactions, seed=0)
    model = bn.MF.paper(dim=32, threads=asked.threads, learning_rate=asked.learning_rate)
    learner = model.start(train, rng=stream(0, "init"))
    sampler = BNS(cdf="refreshed").prepare(train, rng=stream(0, "sampler"))
    active = np.flatnonzero(train.counts > 0)
    users = stream(0, "judged").choice(active, min(N_JUDGED, len(active)), replace=False).astype(np.int32)
    order = stream(0, "order").permutation(len(train))
    list(learner.train_epoch(sampler, epoch=0, order=order[:100], rng=stream(0, "warm-up")))  # compiles
    lines = []
    for epoch in range(1, asked.epochs + 1):
        started = time.perf_counter()
        for _ in learner.train_epoch(sampler, epoch=epoch, order=order, rng=stream(0, "sampler", epoch)):
            pass
        seconds = time.perf_counter() - started
        line: dict[str, Any] = {"epoch": epoch, "seconds": seconds, "peak_gibibytes": peak_memory()}
        line["tail_error"] = errors(sampler, judged(learner, train, epoch, users))
        fresh = BNS(cdf="refreshed").prepare(train, rng=stream(0, "sampler"))
        fresh.rule(judged(learner, train, epoch, users))  # makes the summaries
        line["tail_error_fresh"] = errors(fresh, judged(learner, train, epoch, users))
        lines.append(line)
        facts = {"users": train.n_users, "items": train.n_items, "interactions": len(train), "settings": vars(asked)}
        path = write_result(__file__, {**facts, "epochs": lines})
        print(f"epoch {epoch}: {seconds:.0f} s, {line['peak_gibibytes']:.1f} GiB, wrote {path}", flush=True)


if __name__ == "__main__":
    main()
