"""Cells that no recipe makes, and splits that come with the data."""

from __future__ import annotations

import numpy as np
import pytest
import sweeps

import bayesneg as bn
from bayesneg.experiments.datasets import Source
from bayesneg.reproduction.sweeps.cells import Cell, run_cell


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, str]:
    return Source(), str(sweeps.world(tmp_path_factory.mktemp("data")))


def cell(source: Source, dataset: str, view: str, **changes) -> Cell:
    own = {"model": "mf", "sampler": "rns", "label": "x", "epochs": 2, "seed": 0, **changes}
    return Cell(dataset=dataset, fingerprint=source.fingerprint(dataset, view), view=view, **own)


def test_gowalla_keeps_the_split_it_comes_in(tmp_path):
    (tmp_path / "gowalla").mkdir()
    (tmp_path / "gowalla" / "train.txt").write_text("0 0 1 2\n1 1 3\n")
    (tmp_path / "gowalla" / "test.txt").write_text("0 3\n1 0\n")
    parts = Source(data_dir=tmp_path).split("gowalla", "last")
    assert (len(parts.train), len(parts.test), parts.how) == (5, 2, "given")


def test_a_cell_without_a_sampler_is_a_baseline(source):
    source, dataset = source
    solved = cell(source, dataset, "last", model="popularity", sampler="", epochs=1)
    record = run_cell(solved, source.split(dataset, "last"), progress=lambda line: None)
    assert record.is_baseline
    assert np.isfinite(record.final["ndcg@20"])


@pytest.mark.parametrize("name", ["bns", "bns-2"])
def test_a_cell_computes_the_score_cdf_exactly_however_many_items_there_are(name):
    """The plain default would use a refreshed one above 4,096 items; the paper does not."""
    rng = np.random.default_rng(0)
    data = bn.Interactions.from_numbers(
        rng.integers(0, 30, 400), rng.integers(0, 5000, 400), user_ids=np.arange(30), item_ids=np.arange(5000)
    )
    split = bn.split(data, test=0.2, seed=0)
    cell = Cell("large", split.fingerprint, "last", "mf", name, name, epochs=1, seed=0)
    spec = run_cell(cell, split, progress=lambda line: None).spec["sampler"]
    assert (spec["then"] if name == "bns-2" else spec)["cdf"] == "exact"


def test_another_loss_is_another_key_and_bpr_keeps_the_old_one(source):
    source, dataset = source
    plain, psl = (cell(source, dataset, "last", **more) for more in ({}, {"loss": "psl:temperature=0.5"}))
    assert "loss" not in plain.to_dict()
    assert plain.key != psl.key
    assert Cell.from_dict(psl.to_dict()) == psl
    record = run_cell(psl, source.split(dataset, "last"), progress=lambda line: None)
    assert record.loss == "PSL (temperature=0.5)"
