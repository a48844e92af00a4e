"""Baselines on the command line: trained alone, and beside samplers."""

from __future__ import annotations

import pytest


def test_a_baseline_is_trained_without_sampler_and_epochs(bayesneg, ratings):
    found = bayesneg("train", ratings, "--model", "ease", "--set", "l2=20", "--out", "run", "--json").json
    assert (found["label"], found["sampler"], len(found["epochs"])) == ("EASE (l2=20)", "", 1)
    assert found["spec"]["model"]["l2"] == 20
    assert bayesneg("evaluate", "run", "--json").json["mean"]["ndcg@20"] == pytest.approx(found["final"]["ndcg@20"])
    assert len(bayesneg("recommend", "run", "--user", "u3", "--json").json["items"]) == 10


def test_its_table_says_nothing_of_negatives(bayesneg, ratings):
    done = bayesneg("train", ratings, "--model", "popularity")
    assert done.code == 0
    assert "POPULARITY" in done.err
    assert "sampled negatives" not in done.err


def test_baselines_are_rows_of_the_comparison_and_of_the_report(bayesneg, ratings):
    options = ("--samplers", "rns,bns", "--baselines", "popularity, Ease:l2=20", "--epochs", 3, "--seeds", 2)
    done = bayesneg("compare", ratings, *options)
    assert done.code == 0, done.err
    table, _, quality = done.err.partition("sampled negatives")
    for label in ("POPULARITY", "EASE (l2=20)"):
        assert label in table
        assert label not in quality
    page = (ratings.parent / "report.html").read_text()
    assert "EASE (l2=20)" in page
    assert "different numbers of epochs" not in page
    assert "BNS · MF" not in page
    runs = bayesneg("compare", ratings, *options, "--json").json["runs"]
    assert [(run["label"], run["seed"]) for run in runs[4:]] == [
        ("POPULARITY", 0), ("POPULARITY", 1), ("EASE (l2=20)", 0), ("EASE (l2=20)", 1)
    ]  # fmt: skip


def test_a_comparison_with_baselines_is_resumed(bayesneg, ratings):
    command = ("compare", ratings, "--samplers", "rns", "--baselines", "ease", "--epochs", 2, "--seeds", 1)
    first = bayesneg(*command, "--out", "runs", "--json").json["runs"]
    again = bayesneg(*command, "--out", "runs", "--resume", "--json").json["runs"]
    assert [run["final"] for run in first] == [run["final"] for run in again]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("train", "--model", "ease", "--sampler", "rns"), "model ease samples no negatives; drop --sampler"),
        (("train", "--model", "ease", "--set", "candidates=3"), "'candidates' is not a setting of ease"),
        (("compare", "--model", "ease"), "compare shows it with --baselines ease"),
        (("compare", "--baselines", "mf"), "'mf' is not a baseline"),
        (("compare", "--baselines", "ease,ease"), "--baselines has EASE twice"),
        (("compare", "--baselines", "ease:l2=no"), "l2=no"),
    ],
)
def test_mistakes_are_told(bayesneg, ratings, arguments, error):
    command, *rest = arguments
    assert error in bayesneg(command, ratings, *rest).error
