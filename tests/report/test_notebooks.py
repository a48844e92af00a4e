"""What a notebook shows of splits, results, runs, comparisons, searches and audits."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import bayesneg as bn
from bayesneg.notebooks import MOST_ROWS, html_table
from bayesneg.runs.tuning_result import Advice, Trial

EVIL = "<script>alert(1)</script> \" onmouseover='x' & \x1b[31m long"


class Parsed(HTMLParser):
    """Tags, attributes and text; every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.tags, self.names, self.texts = [], [], set(), []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def split():
    pairs = bn.synthetic(60, 80, seed=3)
    users = [f"{EVIL}{user}" for user in pairs.user_ids[pairs.users]]
    data = bn.Interactions.from_pairs(users, pairs.item_ids[pairs.indices], name=f"data {EVIL}")
    return bn.split(data, test=0.2, validation=0.1, seed=0)


@pytest.fixture(scope="module")
def run(split):
    return bn.fit(bn.MF(dim=4), split, bn.BNS(), epochs=2, progress=False, label=f"BNS {EVIL}")


@pytest.fixture(scope="module")
def shown(split, run):
    samplers = {f"one {EVIL}": bn.RNS(), "BNS": bn.BNS()}
    records = bn.compare(bn.MF(dim=4), split, samplers, seeds=2, epochs=1, jobs=1, progress=False)
    audit = bn.audit(bn.MF(dim=4), split, samplers, seeds=2, epochs=1, probes=20, jobs=1, progress=False)
    trial = Trial(1, "bns", f"BNS {EVIL}", "BNS", "complete", {1: 0.25})
    advice = Advice("BNS", "BNS", "ndcg@20", f"Use BNS {EVIL}.", [], {}, {})
    tuned = bn.TuningResult([trial], {"BNS": trial}, records, advice, bn.MF(), bn.BNS(), options=["--sampler", "bns"])
    every = {"split": split, "run": run, "record": run.record, "result": run.evaluate(), "comparison": records}
    return {name: value._repr_html_() for name, value in {**every, "search": tuned, "audit": audit}.items()}


NAMES = ["split", "run", "record", "result", "comparison", "search", "audit"]


@pytest.mark.parametrize("name", NAMES)
def test_ids_and_labels_are_text_and_nothing_is_run(shown, name):
    found = Parsed(shown[name])
    assert set(found.tags) <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert found.names == {"style"}
    assert "\x1b" not in shown[name]
    if name != "result":
        assert any("<script>alert(1)</script>" in text for text in found.texts)
    assert len(shown[name]) < 30_000


@pytest.mark.parametrize("name", NAMES)
def test_no_colour_is_fixed(shown, name):
    """Text and background are those of the notebook; lines are a grey that both light and dark ones show."""
    colours = set(re.findall(r"#[0-9a-f]{3,8}|rgba?\([^)]*\)", shown[name]))
    assert colours == {"rgba(128,128,128,.45)"}
    assert set(re.findall(r"(?:^|[;\"])(?:color|background):([^;\"]*)", shown[name])) == {"inherit", "transparent"}


def test_the_numbers_are_those_of_the_objects(shown, split, run):
    assert f"{len(split.train):,}" in Parsed(shown["split"]).texts
    mean, (low, high) = run.record.final["ndcg@20"], run.record.intervals["ndcg@20"]
    cell = f"{mean:.4f} ± {(high - low) / 2:.4f}"
    for name in ("run", "record", "result"):
        assert cell in Parsed(shown[name]).texts
    assert "mean ± 95% over 2 seeds" in shown["comparison"]
    assert "bayesneg train DATA --sampler bns" in shown["search"]
    assert re.search(r">\d+\.\d\d% ± \d", shown["audit"])


def test_a_comparison_of_one_seed_has_intervals_over_users(run):
    found = bn.Comparison([run.record])._repr_html_()
    assert "over users" in found
    assert " ± " in found
    assert bn.Comparison([])._repr_html_().count("<table") == 1


def test_a_long_table_is_cut_and_says_so():
    found = html_table("t", ("a", "n"), [(str(n), "1") for n in range(MOST_ROWS + 3)])
    assert "… and 3 more rows" in found
    assert found.count("<tr") == MOST_ROWS + 1


def test_the_table_fits_a_narrow_page_and_is_readable_in_dark(shown, browser, tmp_path):
    """Laid out by Chromium: nothing is wider than the page, and text has the colour of the page."""
    body = "".join(f'<section id="{name}">{shown[name]}</section>' for name in NAMES)
    page = f'<html><body style="background:#111;color:#eee;width:600px;font:14px sans-serif">{body}</body></html>'
    colour = 'getComputedStyle(document.querySelector("#split td")).color'
    wide = '[...document.querySelectorAll("section > div")].map(each => each.offsetWidth)'
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    with browser.page(tmp_path / "page.html") as opened:
        found = opened.value(f"[{colour}, {wide}, document.title]")
    assert found[0] == "rgb(238, 238, 238)"
    assert max(found[1]) <= 600
    assert found[2] == "", "no script of a label was run"
