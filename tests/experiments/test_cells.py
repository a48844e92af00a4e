"""Cells that no recipe makes, and splits that come with the data."""

from __future__ import annotations

import numpy as np
import pytest
import sweeps

from bayesneg.experiments.cells import Cell, run_cell
from bayesneg.experiments.datasets import Source


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
