"""``bayesneg compare``."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from bayesneg.cli.options import BESIDE
from bayesneg.experiments.contenders import YARDSTICKS


def compare(bayesneg, *arguments):
    return bayesneg("compare", *arguments, "--epochs", 2, "--seeds", 2, "--baselines", "none")


def test_the_baselines_beside_are_those_of_python():
    assert BESIDE == YARDSTICKS


def test_popularity_and_ease_stand_beside_and_the_verdict_is_on_stdout_and_on_the_page(bayesneg, place):
    few = ("--samplers", "rns", "--epochs", 2, "--seeds", 2, "--set", "learning_rate=0.05", "-q")
    done = bayesneg("compare", "synthetic", *few, "--report", "page.html")
    assert {line.split()[0] for line in done.out.splitlines() if " ±" in line} >= {"RNS", "POPULARITY", "EASE"}
    (said,) = [
        line for line in done.out.splitlines() if line.startswith("A baseline is better: EASE is ahead of RNS by")
    ]
    assert "Still improving at the last epoch: RNS; more epochs (--epochs) may change the result." in said
    assert said in html.unescape(Path("page.html").read_text())
    found = bayesneg("compare", "synthetic", *few, "--report", "again.html", "--json").json
    assert found["verdict"] == said
    assert set(found) == {"report", "out", "verdict", "runs"}
    assert {run["label"] for run in found["runs"]} == {"RNS", "POPULARITY", "EASE"}


def test_json_is_one_object_with_every_run_and_the_report_is_written(bayesneg, ratings):
    found = compare(bayesneg, ratings, "--samplers", "rns,dns", "--json").json
    assert [(run["label"], run["seed"]) for run in found["runs"]] == [("RNS", 0), ("RNS", 1), ("DNS", 0), ("DNS", 1)]
    assert found["report"] == "report.html"
    assert "RNS" in (ratings.parent / "report.html").read_text()


def test_the_table_has_a_row_per_sampler_and_names_the_report(bayesneg, ratings):
    done = compare(bayesneg, ratings, "--samplers", "rns,bns", "--report", "mine.html")
    assert done.code == 0
    assert "ndcg@20 − RNS" in done.out
    assert "over 2 seeds" in done.out
    assert str(ratings.parent / "mine.html") in done.err
    assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize("command", ["compare", "tune", "audit"])
def test_a_page_that_exists_is_not_replaced_unless_asked(bayesneg, ratings, command):
    page = ratings.parent / "mine.html"
    page.write_text("written by hand")
    options = (command, ratings, "--samplers", "rns", "--seeds", 1, "--epochs", 1, "--report", "mine.html")
    assert "--report mine.html exists; name another file, or replace it with --force" in bayesneg(*options).error
    assert page.read_text() == "written by hand"


def test_a_second_comparison_is_written_beside_the_first(bayesneg, ratings):
    options = ("compare", ratings, "--samplers", "rns", "--seeds", 1, "--epochs", 1)
    assert [bayesneg(*options, "--json").json["report"] for _ in range(2)] == ["report.html", "report-2.html"]
    assert bayesneg(*options, "--force", "--json").json["report"] == "report.html"


def test_names_may_have_spaces_capitals_and_stray_commas(bayesneg, ratings):
    runs = compare(bayesneg, ratings, "--samplers", "RNS, ,Dns: candidates = 3,", "--json").json["runs"]
    assert {run["label"] for run in runs} == {"RNS", "DNS (candidates=3)"}


@pytest.mark.parametrize(
    "command", [["train", "--sampler", "dens"], ["compare", "--samplers", "rns,dens"], ["audit", "--samplers", "dens"]]
)
def test_a_sampler_that_learns_is_trained_compared_and_audited(bayesneg, ratings, command):
    settings = ["--set", "pairs_at_once=40", "--epochs", 2, "--json"]
    done = bayesneg(command[0], ratings, *command[1:], *settings)
    assert done.code == 0, done.err
    assert "DENS (pairs_at_once=40)" in done.out


def test_the_number_of_jobs_changes_no_number(bayesneg, ratings):
    one, two = (compare(bayesneg, ratings, "--jobs", jobs, "--json").json["runs"] for jobs in (1, 2))
    assert [run["final"] for run in one] == [run["final"] for run in two]


def test_set_reaches_the_model_and_every_sampler_that_has_the_setting(bayesneg, ratings):
    settings = ("--set", "candidates=3", "--set", "dim=8")
    runs = compare(bayesneg, ratings, "--samplers", "rns,dns,bns:candidates=7", *settings, "--json").json["runs"]
    assert [run["label"] for run in runs[::2]] == ["RNS", "DNS (candidates=3)", "BNS (candidates=7)"]
    assert [run["spec"]["sampler"].get("candidates") for run in runs[::2]] == [None, 3, 7]
    assert {run["spec"]["model"]["dim"] for run in runs} == {8}


def test_a_setting_that_nobody_has_is_refused(bayesneg, ratings):
    error = compare(bayesneg, ratings, "--samplers", "rns,dns", "--set", "weight=3").error
    assert "'weight' is not a setting of rns or dns or mf" in error
    assert "candidates" in error


def test_a_sampler_of_ones_own_joins_with_its_settings(bayesneg, ratings, own_samplers):
    runs = compare(bayesneg, ratings, "--samplers", "rns,own.py:Mine,own.py:Mine:start=5", "--json").json["runs"]
    assert [run["label"] for run in runs[::2]] == ["RNS", "Mine", "Mine (start=5)"]
    assert [run["spec"]["sampler"].get("start") for run in runs[::2]] == [None, 0, 5]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--samplers", ","], "no sampler is named"),
        (["--samplers", "rns,rsn"], "'rsn' is not a sampler"),
        (["--samplers", "rns,dns,rns"], "RNS twice"),
        (["--jobs", 0], "jobs must be a whole number of at least 1, got 0"),
        (["--seeds", 0], "seeds must be at least 1"),
        (["--seeds", -3], "seeds must be at least 1"),
        (["--epochs", -3], "epochs must be a whole number of at least 1, got -3"),
        (["--report", "nowhere/report.html"], "--report nowhere/report.html must be a file in an existing folder"),
        (["--report", "."], "--report . must be a file"),
        (["--set", "learning_rate=1000"], "seed 0: training diverged in epoch 1"),
    ],
)
def test_a_wrong_option_gets_a_sentence_and_nothing_is_written(bayesneg, ratings, options, expected):
    error = bayesneg(
        "compare",
        ratings,
        "--samplers",
        "rns",
        "--epochs",
        2,
        "--seeds",
        1,
        "--out",
        "runs",
        "--baselines",
        "none",
        *options,
    ).error
    assert expected in error
    assert [path.name for path in ratings.parent.iterdir()] == ["ratings.csv"]


def test_an_out_that_holds_one_of_the_runs_is_refused_before_any_training(bayesneg, ratings):
    out = ratings.parent / "runs"
    assert compare(bayesneg, ratings, "--samplers", "rns", "--out", out).code == 0
    (ratings.parent / "report.html").unlink()
    error = compare(bayesneg, ratings, "--samplers", "dns,rns", "--out", out).error
    assert "rns-seed0 already holds a run" in error
    assert {path.name for path in out.iterdir()} == {"rns-seed0", "rns-seed1"}
    assert not (ratings.parent / "report.html").exists()


def test_the_folder_of_a_single_run_is_no_place_for_a_comparison(bayesneg, ratings, finished):
    assert "already holds a run" in compare(bayesneg, ratings, "--out", finished, "--resume").error


def test_resume_keeps_finished_runs_and_trains_the_rest(bayesneg, ratings):
    out = ratings.parent / "runs"
    compare(bayesneg, ratings, "--samplers", "rns", "--out", out)
    lines = (out / "rns-seed0" / "epochs.jsonl").read_text()
    found = compare(bayesneg, ratings, "--samplers", "rns,dns", "--out", out, "--resume", "--json").json
    assert {path.name for path in out.iterdir()} == {"rns-seed0", "rns-seed1", "dns-seed0", "dns-seed1"}
    assert found["runs"][0]["epochs"] == [json.loads(line) for line in lines.splitlines()]  # seconds included


def test_an_error_keeps_the_runs_that_were_finished_and_nothing_else(bayesneg, ratings, own_samplers):
    options = ("--samplers", "rns,own.py:OutOfRange", "--jobs", 1, "--out", "runs", "-q")
    assert "OutOfRange, seed 0: " in compare(bayesneg, ratings, *options).error
    assert {path.name for path in (ratings.parent / "runs").iterdir()} == {"rns-seed0", "rns-seed1"}


def test_an_oracle_is_marked_in_both_tables_and_can_be_resumed(bayesneg, ratings):
    settings = ["compare", ratings, "--samplers", "rns,oracle", "--seeds", 1, "--epochs", 1, "--out", "runs", "-q"]
    assert bayesneg(*settings).out.count("sees test labels") >= 2
    assert bayesneg(*settings, "--resume").code == 0


def test_no_run_is_touched_where_another_cannot_be_resumed(bayesneg, ratings):
    def compare(samplers, epochs, *more):
        place = ["--seeds", 1, "--epochs", epochs, "--baselines", "none", "--out", "runs", "-q"]
        return bayesneg("compare", ratings, "--samplers", samplers, *place, *more)

    assert compare("rns", 1).code == 0
    assert compare("dns", 3).code == 0
    lines = ratings.parent / "runs" / "rns-seed0" / "epochs.jsonl"
    before = lines.read_bytes()
    assert "already holds 3 epochs" in compare("rns,dns", 2, "--resume").error
    assert lines.read_bytes() == before


def test_what_a_sampler_of_one_s_own_prints_stays_out_of_the_json(bayesneg, ratings):
    (ratings.parent / "chatty.py").write_text(
        "import bayesneg as bn\n\n\nclass Chatty(bn.NegativeSampler):\n"
        "    def sample(self, batch):\n        print('hello')\n"
        "        return bn.RNS().sample(batch)\n"
    )
    done = bayesneg("train", ratings, "--sampler", "chatty.py:Chatty", "--epochs", 1, "--json")
    assert done.code == 0
    assert json.loads(done.out)["label"] == "Chatty"


def test_what_the_library_warns_of_is_one_note(bayesneg, place):
    Path("one.csv").write_text("user,item\n" + "".join(f"u{n},i{n % 7}\n" for n in range(60)))
    done = compare(bayesneg, "one.csv", "--samplers", "rns,dns", "-q")
    assert done.err.count("note: no validation user") == 1
    assert "Warning" not in done.err
