"""Data and runs that the tests of training share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import bayesneg as bn
from fits import fit


@pytest.fixture(scope="session")
def split():
    return bn.split(bn.synthetic(80, 100, seed=3), test=0.2, seed=0)


@pytest.fixture(scope="session")
def validated():
    return bn.split(bn.synthetic(80, 100, seed=3), test=0.2, validation=0.2, seed=0)


@pytest.fixture(scope="session")
def _recorded(split, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "run"
    return fit(split, out=folder), folder


@pytest.fixture
def recorded(_recorded, tmp_path) -> tuple[bn.Run, Path]:
    """A run of four epochs, and a copy of its folder."""
    run, folder = _recorded
    return run, shutil.copytree(folder, tmp_path / "run")


@pytest.fixture(scope="session")
def six_epochs(split) -> bn.Run:
    """The same run, with six epochs and never interrupted."""
    return fit(split, epochs=6)
