"""Full-catalogue evaluation against the bare product of the same vectors, in one run.

    BAYESNEG_DATA=… python -m benchmarks.speed.bench_evaluation [--repeats 9]

ML-1M (a random 80/20 split, MF after a few epochs) and generated interactions with 100,000 items, d = 8 to 128, all
metrics at k = 5, 10, 20. "bare product" is ``users @ items.T`` for the evaluated users in the chunks that evaluation
takes; "bare product at its best" is the fastest of several chunk sizes and layouts, into a buffer that is kept. One
thread; seconds are processor time, since others may use the machine; every repeat times each contender once, and
ratios are of medians. Two contenders show what is left of a goal of 2: a look at each score copies each row, as
any ranking must that masks items; a look-up for each score loads one number from a table of 1,024, as the AUC
does. Also, the memory that evaluation takes with a million items. Writes results/speed/bench_evaluation.json.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

import bayesneg as bn
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.evaluation.ranking import METRICS, evaluate, users_at_a_time
from bayesneg.models.scorers import EmbeddingScorer
from benchmarks.data import splits
from benchmarks.machine import write_result

DIMS = (8, 32, 64, 128)
GOAL = 2.0
SIZES = (64, 128, 256, 512, 1024)  # users per product, for its best
WITHOUT_AUC = tuple(metric for metric in METRICS if metric != "auc")


def trained(split: Split, dim: int) -> EmbeddingScorer:
    run = bn.fit(bn.MF.paper(dim=dim), split, bn.RNS(), epochs=5, seed=0, progress=False)
    vectors = run.scorer.embeddings()
    return EmbeddingScorer(vectors.users, vectors.items)


def drawn(split: Split, dim: int) -> EmbeddingScorer:
    rng = np.random.default_rng(dim)
    sizes = (split.train.n_users, dim), (split.train.n_items, dim)
    return EmbeddingScorer(*(rng.standard_normal(size, dtype=np.float32) for size in sizes))


def generated(n_users: int, n_items: int) -> Split:
    """40 training and 10 test items per user, popular ones more often."""
    rng = np.random.default_rng(0)
    popularity = 1 / np.arange(1, n_items + 1)
    draws = rng.choice(n_items, size=(n_users, 200), p=popularity / popularity.sum())
    chosen = [rng.permutation(np.unique(row))[:50] for row in draws]
    user_ids, item_ids = np.arange(n_users), np.arange(n_items)

    def part(rows: list[np.ndarray]) -> Interactions:
        users = np.repeat(user_ids, [len(row) for row in rows])
        return Interactions.from_numbers(users, np.concatenate(rows), user_ids=user_ids, item_ids=item_ids)

    return Split(train=part([row[10:] for row in chosen]), test=part([row[:10] for row in chosen]))


def bare_product(scorer: EmbeddingScorer, users: np.ndarray) -> None:
    size = users_at_a_time(scorer.n_items)
    for start in range(0, len(users), size):
        scorer.score_all(users[start : start + size])


@njit
def look(scores: np.ndarray, line: np.ndarray) -> None:
    """Copy each row, as any ranking must that masks items and may not write to the scores."""
    for row in range(len(scores)):
        for item in range(scores.shape[1]):
            line[item] = scores[row, item] if scores[row, item] > -np.inf else np.float32(-np.inf)


@njit
def look_up(levels: np.ndarray, table: np.ndarray, n_rows: int) -> int:
    """Sum the table's entry of each item, row after row."""
    total = 0
    for _ in range(n_rows):
        table[0] = total & 1  # or all rows would be one
        for item in range(len(levels)):
            total += table[levels[item]]
    return total


def product_and_looks(scorer: EmbeddingScorer, users: np.ndarray, *, up: bool) -> None:
    line = np.empty(scorer.n_items, dtype=np.float32)
    levels = np.random.default_rng(0).integers(0, 1024, scorer.n_items, dtype=np.uint16)
    table = np.arange(1024)
    size = users_at_a_time(scorer.n_items)
    for start in range(0, len(users), size):
        scores = scorer.score_all(users[start : start + size])
        look(scores, line)
        if up:
            look_up(levels, table, len(scores))


def product_into(buffer: np.ndarray, users: np.ndarray, items: np.ndarray) -> None:
    """``users`` (U, d) times ``items`` (d, n_items), as many users at a time as the buffer has rows."""
    for start in range(0, len(users), len(buffer)):
        part = users[start : start + len(buffer)]
        np.matmul(part, items, out=buffer[: len(part)])


def seconds_of(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started


def best_product(scorer: EmbeddingScorer, users: np.ndarray) -> Callable[[], object]:
    vectors = scorer.users[users]
    ways: list[Callable[[], object]] = []
    for size in (size for size in SIZES if size * scorer.n_items * 4 <= 2**27):
        buffer = np.empty((size, scorer.n_items), dtype=np.float32)
        for items in (scorer.items.T, np.ascontiguousarray(scorer.items.T)):
            ways.append(lambda buffer=buffer, items=items: product_into(buffer, vectors, items))  # type: ignore[misc]
    return min(ways, key=lambda way: min(seconds_of(way) for _ in range(3)))


def measured(split: Split, scorer: EmbeddingScorer, repeats: int) -> dict[str, Any]:
    users = np.flatnonzero(split.test.counts)
    contenders: dict[str, Callable[[], object]] = {
        "bare product": lambda: bare_product(scorer, users),
        "bare product at its best": best_product(scorer, users),
        "bare product and a look at each score": lambda: product_and_looks(scorer, users, up=False),
        "the same and a look-up for each score": lambda: product_and_looks(scorer, users, up=True),
        "evaluation, all metrics": lambda: evaluate(scorer, split),
        "evaluation without AUC": lambda: evaluate(scorer, split, metrics=WITHOUT_AUC),
        "evaluation, AUC alone": lambda: evaluate(scorer, split, metrics="auc"),
        "evaluation, NDCG@20 alone": lambda: evaluate(scorer, split, k=20, metrics="ndcg"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for work in contenders.values():
        work()
    for _ in range(repeats):
        for name, work in contenders.items():
            seconds[name].append(seconds_of(work))
    median = {name: float(np.median(values)) for name, values in seconds.items()}
    return {
        "n_users": len(users),
        "n_items": scorer.n_items,
        "n_tests": len(split.test),
        "dim": scorer.users.shape[1],
        "users_at_a_time": users_at_a_time(scorer.n_items),
        "seconds": median,
        "all_seconds": seconds,
        "ratio to the bare product": {name: value / median["bare product"] for name, value in median.items()},
        "ratio to the bare product at its best": {
            name: value / median["bare product at its best"] for name, value in median.items()
        },
        "scores per second": len(users) * scorer.n_items / median["evaluation, all metrics"],
    }


def memory(n_users: int, n_items: int) -> dict[str, Any]:
    """By how much the peak of this process rises while it evaluates; nothing larger may have run before."""
    split = generated(n_users, n_items)
    scorer = drawn(split, 32)
    evaluate(scorer, split, k=5, chunk=1)  # loads what is compiled
    before = _peak()
    evaluate(scorer, split)
    return {"n_users": n_users, "n_items": n_items, "dim": 32, "rise of the peak in bytes": _peak() - before}


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    rise = memory(64, 1_000_000)
    movielens, many = splits(None)["ml-1m"], generated(600, 100_000)
    cases = []
    for dim in DIMS:
        for name, split, scorer in (
            ("ml-1m", movielens, trained(movielens, dim)),
            ("100,000 items", many, drawn(many, dim)),
        ):
            cases.append({"data": name, **measured(split, scorer, repeats)})
            _show(cases[-1])
            print(f"{len(cases)} of {2 * len(DIMS)} cases", file=sys.stderr)
    wanted = next(case for case in cases if case["data"] == "ml-1m" and case["dim"] == 32)
    ratio = wanted["ratio to the bare product"]["evaluation, all metrics"]
    result = {"goal": GOAL, "ratio": ratio, "reached": ratio <= GOAL, "cases": cases, "memory": rise}
    print(f"wrote {write_result(__file__, result)}")


def _show(case: dict[str, Any]) -> None:
    print(f"{case['data']}, d = {case['dim']}, {case['n_users']:,} users, {case['users_at_a_time']} at a time")
    for name, seconds in case["seconds"].items():
        print(f"  {name:<40} {seconds * 1000:8.1f} ms {case['ratio to the bare product'][name]:6.2f}")


if __name__ == "__main__":
    main()
