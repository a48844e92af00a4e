"""Small runs to export and to serve."""

from __future__ import annotations

from pathlib import Path

import pytest

import bayesneg as bn
from commands import bayesneg as bayesneg


@pytest.fixture(scope="session")
def data() -> bn.Split:
    """Integer users and text items; validation and test parts."""
    made = bn.synthetic(80, 300, seed=3)
    pairs = bn.Interactions.from_pairs(made.users.tolist(), [f"film {item}" for item in made.indices], name="films")
    return bn.split(pairs, test=0.2, validation=0.1, seed=0)


@pytest.fixture(scope="session")
def run(data) -> bn.Run:
    return bn.fit(bn.MF(dim=8, learning_rate=0.05), data, bn.RNS(), epochs=2, progress=False)


@pytest.fixture(scope="session")
def exported(run, tmp_path_factory) -> Path:
    """An export with an index, for reading only."""
    return run.export(tmp_path_factory.mktemp("exported") / "model", index="usearch")


@pytest.fixture(scope="session")
def saved(run, tmp_path_factory) -> Path:
    """The folder of the run, for reading only."""
    return run.save(tmp_path_factory.mktemp("saved") / "run")
