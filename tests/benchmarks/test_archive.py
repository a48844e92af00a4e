"""An archive gives back what the pages need of a ledger."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bayesneg.reproduction.sweeps.cells import Cell
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord
from benchmarks import archive
from benchmarks.machine import RESULTS

CELL = Cell("ml-100k", "abc", "last", "mf", "bns", "BNS", 10, 0, sampler_settings={"candidates": 5})


def entry(seed=0, values=(0.25, 0.5, 0.0), **of_cell):
    cell = replace(CELL, seed=seed, **of_cell)
    epochs = [{"epoch": epoch, "tnr": 0.9, "seconds": 1.0} for epoch in (1, 2)]
    epochs[1] |= {"ndcg@20": 0.41234}
    record = RunRecord(
        label="BNS", seed=seed, dataset="ml-100k", model="MF", spec={"sampler": {"class": "BNS", "prior": None}},
        versions={"numpy": "2.0"}, data={"n_train": 9}, epochs=epochs,
        final={"ndcg@20": 0.412345, "auc": 0.9}, per_user={"ndcg@20": np.array(values)},
    )  # fmt: skip
    return Entry(cell.key, cell.to_dict(), record)


def archived(path, *entries):
    return archive.read(archive.write(path, entries))


def test_a_run_comes_back_under_the_key_of_its_cell(tmp_path):
    one = entry()
    found = archived(tmp_path / "study.parquet", one)
    assert list(found) == [one.key]
    back = found[one.key].record
    assert found[one.key].cell == one.cell
    assert back.spec == one.record.spec
    assert back.final == {"ndcg@20": 0.412345}
    assert back.epochs == [{"epoch": 2, "ndcg@20": 0.41234, "tnr": 0.9}], "only evaluated epochs, and what pages show"
    assert (back.per_user["ndcg@20"] == [0.25, 0.5, 0.0]).all()


def test_users_keep_the_mean_over_the_seeds_of_their_row_and_search_trials_keep_none(tmp_path):
    runs = [entry(0, (0.2, 0.0)), entry(1, (0.4, 0.0)), entry(0, view="blind")]
    found = archived(tmp_path / "study.parquet", *runs)
    for one in runs[:2]:
        assert found[one.key].record.per_user["ndcg@20"] == pytest.approx([0.3, 0.0], abs=1 / archive.STEPS)
    trial = found[runs[2].key].record
    assert (dict(trial.per_user), dict(trial.final)) == ({}, {})
    assert trial.epochs == [{"epoch": 2, "ndcg@20": 0.41234}]


def test_rows_that_are_paired_by_seed_keep_the_seeds_they_share_apart(tmp_path):
    long = [entry(seed, (0.1 * seed,)) for seed in range(4)]
    short = [entry(seed, (0.5,), dataset="ml-1m") for seed in range(2)]
    found = archived(tmp_path / "reproduction" / "study.parquet", *long, *short)
    means = [found[one.key].record.per_user["ndcg@20"][0] for one in long]
    assert means == pytest.approx([0.05, 0.05, 0.25, 0.25], abs=1 / archive.STEPS)


def test_rounding_leaves_the_mean_over_users_exact(tmp_path):
    values = np.random.default_rng(0).random(1000)
    one = entry(values=values)
    back = archived(tmp_path / "study.parquet", one)[one.key].record.per_user["ndcg@20"]
    assert abs(back.mean() - values.mean()) < 1e-6
    assert np.abs(back - values).max() <= 1.01 / archive.STEPS


def test_an_archive_can_be_extended(tmp_path):
    path = tmp_path / "study.parquet"
    first = archived(path, entry(0, (0.2,)))
    found = archived(path, *first.values(), entry(1, (0.4,)))
    assert [one.record.per_user["ndcg@20"][0] for one in found.values()] == pytest.approx([0.3, 0.3], abs=1e-3)


def test_no_run_of_the_studies_beyond_the_paper_is_archived_twice():
    paths = sorted((RESULTS / "beyond").glob("*.parquet"))
    counts = Counter(key for path in paths for key in archive.read(path))
    assert [key for key, n in counts.items() if n > 1] == []


def test_what_studies_share_is_not_archived_again(tmp_path, monkeypatch):
    shared, own = entry(model="ease", sampler=""), entry(1)
    archive.write(tmp_path / "ml-100k-baselines.parquet", [shared])
    ledger = tmp_path / "ml-100k-mf.jsonl"
    ledger.write_text("".join(json.dumps(one.to_dict()) + "\n" for one in (shared, own)))
    path = tmp_path / "ml-100k-mf.parquet"
    monkeypatch.setattr("sys.argv", ["archive", str(ledger), str(path)])
    archive.main()
    assert list(archive.read(path)) == [own.key]
    assert archive.read(path, archive.shared_of(path)).keys() == {shared.key, own.key}
