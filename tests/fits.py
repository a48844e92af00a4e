"""Short trainings, for tests of the loop and of what it records."""

from __future__ import annotations

from typing import Any

import pytest

import bayesneg as bn


def fit(split: bn.Split, sampler: bn.NegativeSampler | None = None, **more: Any) -> bn.Run:
    settings = {"epochs": 4, "progress": False} | more
    model = settings.pop("model", bn.MF(dim=4, learning_rate=0.05))
    return bn.fit(model, split, sampler or bn.BNS(), **settings)


def without_seconds(lines):
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def feature_model() -> bn.TorchModel:
    """A custom torch module, of which nobody knows what it makes of users and items without interactions."""
    torch = pytest.importorskip("torch")

    class Features(torch.nn.Module):
        def __init__(self, train):
            super().__init__()
            rng = torch.Generator().manual_seed(0)
            self.users = torch.nn.Parameter(torch.randn(train.n_users, 4, generator=rng))
            self.items = torch.nn.Parameter(torch.randn(train.n_items, 4, generator=rng))

        def forward(self):
            return self.users, self.items

    return bn.TorchModel(build=Features, device="cpu")
