"""Small files for commands to read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bayesneg.cli import main
from commands import bayesneg as bayesneg

OWN_SAMPLERS = '''
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import bayesneg as bn


@dataclass(frozen=True)
class Mine(bn.NegativeSampler):
    """The first unseen item after a given one."""

    start: int = 0

    def sample(self, batch):
        picked = np.full(len(batch.users), bn.NO_NEGATIVE)
        for row, user in enumerate(batch.users):
            unseen = np.setdiff1d(np.arange(batch.train.n_items), batch.train.row(user))
            picked[row] = unseen[self.start % len(unseen)]
        return picked


def too_sure(users, items):
    return np.full(np.broadcast(users, items).shape, 1.5)


def not_a_number(users, items):
    return np.full(np.broadcast(users, items).shape, np.nan)


@dataclass(frozen=True)
class TooSure(bn.BNS):
    prior: object = too_sure


@dataclass(frozen=True)
class NotANumber(bn.BNS):
    prior: object = not_a_number


class OutOfRange(bn.NegativeSampler):
    def sample(self, batch):
        return np.full(len(batch.users), 10**6)


class Crashing(bn.NegativeSampler):
    def sample(self, batch):
        raise RuntimeError("a mistake in my own code")
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, so that a test sees everything that is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BAYESNEG_DATA", raising=False)
    return tmp_path


@pytest.fixture
def ratings(place: Path) -> Path:
    """30 users, 40 items, 12 rated items each."""
    path = place / "ratings.csv"
    path.write_text(ratings_text())
    return path


def ratings_text(n_users: int = 30, n_items: int = 40, each: int = 12) -> str:
    rng = np.random.default_rng(0)
    rows = [
        f"u{user},i{item},{rng.integers(1, 6)},{rng.integers(1_000, 9_000)}"
        for user in range(n_users)
        for item in rng.choice(n_items, each, replace=False)
    ]
    return "\n".join(["user,item,rating,time", *rows, ""])


@pytest.fixture
def own_samplers(place: Path) -> Path:
    path = place / "own.py"
    path.write_text(OWN_SAMPLERS)
    return path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, for reading only."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "ratings.csv").write_text(ratings_text())
    out = folder / "run"
    with pytest.raises(SystemExit) as ended:
        main(["train", str(folder / "ratings.csv"), "--epochs", "3", "--out", str(out), "-q"])
    assert ended.value.code == 0
    return out
