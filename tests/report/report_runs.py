"""Runs with known numbers, for the report's tests."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

import bayesneg as bn
from bayesneg.evaluation.statistics import Estimate, PairedDifference
from bayesneg.runs.record import RunRecord
from bayesneg.runs.tuning_result import Advice, Evidence, Trial, TuningResult

DATA = {"name": "toy", "n_users": 50, "n_items": 90, "n_train": 4000, "n_test": 1000, "fingerprint": "abc"}


def run(label: str, seed: int = 0, ndcg: float = 0.4, **changes: Any) -> RunRecord:
    """A run whose metrics follow from ``ndcg``; ``changes`` replace any field."""
    epochs = [
        {
            "epoch": epoch,
            "tnr": 0.95 + ndcg / 100 - seed / 1000,
            "inf": 0.2 + 0.3 / epoch,
            "tnr_uniform": 0.97,
            "skipped": 0,
            "seconds": 0.1,
            **({"ndcg@20": ndcg * (1 - 0.5**epoch)} if epoch % 2 == 0 else {}),
        }
        for epoch in range(1, 9)
    ]
    final = {
        "ndcg@20": ndcg,
        "precision@20": ndcg / 2,
        "recall@20": ndcg / 3,
        "ndcg@5": ndcg + 0.01,
        "auc": 0.9,
    }
    fields: dict[str, Any] = {
        "label": label,
        "sampler": label.lower(),
        "seed": seed,
        "dataset": "toy",
        "model": "MF (dim=32)",
        "spec": {"sampler": label, "epochs": 8, "seed": seed},
        "versions": {"numpy": np.__version__},
        "data": DATA,
        "epochs": epochs,
        "final": final,
        "intervals": {key: (value - 0.02, value + 0.02) for key, value in final.items()},
        "reported_epoch": 8,
    }
    return RunRecord(**{**fields, **changes})


def three_samplers(**changes: Any) -> list[RunRecord]:
    """RNS, DNS and BNS with three seeds each; BNS leads by 0.02 in every seed, give or take 0.001."""
    means = {"RNS": 0.40, "DNS": 0.401, "BNS": 0.42}
    return [
        run(label, seed, mean + (0.003, -0.001, -0.002)[seed] + 0.001 * ((seed + place) % 3 - 1), **changes)
        for place, (label, mean) in enumerate(means.items())
        for seed in range(3)
    ]


def holes() -> RunRecord:
    """A run in which little was measured: NaN, null, and missing keys."""
    return run(
        "HOLES",
        ndcg=0.3,
        final={"ndcg@20": math.nan, "precision@20": None, "recall@20": 0.1},
        intervals={"ndcg@20": None, "recall@20": [None, None]},
        epochs=[{"epoch": 1}, {"epoch": 2, "tnr": math.nan, "inf": None}, {"epoch": 3, "tnr": 0.9}],
        data={},
        versions={},
        spec={},
    )


def trial(number: int, label: str, state: str = "complete", curve: dict[int, float] | None = None, why: str = ""):
    values = {1: 0.1, 2: 0.2 + number / 100} if curve is None else curve
    return Trial(number, label.lower(), label, label.partition(" ")[0], state, values, seconds=1.0, why=why)


def search() -> TuningResult:
    """A search of four trials: two complete, one pruned, one failed."""
    trials = [
        trial(1, "RNS"),
        trial(2, "BNS (weight=5)"),
        trial(3, "BNS (weight=9)", "pruned", {1: 0.05}),
        trial(4, "BNS (weight=1)", "failed", {}, "training <diverged>"),
    ]
    users = Estimate(0.02, 0.01, 0.03, "users", 50, 0.001)
    clear = PairedDifference(users, Estimate(0.02, 0.015, 0.025, "seeds", 3, 0.001), 3)
    unclear = PairedDifference(replace(users, low=-0.01, p_value=0.2), Estimate(0.02), 1)
    evidence = [Evidence("RNS", clear, True), Evidence("DNS", unclear, False)]
    advice = Advice(
        "BNS (weight=5)", "BNS (weight=5)", "ndcg@20", "Use BNS & be happy.", evidence, {}, {}, ["a <note>"]
    )
    best = {"RNS": trials[0], "BNS": trials[1]}
    return TuningResult(trials, best, three_samplers(), advice, bn.MF(), bn.BNS())
