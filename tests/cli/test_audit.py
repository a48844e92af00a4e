"""``bayesneg audit``."""

from __future__ import annotations

import pytest

OWN_PRIORS = '''
import numpy as np

import bayesneg as bn


class Wary(bn.Prior):
    """One in ten, for every pair."""

    def probability(self, users, items):
        return np.full(np.broadcast(users, items).shape, 0.1)


class Needs(bn.Prior):
    def __init__(self, strength):
        self.strength = strength

    def probability(self, users, items):
        return self.strength


def even(users, items):
    return np.where(items % 2 == 0, 0.2, 0.0)
'''


def audit(bayesneg, *arguments):
    return bayesneg("audit", *arguments, "--epochs", 2, "--probes", 40)


@pytest.fixture
def own_priors(place):
    path = place / "priors.py"
    path.write_text(OWN_PRIORS)
    return path


def test_json_is_one_object_with_every_sampler_and_run_and_the_page_is_written(bayesneg, ratings):
    found = audit(bayesneg, ratings, "--samplers", "rns,bns", "--seeds", 2, "--json").json
    assert [row["sampler"] for row in found["samplers"]] == ["RNS", "BNS"]
    assert [(run["label"], run["seed"]) for run in found["runs"]] == [("RNS", 0), ("RNS", 1), ("BNS", 0), ("BNS", 1)]
    rns, bns = found["samplers"]
    assert rns["truth_known"] is False
    assert rns["mean_predicted"]["mean"] is None
    assert 0 < bns["mean_predicted"]["mean"] <= 1
    assert bns["fn"]["low"] <= bns["fn"]["mean"] <= bns["fn"]["high"]
    assert found["report"] == "audit-report.html"
    assert "lower bounds" in (ratings.parent / "audit-report.html").read_text()


def test_the_tables_say_what_is_picked_and_that_unknown_truth_gives_a_lower_bound(bayesneg, ratings):
    done = audit(bayesneg, ratings, "--samplers", "rns,bns", "--seeds", 1, "--report", "mine.html")
    assert done.code == 0
    for words in ("20% hidden: what is picked", "is unbias calibrated", "uniform, expected", "lower bounds"):
        assert words in done.out
    assert str(ratings.parent / "mine.html") in done.err
    assert "\x1b" not in done.out + done.err


def test_a_share_that_rounding_changed_is_told_under_the_tables(bayesneg, ratings):
    done = audit(bayesneg, ratings, "--samplers", "rns", "--seeds", 1, "--hide", "0.2,0.25")
    assert "Hidden are 16.7% of the pairs, where 20% was asked for" in done.out  # 2 of 12
    assert "where 25%" not in done.out  # 3 of 12


def test_several_shares_get_a_table_across_them(bayesneg, place):
    done = audit(bayesneg, "synthetic", "--samplers", "rns,oracle", "--seeds", 1, "--hide", "0.1, 0.5")
    assert done.code == 0
    assert "false negatives among the picks" in done.out
    assert "10% hidden" in done.out
    assert "50% hidden" in done.out
    assert "lower bounds" not in done.out  # the truth is known
    assert "sees test labels" in done.out


def test_a_sampler_and_a_prior_of_one_s_own_join(bayesneg, ratings, own_samplers, own_priors):
    names = "own.py:Mine:start=2,bns:prior=priors.py:Wary:candidates=3,posterior:prior=priors.py:even"
    found = audit(bayesneg, ratings, "--samplers", names, "--seeds", 1, "--json").json
    mine, wary, even = found["samplers"]
    assert mine["sampler"] == "Mine (start=2)"
    assert wary["sampler"] == "BNS (prior=priors.py:Wary, candidates=3)"
    assert mine["mean_predicted"]["mean"] is None
    assert 0.1 < wary["mean_predicted"]["mean"] < 0.99  # a prior of one in ten
    assert even["mean_predicted"]["mean"] > wary["mean_predicted"]["mean"]  # it picks odd items, of which it is sure


def test_a_given_part_is_what_is_hidden(bayesneg, ratings):
    lines = ratings.read_text().splitlines()
    head, rows = lines[0], lines[1:]
    (ratings.parent / "train.csv").write_text("\n".join([head, *rows[::2], ""]))
    (ratings.parent / "test.csv").write_text("\n".join([head, *rows[1::2], ""]))
    found = audit(bayesneg, "train.csv", "--test", "test.csv", "--samplers", "dns", "--seeds", 1, "--json").json
    assert found["runs"][0]["data"]["n_test"] == len(rows[1::2])


def test_a_given_part_may_have_a_table_of_users_beside_it(bayesneg, ratings):
    lines = ratings.read_text().splitlines()
    head, rows = lines[0], lines[1:]
    (ratings.parent / "train.csv").write_text("\n".join([head, *rows[::2], ""]))
    (ratings.parent / "test.csv").write_text("\n".join([head, *rows[1::2], ""]))
    (ratings.parent / "users.csv").write_text("\n".join(["user,side", *(f"u{u},{'ab'[u % 2]}" for u in range(30)), ""]))
    options = ("--test", "test.csv", "--user-file", "users.csv", "--samplers", "bns:prior=group:column=side")
    found = audit(bayesneg, "train.csv", *options, "--seeds", 1, "--json").json
    assert found["runs"][0]["spec"]["sampler"]["prior"]["class"] == "Group"


def test_the_picks_of_some_users_are_on_the_page_with_titles(bayesneg, ratings):
    (ratings.parent / "titles.csv").write_text("item,title\n" + "".join(f"i{n},The <{n}>\n" for n in range(40)))
    options = ("--samplers", "bns", "--seeds", 1, "--users", 3, "--item-data", "titles.csv", "--json")
    found = audit(bayesneg, ratings, *options).json
    drill_down = found["runs"][0]["epochs"][-1]["drill_down"]
    assert len(drill_down["users"]["id"]) == 3
    page = (ratings.parent / "audit-report.html").read_text()
    assert f"The &lt;{drill_down['picks']['negative'][0].removeprefix('i')}&gt; (i" in page
    none = audit(bayesneg, ratings, "--samplers", "bns", "--seeds", 1, "--users", 0, "--report", "none.html")
    assert none.code == 0
    assert "The picks of one user" not in (ratings.parent / "none.html").read_text()


def test_resume_keeps_the_finished_runs(bayesneg, ratings):
    first = audit(bayesneg, ratings, "--samplers", "rns", "--seeds", 1, "--out", "kept.jsonl", "--json").json
    assert "exists; choose another out" in audit(bayesneg, ratings, "--out", "kept.jsonl").error
    options = ("--samplers", "rns,dns", "--seeds", 1, "--out", "kept.jsonl", "--resume", "--json")
    again = audit(bayesneg, ratings, *options).json
    assert again["runs"][0]["epochs"] == first["runs"][0]["epochs"]  # seconds included
    assert len((ratings.parent / "kept.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--hide", "1.5"], "--hide must be different shares between 0 and 1, such as 0.1,0.3,0.5, got '1.5'"),
        (["--hide", "some"], "--hide must be"),
        (["--hide", "0.2,0.2"], "--hide must be different"),
        (["--hide", "0.1", "--test", "test.csv"], "drop --hide, or drop --test"),
        (["--user-file", "users.csv"], "--user-file goes with --test"),
        (["--samplers", "rns,rns"], "RNS twice"),
        (["--samplers", "rsn"], "'rsn' is not a sampler; did you mean"),
        (["--samplers", "bns:prior=nosuch.py:Wary"], "nosuch.py does not exist"),
        (["--samplers", "bns:prior=priors.py:Nothing"], "no prior 'Nothing'; it has: Wary, Needs, even"),
        (["--samplers", "bns:prior=priors.py:Needs"], "strength"),
        (["--samplers", "bns:prior=popular"], "'popular' is not a prior; did you mean popularity?"),
        (["--probes", 0], "probes must be"),
        (["--users", -1], "--users must be a whole number of at least 0, got -1"),
        (["--item-data", "nosuch.csv"], "nosuch.csv"),
        (["--seeds", 0], "seeds must be at least 1"),
        (["--resume"], "--resume needs --out"),
        (["--out", "same.html", "--report", "./same.html"], "--out and --report are both same.html"),
        (["--model", "ease"], "model ease samples no negatives; compare shows it with --baselines ease"),
        (["--report", "nowhere/page.html"], "--report nowhere/page.html must be a file in an existing folder"),
        (["--out", "nowhere/kept.jsonl"], "--out nowhere/kept.jsonl must be a file in an existing folder"),
        (["--set", "learning_rate=1000"], "RNS, seed 0: training diverged in epoch 1"),
    ],
)
def test_a_wrong_option_gets_a_sentence_and_nothing_is_written(bayesneg, ratings, own_priors, options, expected):
    error = bayesneg("audit", ratings, "--samplers", "rns", "--epochs", 2, "--seeds", 1, *options).error
    assert expected in error
    assert {path.name for path in ratings.parent.iterdir()} - {"__pycache__"} == {"ratings.csv", "priors.py"}
