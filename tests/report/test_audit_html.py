"""The page of an audit as a reader, a screen reader and a browser without a network meet it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from matplotlib.axes import Axes
from report_pages import Page

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.report.audit_page import plots
from bayesneg.report.audit_page.drill_down import item_names
from bayesneg.report.audit_page.page import render, write_audit
from bayesneg.report.audit_page.rows import audit_finding, audited, calibration_finding, hidden_note, measured
from bayesneg.report.false_negatives import ONE_SEED
from bayesneg.report.groups import RunGroup

HOSTILE = """<script>alert(1)</script>"' & $x_1$ id="p" url(#a)"""


@pytest.fixture(scope="module")
def records():
    samplers = {"RNS": bn.RNS(), "DNS": bn.DNS(), "BNS": bn.BNS(), "oracle": oracle, HOSTILE: bn.PNS()}
    settings = {"seeds": 2, "epochs": 3, "probes": 100, "progress": False}
    return bn.audit(bn.MF(dim=4), bn.hide(bn.synthetic(60, 50, seed=0), [0.2, 0.5]), samplers, **settings).records


def oracle(split):
    return bn.BNS(prior=bn.priors.Oracle(split.held_out))


@pytest.fixture(scope="module")
def rendered(records):
    """Case → its page, drawn once for all tests."""
    return cache(lambda case: render(chosen(records, case)))


@pytest.fixture(scope="module", params=["several splits", "one split", "one run", "no posterior", "truth unknown"])
def text(request, rendered):
    return rendered(request.param)


def chosen(records, case):
    first = [record for record in records if record.dataset == records[0].dataset]
    return {
        "several splits": records,
        "one split": first,
        "one run": first[:1],
        "no posterior": [record for record in first if record.label in ("RNS", "DNS")],
        "truth unknown": [replace(record, data={**record.data, "truth_known": False}) for record in first],
    }[case]


def test_every_page_is_well_formed_and_fetches_nothing(text):
    page = Page(text)
    assert (page.count("h1"), page.count("main"), page.count("script")) == (1, 1, 1)
    assert [name for name, n in Counter(page.ids).items() if n > 1] == []
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "image")
        assert all(attributes.get(key, "#").startswith("#") for key in ("src", "href", "xlink:href"))
    assert page.count("caption") == page.count("table")
    assert not {"nan", "NaN", "None"} & set(page.visible.split())


def test_figures_have_names_and_descriptions(text):
    drawings = [attributes for tag, attributes in Page(text).tags if tag == "svg"]
    assert drawings
    assert all(attributes["role"] == "img" and attributes["aria-labelledby"] for attributes in drawings)


def test_the_table_shows_the_means_of_the_records(records, rendered):
    split = audited(records)[0]
    rows = Page(rendered("one split")).tables[0]
    for group, row in zip(split.groups, rows[1:], strict=False):
        assert row[1].split()[0] == f"{measured(group, 'fn').mean:.4f}"


def test_several_splits_are_laid_side_by_side(rendered):
    page = Page(rendered("several splits"))
    assert [head.strip() for head in page.tables[0][0]] == ["Sampler", "20% hidden", "50% hidden"]
    assert "False negatives against what is hidden" in page.visible
    assert "Across splits" not in Page(rendered("one split")).visible


def test_unknown_truth_is_said_to_give_lower_bounds(records, rendered):
    assert "lower bounds" in Page(rendered("truth unknown")).visible
    assert "known false negatives" in audit_finding(audited(chosen(records, "truth unknown"))[0])
    assert "lower bounds" not in Page(rendered("several splits")).visible


def test_an_oracle_is_marked_and_never_named_as_having_the_fewest(records, rendered):
    assert "sees test labels" in Page(rendered("several splits")).visible
    assert not audit_finding(audited(records)[0]).startswith("oracle")


def with_measures(records, measures):
    """Runs of one split, two seeds of each label, whose last epoch has the given measures."""
    (base,) = [record for record in records if (record.label, record.seed) == ("BNS", 0)][:1]
    lines = [{**base.epochs[-1], key: value} for _, key, pair in measures for value in pair]
    labels = [label for label, _, pair in measures for _ in pair]
    seeds = [seed for _, _, pair in measures for seed in range(len(pair))]
    made = zip(labels, seeds, lines, strict=True)
    return [replace(base, label=label, seed=seed, epochs=[line]) for label, seed, line in made]


def test_extremes_are_named_only_where_they_are_distinguishable_from_all(records):
    measures = [("A", "fn", (0.10, 0.101)), ("B", "fn", (0.09, 0.12)), ("C", "fn", (0.50, 0.531))]
    said = audit_finding(audited(with_measures(records, measures))[0])
    assert said.startswith("A has the lowest mean rate of false negatives, 10.1% ± 0.6% of its picks, not dist")
    assert "not distinguishable from B; C picks the most false negatives, 51.6%" in said
    both = audit_finding(audited(with_measures(records, measures[:2]))[0])
    assert both.startswith("A and B are not distinguishable in their rates of false negatives: 10.1% ± 0.6% (A) to")
    clear = [("A", "fn", (0.10, 0.101)), ("C", "fn", (0.50, 0.501))]
    said = audit_finding(audited(with_measures(records, clear))[0])
    assert said.startswith("A picks the fewest false negatives, 10.1% ± 0.6% of its picks; C picks the most")
    one = audit_finding(audited(with_measures(records, [(name, key, pair[:1]) for name, key, pair in measures]))[0])
    assert one.startswith("B has the lowest rate of false negatives, 9.0% of its picks, and C the highest, 50.0%")
    assert one.endswith(ONE_SEED)


def test_equal_rates_are_not_ranked(records):
    measures = [("A", "fn", (0.2, 0.2)), ("B", "fn", (0.1, 0.3))]
    said = audit_finding(audited(with_measures(records, measures))[0])
    assert said.startswith("A and B pick equally many false negatives, 20.0% of their picks; uniform picks have")
    unknown = [replace(run, data={"truth_known": False}) for run in with_measures(records, measures)]
    assert "equally many known false negatives, 20.0% of" in audit_finding(audited(unknown)[0])


def test_samplers_that_see_test_labels_did_pick_but_are_no_fair_result(records):
    oracles = [record for record in records if record.label == "oracle"]
    expected = "Only samplers that see the test labels sampled negatives, so none is a fair result."
    assert audit_finding(audited(oracles)[0]) == expected
    idle = [replace(run, uses_test_labels=False) for run in with_measures(records, [("A", "fn", (None, None))])]
    assert audit_finding(audited(idle)[0]) == "No negative was sampled."
    both = [*idle, *(replace(run, dataset=idle[0].dataset) for run in oracles)]
    assert audit_finding(audited(both)[0]) == expected


def test_a_share_that_rounding_changed_is_told(records):
    own = {"split": "by=user test=0.1 seed=0", "n_users": 150, "n_users_with_hidden": 60, "n_validation": 0}

    def note(n_test, **more):
        facts = {**own, "n_train": 1000 - n_test, "n_test": n_test, **more}
        return hidden_note(audited([replace(records[0], data={**records[0].data, **facts})])[0])

    assert note(79) == (
        "Hidden are 7.9% of the pairs, where 10% was asked for: rounded for each user, and 60 of 150 have some. "
        "Set hidden=0.0858 to give the prior this ratio."
    )
    assert "10.0% of the pairs" in note(100), "half of the users have none"
    assert note(100, n_users_with_hidden=149) == ""
    assert note(79, split="given") == ""


def test_the_page_tells_a_share_that_rounding_changed(records):
    few = {"n_train": 900, "n_test": 100}
    changed = [replace(record, data={**record.data, **few}) for record in chosen(records, "one split")]
    assert "Hidden are 10.0% of the pairs, where 20% was asked for" in Page(render(changed)).visible


def test_a_posterior_is_compared_with_a_constant(records):
    constant = next(record for record in records if record.label == "BNS").epochs[-1]["brier_constant"]
    gaps = {"good": (-0.02, -0.021), "open": (-0.5, 0.5), "bad": (0.02, 0.021)}
    measures = [(name, "brier", tuple(constant + gap for gap in pair)) for name, pair in gaps.items()]
    said = calibration_finding(audited(with_measures(records, measures))[0])
    parts = dict(part.split(" a constant: ") for part in said.partition(" is ")[2].split("; "))
    assert {verdict: names.split()[0] for verdict, names in parts.items()} == {
        "better than": "good",
        "not distinguishable from": "open",
        "worse than": "bad",
    }
    one = calibration_finding(audited(with_measures(records, [("good", "brier", (constant - 0.1,))]))[0])
    assert "better than a constant: good" in one
    assert one.endswith(ONE_SEED)


def test_the_axes_of_reliability_are_never_fitted_to_its_few_points(records, monkeypatch):
    """matplotlib warns where the points it fits an axis to are too near each other."""

    def fit_axis(axes, *bounds):
        assert not axes.lines

    monkeypatch.setattr(Axes, "set_ybound", fit_axis)
    table = {"n": [40, 40], "mean_predicted": [0.999, 0.99], "true": [40, 40]}
    group = RunGroup("A", (replace(records[0], epochs=[{"epoch": 1, "picked": table}]),))
    assert plots.reliability([group], "picked", prefix="p").startswith("<svg")


def test_without_a_posterior_there_is_no_section_about_it(rendered):
    assert "Is the posterior calibrated?" not in Page(rendered("no posterior")).visible
    assert "Is the posterior calibrated?" in Page(rendered("several splits")).visible


def test_the_same_records_give_the_same_bytes(records, rendered):
    assert render(records) == rendered("several splits")


def test_a_page_needs_a_run_and_a_file(records, tmp_path):
    with pytest.raises(InputError, match="at least one run"):
        render([])
    with pytest.raises(InputError, match="is a folder"):
        write_audit(records[:1], tmp_path)


def test_importing_the_page_does_not_import_matplotlib():
    code = "import sys, bayesneg.report.audit_page.page; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_items_are_named_by_a_table_of_them(tmp_path):
    (tmp_path / "items.csv").write_text("item,year,title\n7,1999,Fargo\n8,2001,\n7,2000,again\n")
    assert item_names(tmp_path / "items.csv") == {"7": "Fargo (7)"}
    (tmp_path / "years.csv").write_text("id,year\n7,1999\n")
    assert item_names(tmp_path / "years.csv") == {"7": "1999 (7)"}
    assert item_names(None) == {}
    (tmp_path / "bare.csv").write_text("item\n7\n")
    with pytest.raises(InputError, match=r"bare\.csv"):
        item_names(tmp_path / "bare.csv")


def test_identifiers_in_the_picks_are_escaped(records):
    found = records[0].epochs[-1]["drill_down"]
    picks = {**found["picks"], "negative": ["'><script>alert(1)</script>"] * len(found["picks"]["negative"])}
    users = {**found["users"], "id": ["<b>"] * len(found["users"]["id"])}
    line = {**records[0].epochs[-1], "drill_down": {"users": users, "picks": picks}}
    text = render([replace(records[0], epochs=[line])], names={"i1": HOSTILE})
    page = Page(text)
    assert page.count("script") == 1
    (data,) = [attributes["data-explorer"] for _, attributes in page.tags if "data-explorer" in attributes]
    shown = json.loads(data)
    assert {shown["items"][row[3]] for row in shown["picks"]} == {"'><script>alert(1)</script>"}
    assert {user["id"] for user in shown["users"]} == {"<b>"}


def test_an_audit_without_recorded_picks_has_no_section_of_them(records):
    lines = [{key: value for key, value in line.items() if key != "drill_down"} for line in records[0].epochs]
    assert "The picks of one user" in render(records[:1])
    assert "The picks of one user" not in render([replace(records[0], epochs=lines)])
