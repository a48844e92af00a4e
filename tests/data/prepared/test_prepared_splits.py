"""Splits of prepared data: those in memory to the bit, stored once, mapped."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import bayesneg as bn
from bayesneg.data import blocks
from bayesneg.data.prepared import splitting
from bayesneg.data.splits import RULES

AMOUNTS = [{}, {"validation": 0.1}, {"test": 0.37, "validation": 0.25, "seed": 3}]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same data in memory and prepared; few distinct times, negative and fractional, so that ties abound."""
    folder = tmp_path_factory.mktemp("prepared")
    rng = np.random.default_rng(0)
    times = np.array([-3.5, -0.0, 0.0, 1e-300, 2.0, 7e12])
    rows = {"user": rng.integers(0, 40, 900), "item": rng.integers(0, 50, 900), "time": rng.choice(times, 900)}
    pl.DataFrame(rows).write_parquet(folder / "rows.parquet")
    return bn.load(folder / "rows.parquet"), bn.prepare(folder / "rows.parquet", folder / "out")


@pytest.fixture
def small_blocks(monkeypatch):
    for function in (blocks.row_blocks, blocks.user_blocks):
        monkeypatch.setattr(function, "__defaults__", (64,))


def fresh_fingerprint(part: bn.Interactions) -> str:
    return part.user_range(0, part.n_users).fingerprint


@pytest.mark.parametrize("amounts", AMOUNTS, ids=str)
@pytest.mark.parametrize("by", RULES)
def test_the_parts_are_those_in_memory(both, small_blocks, by, amounts):
    memory, stored = (bn.split(data, by=by, **amounts) for data in both)
    assert (stored.how, stored.fingerprint) == (memory.how, memory.fingerprint)
    for name in ("train", "test", "validation"):
        one, other = getattr(memory, name), getattr(stored, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert fresh_fingerprint(one) == fresh_fingerprint(other) == other.fingerprint
            assert one.times.tolist() == other.times.tolist()
            assert other.user_ids is stored.train.user_ids


def test_integer_times_split_alike(tmp_path):
    rng = np.random.default_rng(1)
    rows = {"user": rng.integers(0, 9, 200), "item": rng.integers(0, 30, 200), "time": rng.integers(-4, 4, 200)}
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    data = bn.prepare(tmp_path / "rows.parquet", tmp_path / "out")
    for test in (0.01, 0.5, 0.99):
        memory = bn.split(bn.load(tmp_path / "rows.parquet"), by="time", test=test)
        assert bn.split(data, by="time", test=test).fingerprint == memory.fingerprint


def test_both_zeros_are_one_time(tmp_path):
    rng = np.random.default_rng(1)
    times = rng.choice([-1.0, -0.0, 0.0, 1.0], 300)
    rows = {"user": rng.integers(0, 9, 300), "item": rng.permutation(300), "time": times}
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    parts = [
        bn.split(data, by="time", test=0.5)
        for data in (bn.load(tmp_path / "rows.parquet"), bn.prepare(tmp_path / "rows.parquet", tmp_path / "out"))
    ]
    assert set(parts[0].test.times.tolist()) == {0.0, 1.0}
    assert parts[0].fingerprint == parts[1].fingerprint


def test_a_split_is_made_once_and_then_only_mapped(both, monkeypatch):
    _, data = both
    made = bn.split(data, by="user", test=0.3)
    monkeypatch.setattr(splitting, "_write", lambda *_: pytest.fail("made again"))
    monkeypatch.setattr("bayesneg.data.splits.user_blocks", lambda *_: pytest.fail("rows were read"))
    again = bn.split(bn.load(data.prepared), by="user", test=0.3)
    assert again.fingerprint == made.fingerprint
    assert again.origin == {**data.origin, "test_share": 0.3, "validation": 0.0, "split_by": "user", "split_seed": 0}
    with pytest.raises(pytest.fail.Exception, match="made again"):
        bn.split(data, by="user", test=0.300001)


def test_a_killed_split_is_made_anew(both):
    memory, data = both
    left = data.prepared / "splits" / "last-test-2.0.partial"
    (left / "test").mkdir(parents=True)
    assert bn.split(data, by="last", test=2).fingerprint == bn.split(memory, by="last", test=2).fingerprint
    assert not left.exists()


@pytest.mark.parametrize("how", [{"by": "../x"}, {"test": 1e-9}, {"test": 2}, {"test": "a"}, {"seed": -1}], ids=str)
def test_mistakes_are_those_in_memory_and_leave_nothing(both, how):
    memory, data = both
    said = []
    before = sorted((data.prepared).rglob("*"))
    for one in (memory, data):
        with pytest.raises(bn.BayesnegError) as raised:
            bn.split(one, **how)
        said.append(str(raised.value).replace(f" in {one.name} ", " "))
    assert said[0] == said[1]
    assert sorted(path for path in data.prepared.rglob("*") if path.name != ".lock") == [
        path for path in before if path.name != ".lock"
    ]


def test_times_that_are_missing_are_named(tmp_path):
    pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2]}).write_parquet(tmp_path / "rows.parquet")
    data = bn.prepare(tmp_path / "rows.parquet", tmp_path / "out")
    with pytest.raises(bn.BayesnegError, match="by='last' needs a time for every interaction, but 4 of 4"):
        bn.split(data, by="last")


def test_a_split_of_other_data_is_refused(both, tmp_path):
    _, data = both
    bn.split(data, by="user", test=0.4)
    pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2]}).write_parquet(tmp_path / "rows.parquet")
    other = bn.prepare(tmp_path / "rows.parquet", tmp_path / "out")
    (tmp_path / "out" / "splits").symlink_to(data.prepared / "splits")
    with pytest.raises(bn.BayesnegError, match="this split is of other data"):
        bn.split(other, by="user", test=0.4)


def test_a_model_trains_on_it_as_in_memory(both):
    runs = [
        bn.fit(bn.MF(dim=4), bn.split(data, validation=0.2), bn.RNS(), epochs=2, progress=False, select="best")
        for data in both
    ]
    assert runs[0].record.final == runs[1].record.final
