"""Short trainings, for tests of the loop and of what it records."""

from __future__ import annotations

from typing import Any

import bayesneg as bn


def fit(split: bn.Split, sampler: bn.NegativeSampler | None = None, **more: Any) -> bn.Run:
    settings = {"epochs": 4, "progress": False} | more
    model = settings.pop("model", bn.MF(dim=4, learning_rate=0.05))
    return bn.fit(model, split, sampler or bn.BNS(), **settings)


def without_seconds(lines):
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]
