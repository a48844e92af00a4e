"""The search in the report: advice, evidence, and every trial in sight."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from report_runs import search

from bayesneg.report.tuning import render_tuning, tuning_sections
from bayesneg.runs.tuning_result import TuningResult


@pytest.fixture
def tuning() -> TuningResult:
    return search()


def test_the_sentence_comes_first_then_the_command_the_table_and_the_evidence(tuning):
    page = render_tuning(tuning, command="bayesneg train ratings.csv --sampler bns")
    headings = [f"<h2>{name}</h2>" for name in ("Comparison", "Evidence", "The search on validation data")]
    texts = ['<p class="finding">Use BNS &amp; be happy.', ">bayesneg train ratings.csv --sampler bns</pre>"]
    places = [page.index(text) for text in (*texts, *headings)]
    assert places == sorted(places)
    assert page.count("Use BNS &amp; be happy.") == page.count("a &lt;note&gt;") == 1
    assert "recommends best" not in page, "one sentence says what to use"
    assert "0.0100 to 0.0300" in page
    assert "RNS (simpler)" in page
    assert page.count(">not distinguishable</td>") == 1


def test_the_history_is_drawn_with_every_family_and_counts_the_pruned(tuning):
    (drawn,) = tuning_sections(tuning)[-1].drawings
    texts = {node.text for node in ET.fromstring(drawn.svg).iter("{http://www.w3.org/2000/svg}text")}
    assert {"RNS", "BNS", "trial"} <= texts
    assert "pruned (1)" in drawn.caption


def test_every_trial_is_in_the_table_with_its_state(tuning):
    (table,) = tuning_sections(tuning)[-1].folds[0].tables
    labels = ("RNS", "BNS (weight=5)", "BNS (weight=9)", "BNS (weight=1)")
    assert [row[0].text for row in table.rows] == [f"{number}. {label}" for number, label in enumerate(labels, 1)]
    page = render_tuning(tuning)
    assert "failed: training &lt;diverged&gt;" in page
