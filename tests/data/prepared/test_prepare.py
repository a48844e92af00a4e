"""Prepared data is the data of ``bn.load``: the same numbers, the same fingerprint, whatever the chunks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import bayesneg as bn
from bayesneg.data.blocks import released, row_blocks, user_blocks
from bayesneg.data.numbering import numbered
from bayesneg.data.prepared import growing_ids

N = 400


def table(seed: int = 0, n: int = N) -> pl.DataFrame:
    """Rows with repeated pairs, in no order."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "user": rng.integers(0, 30, n) * 1_000_003,
            "item": rng.integers(0, 25, n),
            "rating": rng.integers(1, 6, n).astype(float),
            "time": rng.integers(0, 50, n),
            "plan": rng.choice(["pro", "free", None], n).tolist(),
        }
    )


def assert_same(one: bn.Interactions, other: bn.Interactions) -> None:
    for name in ("indptr", "indices", "times", "user_ids", "item_ids"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        assert a is None or (a.dtype == b.dtype and a.tolist() == b.tolist()), name
    assert (one.n_duplicates, one.n_below_min_rating) == (other.n_duplicates, other.n_below_min_rating)
    assert {name: values.tolist() for name, values in one.user_columns.items()} == {
        name: values.tolist() for name, values in other.user_columns.items()
    }
    assert one.fingerprint == other.fingerprint
    assert computed_fingerprint(one) == computed_fingerprint(other) == one.fingerprint


def computed_fingerprint(data: bn.Interactions) -> str:
    return data.user_range(0, data.n_users).fingerprint


def assert_prepared_as_loaded(path: Path, out: Path, *, chunk_rows: int = 37, **how) -> bn.Interactions:
    expected = bn.load(path, **how)
    assert_same(expected, bn.prepare(path, out, chunk_rows=chunk_rows, **how))
    assert_same(expected, bn.load(out))
    return expected


@pytest.mark.parametrize("how", [{}, {"min_rating": 3}, {"user_columns": ["plan"]}, {"time_column": ""}])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_prepared_file_is_the_loaded_file(tmp_path, ending, how):
    path = tmp_path / f"rows.{ending}"
    table().write_parquet(path) if ending == "parquet" else table().write_csv(path)
    expected = assert_prepared_as_loaded(path, tmp_path / "out", **how)
    assert expected.n_duplicates > 0


@pytest.mark.parametrize("chunk_rows", [1, 10**6])
def test_the_size_of_a_chunk_does_not_matter(tmp_path, chunk_rows):
    table(n=60).write_csv(tmp_path / "rows.csv")
    assert_prepared_as_loaded(tmp_path / "rows.csv", tmp_path / "out", chunk_rows=chunk_rows)


@pytest.mark.parametrize(
    "last",
    ["007,x,5", "7,x,5", "seven,9,5", "6,9,5.25", "6,9,1970-01-03", " 6,8,5", "\n\n6,9,5\n\n\n", "6,9,5\n\n\n\n"],
)
def test_one_late_row_decides_the_type_of_its_column(tmp_path, last):
    path = tmp_path / "rows.csv"
    rows = table(n=50).select("user", "item", "time")
    path.write_text(rows.write_csv() + last)
    assert_prepared_as_loaded(path, tmp_path / "out", chunk_rows=8)


def test_blank_lines_at_the_end_need_no_second_look(tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text(table(n=50).select("user", "item").write_csv() + "\n\n\n")
    monkeypatch.setattr("bayesneg.data.readers.tables.raise_first_fault", lambda *_, **__: pytest.fail("a slow pass"))
    assert_prepared_as_loaded(tmp_path / "rows.csv", tmp_path / "out", chunk_rows=20)


def test_a_text_that_is_dropped_for_its_rating_still_makes_its_column_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(table(n=50).select("user", "item", "rating").write_csv() + "x,y,1")
    expected = assert_prepared_as_loaded(path, tmp_path / "out", chunk_rows=8, min_rating=2)
    assert isinstance(expected.user_ids[0], str)


@pytest.mark.parametrize("separator", ["::", "\t", ";"])
def test_other_separators_without_a_header(tmp_path, separator):
    path = tmp_path / "rows.dat"
    rows = table(n=90).select("user", "item", "rating", "time").rows()
    path.write_text("\n".join(separator.join(map(str, row)) for row in rows))
    assert_prepared_as_loaded(path, tmp_path / "out")


def test_unused_columns_may_have_any_encoding(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{n % 7},{n % 5},title {n}" for n in range(40)]
    lines[30] += " caf\xe9"
    path.write_bytes("\n".join(["user,item,title", *lines]).encode("latin-1"))
    assert_prepared_as_loaded(path, tmp_path / "out", chunk_rows=6)


@pytest.mark.parametrize("late", [8.0, 8.5, float(2**63)])
def test_whole_floats_are_integers_unless_one_is_not(tmp_path, late):
    path = tmp_path / "rows.parquet"
    table(n=30).with_columns(pl.Series("user", [*map(float, range(29)), late])).write_parquet(path)
    assert_prepared_as_loaded(path, tmp_path / "out", chunk_rows=7)


def test_large_unsigned_integers_and_dates(tmp_path):
    path = tmp_path / "rows.parquet"
    rows = table(n=30).with_columns(
        pl.Series("user", [2**64 - 1, *range(29)], dtype=pl.UInt64), pl.from_epoch("time", time_unit="s")
    )
    rows.write_parquet(path)
    assert_prepared_as_loaded(path, tmp_path / "out", chunk_rows=7)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("way", ["folder", "glob", "list"])
def test_many_files_are_one_table(tmp_path, ending, way):
    parts = tmp_path / "parts"
    parts.mkdir()
    whole = table()
    for number, start in enumerate(range(0, N, 90)):
        part, path = whole[start : start + 90], parts / f"part-{number}.{ending}"
        part.write_parquet(path) if ending == "parquet" else part.write_csv(path)
    (parts / "_SUCCESS").touch()
    whole.write_parquet(tmp_path / "whole.parquet")
    sources = {"folder": parts, "glob": f"{parts}/part-*", "list": sorted(parts.glob("part-*"))}[way]
    prepared = bn.prepare(sources, tmp_path / "out", chunk_rows=50, user_columns=["plan"])
    assert_same(bn.load(tmp_path / "whole.parquet", user_columns=["plan"]), prepared)


def test_a_file_with_a_header_alone_adds_nothing(tmp_path):
    table(n=20).write_csv(tmp_path / "a.csv")
    table(n=20).head(0).write_csv(tmp_path / "b.csv")
    prepared = bn.prepare([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "out", header=True)
    assert_same(bn.load(tmp_path / "a.csv"), prepared)


def mapping_of(array: np.ndarray) -> np.ndarray | None:
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array


def test_loading_maps_every_array(tmp_path):
    table().write_parquet(tmp_path / "rows.parquet")
    bn.prepare(tmp_path / "rows.parquet", tmp_path / "out")
    data = bn.load(tmp_path / "out")
    part = data.user_range(3, 9)
    for array in (data.indptr, data.indices, data.times, data.user_ids, data.item_ids, part.indices, part.times):
        assert mapping_of(array) is not None
        assert type(array) is np.ndarray


def test_loading_neither_reads_rows_nor_columns(tmp_path, monkeypatch):
    table().write_parquet(tmp_path / "rows.parquet")
    expected = bn.prepare(tmp_path / "rows.parquet", tmp_path / "out", user_columns=["plan"]).fingerprint
    monkeypatch.setattr(pl, "read_parquet", lambda *_, **__: pytest.fail("a table was read"))
    monkeypatch.setattr("bayesneg.data.interactions.row_blocks", lambda _: pytest.fail("rows were read"))
    data = bn.load(tmp_path / "out")
    assert (data.fingerprint, list(data.user_columns)) == (expected, ["plan"])


def test_ranges_of_users_are_views_that_together_are_the_data(tmp_path):
    table().write_parquet(tmp_path / "rows.parquet")
    data = bn.prepare(tmp_path / "rows.parquet", tmp_path / "out", user_columns=["plan"])
    bounds = [0, 4, 4, 17, data.n_users]
    parts = [data.user_range(*bounds[place : place + 2]) for place in range(4)]
    for name in ("indices", "times", "user_ids", "counts"):
        assert np.concatenate([getattr(part, name) for part in parts]).tolist() == getattr(data, name).tolist()
    assert all(np.shares_memory(part.indices, data.indices) for part in parts if len(part))
    assert parts[2].row(1).tolist() == data.row(5).tolist()
    assert parts[2].user_columns["plan"].tolist() == data.user_columns["plan"][4:17].tolist()


@pytest.mark.parametrize("bounds", [(-1, 3), (3, 2), (0, 31)])
def test_a_range_that_is_none_is_refused(tmp_path, bounds):
    data = bn.Interactions.from_pairs(list(range(30)), [0] * 30)
    with pytest.raises(bn.BayesnegError, match=r"0 <= start <= stop <= 30, got"):
        data.user_range(*bounds)


def test_blocks_cover_everything_once():
    assert [(part.start, part.stop) for part in row_blocks(5, 2)] == [(0, 2), (2, 4), (4, 5)]
    indptr = np.array([0, 0, 5, 5, 6, 9, 20])
    found = list(user_blocks(indptr, 6))
    assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])]
    assert found[-1][1] == 6
    assert all(indptr[stop] - indptr[start] <= 6 or stop == start + 1 for start, stop in found)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the memory of this process")
def test_a_pass_over_a_mapped_file_holds_a_block_of_it(tmp_path):
    n, size = 1 << 22, 1 << 18
    np.save(tmp_path / "array.npy", np.arange(n))
    array = np.asarray(np.load(tmp_path / "array.npy", mmap_mode="r"))

    def mapped_kib() -> int:
        return int(re.search(r"RssFile:\s+(\d+)", Path("/proc/self/status").read_text())[1])

    before, sums, most = mapped_kib(), [], 0
    for part in released(row_blocks(n, size), array):
        sums.append(int(array[part].sum()))
        most = max(most, mapped_kib())
    assert sum(sums) == n * (n - 1) // 2
    assert most - before < 3 * size * 8 // 1024 + 2048 < n * 8 // 1024 // 2


def test_a_private_copy_of_a_file_keeps_its_changes(tmp_path):
    np.save(tmp_path / "array.npy", np.zeros(4096))
    array = np.load(tmp_path / "array.npy", mmap_mode="c")
    array[:] = 1
    assert sum(array[part].sum() for part in released(row_blocks(4096, 512), array)) == 4096
    assert array.sum() == 4096


@pytest.mark.parametrize("codes", [lambda ids: ids.str.len_bytes().to_numpy().astype(np.int64), None])
@pytest.mark.parametrize("first", ["integers", "text"])
def test_texts_that_share_a_hash_are_told_apart(monkeypatch, codes, first):
    if codes is not None:
        monkeypatch.setattr(growing_ids, "_codes", lambda ids: ids.to_numpy() if ids.dtype == pl.Int64 else codes(ids))
    rng = np.random.default_rng(0)
    chunks = [pl.Series(rng.integers(0, 40, 50)) for _ in range(6)]
    chunks = [
        part if place < 2 and first == "integers" else part.cast(pl.String) + ("" if place < 4 else "x")
        for place, part in enumerate(chunks)
    ]
    growing = growing_ids.GrowingIds()
    found = [growing.number(part) for part in chunks]
    whole = pl.concat([part.cast(pl.String) for part in chunks])
    numbers, known = numbered(whole)
    assert np.concatenate([each for each, _ in found]).tolist() == numbers.tolist()
    assert growing.series.cast(pl.String).to_list() == known.tolist()
    again = growing_ids.GrowingIds(new for _, new in found)
    assert again.number(chunks[-1])[0].tolist() == found[-1][0].tolist()
