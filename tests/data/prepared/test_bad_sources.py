"""Mistakes in what is prepared, and into which folder: a sentence each."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import bayesneg as bn
from bayesneg.data.prepared.folder import verify
from bayesneg.integrity.digests import sealed

GOOD = pl.DataFrame({"user": [1, 2, 2], "item": [5, 5, 6], "rating": [1.0, 4.0, 5.0]})


@pytest.fixture
def parts(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    GOOD.write_parquet(folder / "a.parquet")
    return folder


def refused(sources, out, match, **how):
    with pytest.raises(bn.BayesnegError, match=match):
        bn.prepare(sources, out, **how)
    assert not (out / "prepared.json").exists()


def test_a_part_that_is_missing_is_named(parts, tmp_path):
    refused([parts / "a.parquet", parts / "b.parquet"], tmp_path / "out", r"b\.parquet: no such file or folder")
    refused(f"{parts}/*.csv", tmp_path / "out", r"\*\.csv: no file matches")
    refused([], tmp_path / "out", "sources must name at least one")


def test_an_empty_folder(tmp_path):
    (tmp_path / "parts").mkdir()
    refused(tmp_path / "parts", tmp_path / "out", "the folder holds no files")


def test_a_part_of_another_schema_is_named_with_the_difference(parts, tmp_path):
    GOOD.cast({"user": pl.String}).write_parquet(parts / "b.parquet")
    refused(parts, tmp_path / "out", r"b\.parquet: column 'user' holds String where .*a\.parquet has Int64")
    GOOD.rename({"item": "thing"}).write_parquet(parts / "b.parquet")
    refused(parts, tmp_path / "out", r"b\.parquet: it has other columns than .*a\.parquet: .*no column 'item'")
    (parts / "b.parquet").write_bytes(b"PAR1 and no more")
    refused(parts, tmp_path / "out", r"b\.parquet: this is not a Parquet file, or it is cut off")


def test_a_table_with_other_columns_is_named_with_the_difference(tmp_path):
    (tmp_path / "a.csv").write_text("user,item\n1,2\n")
    (tmp_path / "b.csv").write_text("user,item,time\n1,2,3\n")
    refused(f"{tmp_path}/*.csv", tmp_path / "out", r"b\.csv: its columns are 'user', 'item', 'time' where .*a\.csv")
    (tmp_path / "b.csv").write_text("")
    refused(f"{tmp_path}/*.csv", tmp_path / "out", r"b\.csv: the file is empty")


def test_files_of_several_formats_and_repeated_files(parts, tmp_path):
    (parts / "b.csv").write_text("user,item\n1,2\n")
    refused(parts, tmp_path / "out", r"b\.csv: this is a file of format table where .*a\.parquet is parquet")
    refused([parts / "a.parquet", f"{parts}/a*"], tmp_path / "out", "is given twice")
    (tmp_path / "train.txt").write_text("0 1 2 7\n1 3\n2 4 5 6 8\n")
    refused(tmp_path / "train.txt", tmp_path / "out", "adjacency lists are not prepared")


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ("1,2,3\n,5,3", r"rows\.csv line 42: user is empty"),
        ("1,2", r"rows\.csv line 41: too few fields"),
        ("1,2,soon", r"rows\.csv line 41: time 'soon' is neither"),
    ],
)
def test_a_faulty_line_is_named_by_its_number_in_the_file(tmp_path, rows, match):
    good = "\n".join(f"{n},{n},{n}" for n in range(39))
    (tmp_path / "rows.csv").write_text(f"user,item,time\n{good}\n{rows}")
    refused(tmp_path / "rows.csv", tmp_path / "out", match, chunk_rows=7)


def test_a_faulty_row_of_parquet_is_named_by_its_number_in_the_file(tmp_path):
    users = [*range(20), None, 3]
    pl.DataFrame({"user": users, "item": range(22)}).write_parquet(tmp_path / "rows.parquet")
    refused(tmp_path / "rows.parquet", tmp_path / "out", r"rows\.parquet row 21: user is empty", chunk_rows=6)


def test_nothing_is_left(parts, tmp_path):
    refused(parts, tmp_path / "out", "all 3 ratings are below min_rating", min_rating=6)
    refused(parts, tmp_path / "out2", "no column known as the rating", min_rating=6, rating_column="")
    refused(parts, tmp_path / "out2", "separator=',' has no effect on Parquet files", separator=",")
    refused(parts, tmp_path / "out2", "chunk_rows must be a whole number of at least 1, got 0", chunk_rows=0)


def test_a_folder_that_holds_something_else_is_left_alone(parts, tmp_path):
    (tmp_path / "notes.txt").touch()
    refused(parts, tmp_path, r"holds other files, such as notes\.txt; name a new or empty folder")
    refused(parts, tmp_path / "notes.txt", r"out must be a folder, but .*notes\.txt is a file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "parts"]


def test_a_folder_of_other_sources_or_options_is_refused(parts, tmp_path):
    out = tmp_path / "out"
    bn.prepare(parts, out)
    assert bn.prepare(parts, out).fingerprint == bn.load(out).fingerprint  # the same call once more
    with pytest.raises(bn.BayesnegError, match="was prepared with the options none, not min_rating=2"):
        bn.prepare(parts, out, min_rating=2)
    GOOD.write_parquet(parts / "b.parquet")
    with pytest.raises(bn.BayesnegError, match=r"from other files \(.*b\.parquet differs\)"):
        bn.prepare(parts, out)
    GOOD.head(2).write_parquet(parts / "a.parquet")
    (parts / "b.parquet").unlink()
    with pytest.raises(bn.BayesnegError, match=r"a\.parquet has changed since"):
        bn.prepare(parts, out)


def test_sources_that_change_while_they_are_read_are_refused(parts, tmp_path):
    def change(stage, done, total):
        GOOD.head(2).write_parquet(parts / "a.parquet")

    refused(parts, tmp_path / "out", r"a\.parquet has changed since", progress=change)


def test_a_prepared_folder_is_no_source(parts, tmp_path):
    bn.prepare(parts, tmp_path / "out")
    refused(tmp_path / "out", tmp_path / "again", "this folder is prepared already; bn.load opens it")


def test_options_of_reading_have_no_effect_on_a_prepared_folder(parts, tmp_path):
    bn.prepare(parts, tmp_path / "out")
    with pytest.raises(bn.BayesnegError, match="min_rating=2 has no effect on a prepared folder"):
        bn.load(tmp_path / "out", min_rating=2)


def test_a_damaged_folder_is_named(parts, tmp_path):
    out = tmp_path / "out"
    bn.prepare(parts, out)
    facts = json.loads((out / "prepared.json").read_text())
    assert facts.pop("sha256")
    rows = (out / "indices.npy").read_bytes()
    (out / "indices.npy").write_bytes(rows[:-2])
    with pytest.raises(bn.BayesnegError, match=r"indices\.npy: the file is cut off or damaged"):
        bn.load(out)
    (out / "indices.npy").unlink()
    with pytest.raises(bn.BayesnegError, match=r"indices\.npy: no such file"):
        bn.load(out)
    (out / "indices.npy").write_bytes(rows)
    (out / "prepared.json").write_text(json.dumps(sealed({**facts, "interactions": 9})))
    with pytest.raises(bn.BayesnegError, match="do not have the lengths"):
        bn.load(out)
    (out / "prepared.json").write_text(json.dumps({**facts, "version": 0}))
    with pytest.raises(bn.BayesnegError, match="not bayesneg prepared data of version 1"):
        bn.load(out)
    (out / "prepared.json").write_text("{")
    with pytest.raises(bn.BayesnegError, match="this is not JSON"):
        bn.load(out)


def test_a_flipped_bit_of_prepared_data_is_refused(parts, tmp_path):
    out = tmp_path / "out"
    mark = bn.split(bn.prepare(parts, out), test=0.4).fingerprint
    paths = [path for path in out.rglob("*") if path.suffix in (".npy", ".parquet", ".json")]
    assert len(paths) >= 9
    for path in paths:
        whole = path.read_bytes()
        for place in range(1, 8 * len(whole), len(whole)):
            content = bytearray(whole)
            content[place // 8] ^= 1 << place % 8
            path.write_bytes(content)
            with pytest.raises(bn.BayesnegError, match=str(out)):
                bn.split(bn.load(out), test=0.4)
        path.write_bytes(whole)
    assert bn.split(bn.load(out), test=0.4).fingerprint == mark


def test_of_a_large_file_a_sample_is_compared_and_all_of_it_by_verify(parts, tmp_path, monkeypatch):
    for name, value in {"LARGE": 100, "BLOCK": 8, "N_BLOCKS": 2}.items():  # a sample is the first and the last 8 bytes
        monkeypatch.setattr(f"bayesneg.integrity.digests.{name}", value)
    out = tmp_path / "out"
    bn.split(bn.prepare(parts, out), test=0.4)
    n_files = verify(out)
    assert n_files >= 9
    for path in (out / "indices.npy", next(out.glob("splits/*/train/indptr.npy"))):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(bn.BayesnegError, match=f"{path}: the file is damaged"):
            bn.split(bn.load(out), test=0.4)
        path.write_bytes(whole[:120] + b"\t" + whole[121:])  # for a space of the header
        assert len(bn.split(bn.load(out), test=0.4).train), "what the docs say is not noticed"
        with pytest.raises(bn.BayesnegError, match=f"{path}: the file is damaged"):
            verify(out)
        path.write_bytes(whole)
    assert verify(out) == n_files


def test_an_item_number_that_no_item_has_does_not_reach_compiled_code(parts, tmp_path, monkeypatch):
    """In a file whose digest is not compared, since it is large and has none of a sample."""
    out = tmp_path / "out"
    n_items = bn.prepare(parts, out).n_items
    monkeypatch.setattr("bayesneg.integrity.digests.LARGE", 0)
    rows = np.load(out / "indices.npy")
    rows[1] = n_items
    np.save(out / "indices.npy", rows)
    with pytest.raises(bn.BayesnegError, match=f"items must be numbers from 0 to {n_items - 1}, got {n_items}"):
        _ = bn.load(out).observed


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("way", ["glob", "list", "folder"])
def test_a_file_that_is_removed_while_others_are_read_is_named(tmp_path, way, ending):
    folder = tmp_path / "many"
    folder.mkdir()
    for name in "abc":
        path = folder / f"{name}.{ending}"
        GOOD.write_parquet(path) if ending == "parquet" else GOOD.write_csv(path)
    sources = {"glob": f"{folder}/*", "list": sorted(folder.iterdir()), "folder": folder}[way]
    for number, gone in enumerate("cba"):  # not read yet, half read, read: none may be missing in the end
        kept = (folder / f"{gone}.{ending}").read_bytes()

        def remove(stage, done, total, gone=gone):
            (folder / f"{gone}.{ending}").unlink(missing_ok=True)

        out = tmp_path / f"out-{number}"
        refused(sources, out, rf"{gone}\.{ending}: the file was removed while it was prepared", progress=remove)
        (folder / f"{gone}.{ending}").write_bytes(kept)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_file_that_is_removed_between_two_calls_is_named(tmp_path, ending):
    folder, out = tmp_path / "many", tmp_path / "out"
    folder.mkdir()
    for name in "ab":
        path = folder / f"{name}.{ending}"
        GOOD.write_parquet(path) if ending == "parquet" else GOOD.write_csv(path)

    def interrupt(stage, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bn.prepare(folder, out, progress=interrupt)
    with pytest.raises(bn.BayesnegError, match="preparing this folder was interrupted; the same bayesneg data prepare"):
        bn.load(out)
    (folder / f"b.{ending}").unlink()
    refused(folder, out, rf"was prepared from other files \(.*b\.{ending} differs\)")


def test_a_table_whose_column_has_another_type_is_named_with_the_line(tmp_path):
    (tmp_path / "a.csv").write_text("user,item,time\n1,2,3\n")
    (tmp_path / "b.csv").write_text("user,item,time\n1,2,yesterday\n")
    refused(f"{tmp_path}/*.csv", tmp_path / "out", r"b\.csv line 2: time 'yesterday' is neither")
    (tmp_path / "b.csv").write_text("item,user,time\n1,2,3\n")
    refused(
        f"{tmp_path}/*.csv", tmp_path / "out2", r"b\.csv: its columns are 'item', 'user', 'time' where .*a\.csv has"
    )


@pytest.mark.parametrize("text", [False, True], ids=["integers", "text"])
def test_each_file_of_a_prepared_folder_is_named_where_it_is_missing_or_cut_off(tmp_path, text):
    rows = GOOD.with_columns(time=pl.Series([1, 2, 3]), plan=pl.lit("pro"))
    (rows.cast({"user": pl.String, "item": pl.String}) if text else rows).write_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out"
    data = bn.prepare(tmp_path / "rows.parquet", out, user_columns=["plan"])
    bn.split(data, test=0.4)
    users = data.user_ids.tolist()  # before the files under its arrays are cut off
    ids = ("user_ids.parquet", "item_ids.parquet") if text else ("user_ids.npy", "item_ids.npy")
    for name in ("indptr.npy", "indices.npy", "times.npy", *ids, "user_columns.parquet"):
        whole = (out / name).read_bytes()
        for content in (whole[:-3], whole[:40], b""):
            (out / name).write_bytes(content)
            with pytest.raises(bn.BayesnegError, match=rf"{name}: the file is cut off or damaged .*; prepare the data"):
                _ = bn.load(out).user_columns["plan"]
        (out / name).unlink()
        if name.endswith("_ids.npy"):  # the same numbers are in a table
            assert bn.load(out).user_ids.tolist() == users
        else:
            with pytest.raises(bn.BayesnegError, match=rf"{name}: no such file, .*; prepare the data again"):
                _ = bn.load(out).user_columns["plan"]
        (out / name).write_bytes(whole)
    (split,) = (out / "splits").glob("*/split.json")
    for name in ("train/indices.npy", "test/indptr.npy"):
        whole = (split.parent / name).read_bytes()
        (split.parent / name).write_bytes(whole[:-1])
        with pytest.raises(bn.BayesnegError, match=rf"{name}: the file is cut off .*; delete {split.parent}, which is"):
            bn.split(bn.load(out), test=0.4)
        (split.parent / name).unlink()
        with pytest.raises(bn.BayesnegError, match=rf"{name}: no such file, .*; delete {split.parent}, which is made"):
            bn.split(bn.load(out), test=0.4)
        (split.parent / name).write_bytes(whole)
    assert bn.split(bn.load(out), test=0.4).fingerprint
    (out / "prepared.json").unlink()
    with pytest.raises(bn.BayesnegError, match=r"prepared\.json is missing; prepare the data again, into a new folder"):
        bn.load(out)
