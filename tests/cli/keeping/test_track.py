"""``bayesneg train --track``: stores that are not there are named before any data is read; a failing one is a note."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import bayesneg as bn
from bayesneg.tracking import by_name


@dataclass
class Shelf(bn.tracking.Tracker):
    where: str

    @property
    def store(self) -> str:
        return f"shelf:{self.where}"

    def start(self, run):
        return "book"

    def log(self, epoch, metrics):
        if self.where == "broken":
            raise OSError("the shelf broke")

    def finish(self, status, metrics):
        Path(self.where).write_text(f"{status} {metrics['ndcg@20']}\n")


@pytest.fixture(autouse=True)
def _shelves(monkeypatch):
    monkeypatch.setattr(by_name, "TRACKERS", {**by_name.TRACKERS, "shelf": (Shelf, "shelf:a")})


def test_several_stores_are_given_one_by_one(bayesneg, ratings):
    given = ("train", ratings, "--epochs", 2, "--track", "shelf:a", "--track", "shelf:b", "--out", "run", "--json")
    found = bayesneg(*given).json
    for name in "ab":
        assert (ratings.parent / name).read_text() == f"finished {found['final']['ndcg@20']}\n"
    assert (ratings.parent / "run" / "tracking.json").exists()


def test_a_store_that_fails_is_a_note_and_the_result_is_there(bayesneg, ratings):
    done = bayesneg("train", ratings, "--epochs", 2, "--track", "shelf:broken", "-q")
    assert done.code == 0
    assert "mean ±95%" in done.out
    assert done.err.startswith("note: shelf:broken failed in epoch 1 and is not used any more; training goes on")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("shelf", "'shelf' does not say where to; write for example shelf:a"),
        ("comet:x", "'comet' is not a tracker; valid: mlflow, shelf, tensorboard, wandb"),
    ],
)
def test_a_store_that_is_none_is_named_before_data_is_read(bayesneg, place, store, said):
    assert said in bayesneg("train", "no-such-file.csv", "--track", store).error
