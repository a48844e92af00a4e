"""Runs with known numbers, for the report's tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayesneg.runs.record import RunRecord

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
