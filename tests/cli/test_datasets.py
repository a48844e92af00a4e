"""``bayesneg data``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bayesneg.progress import Log, tell


def test_list_names_every_built_in_dataset_and_where_it_lies(bayesneg, place):
    (place / "ml-100k").mkdir()
    found = bayesneg("data", "list", "--data-dir", place, "--json").json["datasets"]
    folders = {line["name"]: line["folder"] for line in found}
    assert folders["ml-100k"] == str(place / "ml-100k")
    assert folders["ml-1m"] is None
    said = bayesneg("data", "list", "--data-dir", place)
    assert said.err == ""
    assert all(name in said.out for name in folders)


def test_describe_counts(bayesneg, place):
    (place / "data.csv").write_text("user,item,rating\na,x,5\na,x,4\na,y,5\nb,x,1\nb,z,5\n")
    found = bayesneg("data", "describe", "data.csv", "--min-rating", 2, "--json").json
    assert (found["interactions"], found["users"], found["items"]) == (3, 2, 3)
    assert (found["duplicates_collapsed"], found["below_min_rating"]) == (1, 1)
    assert found["density"] == 0.5
    assert found["interactions_per_user"] == {"least": 1.0, "median": 1.5, "most": 2.0}


def test_describe_shows_the_same_to_a_person(bayesneg, place):
    (place / "data.csv").write_text("customer,sku\na,x\na,y\nb,x\n")
    done = bayesneg("data", "describe", "data.csv", "--user-column", "customer", "--item-column", "sku")
    assert (done.code, done.err) == (0, "")
    assert "duplicates collapsed" in done.out
    assert "median 2" in done.out


def test_get_refuses_what_it_cannot_fetch(bayesneg, place):
    assert "'netflix'" in bayesneg("data", "get", "netflix", "--data-dir", place).error
    assert list(place.iterdir()) == []


def write_parts(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for part in range(3):
        rows = zip(rng.integers(0, 20, 80), rng.integers(0, 15, 80), rng.integers(0, 99, 80), strict=True)
        text = "\n".join(f"{user},{item},{time}" for user, item, time in rows)
        (folder / f"part-{part}.csv").write_text(f"customer,sku,when\n{text}\n")


COLUMNS = ("--user-column", "customer", "--item-column", "sku", "--time-column", "when")


def test_prepared_data_stands_for_its_sources_in_every_command(bayesneg, place):
    write_parts(place)
    lines = [(place / f"part-{part}.csv").read_text().splitlines()[1:] for part in range(3)]
    (place / "whole.csv").write_text("\n".join(["customer,sku,when", *(line for part in lines for line in part)]))
    found = bayesneg("data", "prepare", "part-*.csv", "--out", "out", *COLUMNS, "--chunk-rows", 50, "--json").json
    of_file = bayesneg("data", "describe", "whole.csv", *COLUMNS, "--json").json
    assert {key: of_file[key] for key in found if key != "folder"} == {k: v for k, v in found.items() if k != "folder"}
    assert {**bayesneg("data", "describe", "out", "--json").json, "name": ""} == {**of_file, "name": ""}
    how = ("--split-by", "last", "--sampler", "rns", "--epochs", 2, "-q", "--json")
    trained = [bayesneg("train", *data, *how).json["final"] for data in (["out"], ["whole.csv", *COLUMNS])]
    assert trained[0] == trained[1]


def test_a_stored_split_is_the_one_that_train_finds(bayesneg, place):
    write_parts(place)
    options = ("part-0.csv", "part-1.csv", "part-2.csv", "--out", "out", *COLUMNS)
    done = bayesneg("data", "prepare", *options, "--split-by", "last")
    assert (done.code, "by=last test=1 validation=0.1" in done.out) == (0, True)
    assert done.err == "splitting …\nnext: bayesneg train out\n"
    folders = list((place / "out" / "splits").glob("*/split.json"))
    assert bayesneg("train", "out", "--split-by", "last", "--sampler", "rns", "--epochs", 1, "-q").code == 0
    assert list((place / "out" / "splits").glob("*/split.json")) == folders
    counts = bayesneg("data", "prepare", *options, "--split-seed", 3, "--validation", 0, "--json").json["parts"]
    assert set(counts) == {"train", "test"}


def test_mistakes_in_preparing_are_sentences(bayesneg, place):
    write_parts(place)
    assert "--out: " in bayesneg("data", "prepare", "part-0.csv", "--out", ".", *COLUMNS).error
    assert "no file matches" in bayesneg("data", "prepare", "*.parquet", "--out", "out").error
    assert "--chunk-rows must be" in bayesneg("data", "prepare", "part-0.csv", "--out", "o", "--chunk-rows", 0).error
    bayesneg("data", "prepare", "part-0.csv", "--out", "out", *COLUMNS)
    assert "other files" in bayesneg("data", "prepare", "part-1.csv", "--out", "out", *COLUMNS).error


def test_the_progress_of_preparing_is_a_line_now_and_then(bayesneg, place, monkeypatch):
    write_parts(place)
    monkeypatch.setattr(Log, "update", lambda log, stage, done, _: tell(f"{stage} {done} {log.totals[stage]}"))
    said = bayesneg("data", "prepare", "part-0.csv", "--out", "out", *COLUMNS, "--chunk-rows", 50).err.splitlines()
    assert said[:2] == ["reading 50 81", "reading 80 81"]  # the number of lines is estimated
    assert said[-2].startswith("sorting ")
    assert bayesneg("data", "prepare", "part-0.csv", "--out", "quiet", *COLUMNS, "-q").err.count("\n") == 1


def test_ctrl_c_says_that_the_same_command_goes_on(bayesneg, place, monkeypatch):
    write_parts(place)

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayesneg.data.prepared.preparing.merge_runs", stopped)
    command = ("data", "prepare", place / "part-0.csv", "--out", place / "out", *COLUMNS)
    stopped_early = bayesneg(*command)
    assert stopped_early.code == 130
    assert "keeps what was done, and the same command goes on" in stopped_early.err
    monkeypatch.undo()
    assert bayesneg(*command).code == 0


def test_prepared_data_is_verified(bayesneg, ratings, place):
    assert bayesneg("data", "prepare", ratings, "--out", "prepared", "-q").code == 0
    assert bayesneg("data", "verify", "prepared").out.endswith("files are as they were written\n")
    assert bayesneg("data", "verify", "prepared", "--json").json["files"] >= 4
    assert "holds no prepared data" in bayesneg("data", "verify", place).error
    content = bytearray((place / "prepared" / "indices.npy").read_bytes())
    content[-1] ^= 1
    (place / "prepared" / "indices.npy").write_bytes(content)
    assert "indices.npy: the file is damaged" in bayesneg("data", "verify", "prepared").error
