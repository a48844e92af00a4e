"""``bayesneg evaluate``, ``recommend`` and ``report``."""

from __future__ import annotations

import csv
import json
import shutil

import polars as pl
import pytest

import bayesneg as bn


@pytest.fixture
def damaged(finished, place):
    """A copy of a finished run, to be spoiled."""
    return shutil.copytree(finished, place / "damaged")


def test_evaluate_repeats_the_metrics_of_the_run(bayesneg, finished, place):
    found = bayesneg("evaluate", finished, "--json").json
    recorded = json.loads((finished / "metrics.json").read_text())
    assert found["mean"] == recorded["mean"]
    assert found["interval"] == recorded["interval"]


def test_evaluate_takes_any_list_lengths_and_the_validation_part(bayesneg, finished, place):
    found = bayesneg("evaluate", finished, "-k", "3, 40", "--part", "validation", "--json").json
    assert found["part"] == "validation"
    assert {key for key in found["mean"] if key.startswith("ndcg")} == {"ndcg@3", "ndcg@40"}


def test_evaluate_writes_one_row_per_user(bayesneg, finished, place):
    found = bayesneg("evaluate", finished, "--per-user", "users.csv", "--json").json
    with (place / "users.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == found["n_users"]
    assert sum(float(row["ndcg@20"]) for row in rows) / len(rows) == pytest.approx(found["mean"]["ndcg@20"])


def test_evaluate_replaces_a_file_only_by_force(bayesneg, finished, place):
    (place / "users.csv").write_text("mine")
    error = bayesneg("evaluate", finished, "--per-user", "users.csv").error
    assert "--per-user users.csv exists; name another file, or replace it with --force" in error
    assert (place / "users.csv").read_text() == "mine"
    assert bayesneg("evaluate", finished, "--per-user", "users.csv", "--force").code == 0
    assert (place / "users.csv").read_text() != "mine"
    assert "--force goes with --per-user" in bayesneg("evaluate", finished, "--force").error


def test_evaluate_writes_parquet_where_the_name_says_so(bayesneg, finished, place):
    bayesneg("evaluate", finished, "--per-user", "users.csv")
    bayesneg("evaluate", finished, "--per-user", "users.parquet")
    rows = pl.read_parquet(place / "users.parquet")
    assert rows.equals(pl.read_csv(place / "users.csv"))


def test_evaluate_shows_a_column_per_list_length(bayesneg, finished, place):
    done = bayesneg("evaluate", finished, "-k", "5,7")
    assert (done.code, done.err) == (0, "")
    assert "@5" in done.out
    assert "@7" in done.out
    assert "@20" not in done.out


def test_recommend_gives_unseen_items_best_first(bayesneg, finished, place):
    found = bayesneg("recommend", finished, "--user", "u7", "-k", 5, "--json").json
    scores = [line["score"] for line in found["items"]]
    assert scores == sorted(scores, reverse=True)
    assert len({line["item"] for line in found["items"]}) == 5
    assert {line["item"] for line in found["items"]} <= {f"i{item}" for item in range(40)}


def test_recommend_excludes_everything_known_of_a_user_unless_asked(bayesneg, finished, place):
    split = bn.load_run(finished).split
    number = split.train.user_number("u7")
    held_out = {split.train.item_ids[item] for item in split.held_out.row(number)}
    assert held_out
    everything = bayesneg("recommend", finished, "--user", "u7", "-k", 40, "--json").json
    assert not held_out & {line["item"] for line in everything["items"]}
    assert len(everything["items"]) == 40 - 12
    assert sum(everything["excluded"].values()) == 12
    asked = bayesneg("recommend", finished, "--user", "u7", "-k", 40, "--include-held-out", "--json").json
    assert held_out <= {line["item"] for line in asked["items"]}
    assert asked["excluded"] == {"training": 12 - len(held_out)}
    n = everything["excluded"]
    said = bayesneg("recommend", finished, "--user", "u7").out
    assert f"items of the user excluded: {n['training']} training, " in said
    assert f"{n['test']} test" in said


@pytest.mark.parametrize(("user", "as_text"), [(7, "7"), ("007", "007")])
def test_json_has_a_user_in_the_type_of_the_data(bayesneg, place, user, as_text):
    rows = [f"{as_text if n % 2 else 12},{n % 9}" for n in range(17)]
    (place / "data.csv").write_text("\n".join(["user,item", *rows, ""]))
    assert bayesneg("train", "data.csv", "--model", "popularity", "--select", "last", "--out", "run").code == 0
    found = bayesneg("recommend", "run", "--user", as_text, "-k", 1, "--json").json
    assert found["user"] == user


def test_recommend_says_when_fewer_items_are_left_than_wanted(bayesneg, finished, place):
    done = bayesneg("recommend", finished, "--user", "u7", "-k", 40)
    assert done.code == 0
    assert "user u7 has only" in done.err


def test_recommend_says_when_nothing_was_learned_about_a_user(bayesneg, place):
    (place / "train.csv").write_text("user,item\na,1\na,2\nb,1\nb,[rec]\n")
    (place / "test.csv").write_text("user,item\na,[rec]\nnew,1\n")
    options = ("--sampler", "bns", "--test", "test.csv", "--select", "last", "--epochs", 1, "--out", "run")
    assert bayesneg("train", "train.csv", *options).code == 0
    done = bayesneg("recommend", "run", "--user", "new", "-k", 3)
    assert "no training interactions" in done.err
    assert "[rec]" in done.out  # an id in brackets is shown, not taken for markup


def test_report_is_one_file_of_every_run_in_a_folder_each_once(bayesneg, ratings, finished):
    bayesneg(
        "compare", ratings, "--samplers", "rns", "--baselines", "none", "--seeds", 2, "--epochs", 3, "--out", "runs"
    )
    found = bayesneg("report", "runs", "runs/rns-seed0", finished, "-o", "all.html", "--json").json
    assert found == {"report": "all.html", "n_runs": 3}
    assert "BNS" in (ratings.parent / "all.html").read_text()


def test_a_report_replaces_a_page_only_by_force(bayesneg, finished, place):
    old = "written by hand"
    (place / "mine.html").write_text(old)
    assert "-o mine.html exists; name another file, or replace it with --force" in (
        bayesneg("report", finished, "-o", "mine.html").error
    )
    assert (place / "mine.html").read_text() == old
    assert bayesneg("report", finished, "-o", "mine.html", "--force").code == 0
    assert "BNS" in (place / "mine.html").read_text()
    pages = [bayesneg("report", finished, "--json").json["report"] for _ in range(3)]
    assert pages == ["report.html", "report-2.html", "report-3.html"]
    assert bayesneg("report", finished, "--force", "--json").json["report"] == "report.html"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["evaluate", "RUN", "--per-user", "users.json"], "--per-user users.json must end in .csv or .parquet"),
        (["evaluate", "RUN", "-k", "99999"], "k must be at most the number of items 40, got 99999"),
        (["evaluate", "RUN", "-k", "0"], "k must be at least 1, got 0"),
        (["evaluate", "RUN", "-k", "ten"], "-k must be whole numbers"),
        (["evaluate", "RUN", "--part", "training"], "'test' or 'validation'"),
        (["evaluate", "RUN", "--per-user", "nowhere/x.csv"], "--per-user nowhere/x.csv must be a file"),
        (["evaluate", "nowhere"], "nowhere holds no run"),
        (["recommend", "RUN", "--user", "u1", "-k", "99999"], "k must be at most the number of items 40"),
        (["recommend", "RUN", "--user", "u1", "-k", "0"], "k must be at least 1"),
        (["recommend", "RUN", "--user", "nobody"], "user 'nobody' is not in the data"),
        (["report", "nowhere"], "nowhere holds no run"),
        (["report", "RUN", "-o", "nowhere/x.html"], "-o nowhere/x.html must be a file"),
        (["report", "RUN", "-o", "."], "-o . must be a file"),
    ],
)
def test_a_wrong_argument_gets_a_sentence_and_nothing_is_written(bayesneg, finished, place, arguments, expected):
    given = [str(finished) if argument == "RUN" else argument for argument in arguments]
    assert expected in bayesneg(*given).error
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", '{"format'),
        ("run.json", "[]"),
        ("run.json", '{"format": 9}'),
        ("run.json", '{"format": 1, "record": {}}'),
        ("metrics.json", '{"mean'),
        ("metrics.json", "{}"),
        ("epochs.jsonl", '{"epoch'),
        ("per_user.parquet", "no table"),
        ("split.parquet", "no table"),
        ("weights.safetensors", "no vectors"),
    ],
)
def test_a_spoiled_file_of_a_run_gets_a_sentence(bayesneg, damaged, name, content):
    (damaged / name).write_text(content)
    assert str(damaged) in bayesneg("recommend", damaged, "--user", "u1").error


@pytest.mark.parametrize(
    "name", ["run.json", "metrics.json", "per_user.parquet", "users.parquet", "weights.safetensors"]
)
def test_a_missing_file_of_a_run_gets_a_sentence(bayesneg, damaged, name):
    (damaged / name).unlink()
    assert str(damaged) in bayesneg("evaluate", damaged).error


def test_a_damaged_run_is_not_reported(bayesneg, damaged):
    (damaged / "metrics.json").write_text("{")
    assert "damaged" in bayesneg("report", damaged, "-o", "report.html").error
    assert not (damaged.parent / "report.html").exists()
