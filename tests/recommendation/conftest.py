"""One small world and the models that are asked for recommendations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayesneg as bn

MODELS = {
    "mf": (bn.MF(dim=8), bn.RNS()),
    "cosine": (bn.MF(dim=8, similarity="cosine", learning_rate=0.1), bn.RNS()),
    "popularity": (bn.baselines.MostPopular(), None),
    "ease": (bn.baselines.EASE(l2=20.0), None),
    "ease of low rank": (bn.baselines.EASE(l2=20.0, form="low-rank"), None),
    "item-knn": (bn.baselines.ItemKNN(neighbours=20), None),
    "gf-cf": (bn.baselines.GFCF(rank=8), None),
}


@pytest.fixture(scope="session")
def world():
    """Identifiers are numbers, 0, 1, …"""
    data = bn.synthetic(150, 120, seed=3)
    numbered = replace(data, user_ids=np.arange(data.n_users), item_ids=np.arange(data.n_items))
    return bn.split(numbered, test=0.2, validation=0.1, seed=0)


@pytest.fixture(scope="session")
def run_of(world):
    """The run of a model, trained once."""
    runs = {}

    def get(name):
        if name not in runs:
            model, sampler = MODELS[name]
            runs[name] = bn.fit(model, world, sampler, epochs=3, progress=False)
        return runs[name]

    return get
