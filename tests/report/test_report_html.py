"""The page as a reader, a screen reader and a browser without a network meet it."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from report_pages import Page
from report_runs import holes, run, three_samplers

from bayesneg.errors import InputError
from bayesneg.report.comparison import render, write_report
from bayesneg.report.figures.canvas import GREY, INK
from bayesneg.report.figures.plots import COLOURS
from bayesneg.report.groups import final_value
from bayesneg.report.pages import Section
from bayesneg.runs.record import RunRecord
from browser import Browser

HOSTILE = """<script>alert(1)</script>"' & $x_1$ id="p" url(#a)"""
CASES = {
    "three samplers": three_samplers(),
    "one run": [run("RNS")],
    "one seed each": [run("RNS"), run("BNS", ndcg=0.42)],
    "oracle": [*three_samplers(), run("ORACLE", ndcg=0.6, uses_test_labels=True)],
    "holes": [holes()],
    "holes beside others": [*three_samplers(), holes()],
    "hostile": [run(HOSTILE, dataset=HOSTILE, model=HOSTILE, data={"name": HOSTILE, HOSTILE: HOSTILE})],
    "two datasets": [*three_samplers(), *three_samplers(dataset="other")],
    "other scripts": [run("负采样 🎲"), run("_underscore"), run("x" * 300)],
    "nothing recorded": [RunRecord(label="RNS", seed=0, dataset="toy")],
}

FIRST = {"two datasets": {"other": [Section("Beside the paper", text="as printed")]}}


@cache
def rendered(case: str) -> str:
    """Each page is drawn once for all tests."""
    return render(CASES[case], title=HOSTILE if case == "hostile" else None, first=FIRST.get(case))


@pytest.fixture(scope="module", params=CASES)
def text(request: pytest.FixtureRequest) -> str:
    return rendered(request.param)


def test_every_page_is_well_formed(text: str) -> None:
    page = Page(text)
    assert text.startswith("<!doctype html>")
    assert (page.count("h1"), page.count("main")) == (1, 1)


def test_ids_are_unique_and_every_reference_finds_its_id(text: str) -> None:
    page = Page(text)
    assert [name for name, n in Counter(page.ids).items() if n > 1] == []
    for _, attributes in page.tags:
        wanted = attributes.get("aria-labelledby", "").split()
        wanted += [attributes["xlink:href"].removeprefix("#")] if "xlink:href" in attributes else []
        wanted += [attributes["clip-path"][5:-1]] if "clip-path" in attributes else []
        assert set(wanted) <= set(page.ids)


def test_nothing_is_fetched(text: str) -> None:
    for tag, attributes in Page(text).tags:
        assert tag not in ("link", "img", "iframe", "image")
        assert all(attributes.get(key, "#").startswith("#") for key in ("src", "href", "xlink:href", "action", "data"))
    assert "@import" not in text


def test_the_policy_allows_the_one_script_by_its_hash_and_no_request(text: str) -> None:
    (policy,) = (attributes["content"] for _, attributes in Page(text).tags if "http-equiv" in attributes)
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_tables_have_captions_and_scopes_and_figures_have_names(text: str) -> None:
    page = Page(text)
    assert page.count("caption") == page.count("table")
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    drawings = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert all(attributes["role"] == "img" and attributes["aria-labelledby"] for attributes in drawings)


def test_no_nan_or_none_is_shown(text: str) -> None:
    words = Page(text).visible.replace("(", " ").replace(",", " ").split()
    assert not {"nan", "NaN", "None", "inf", "-inf"} & set(words)


def test_the_table_shows_the_means_of_the_records() -> None:
    runs = three_samplers()
    heads, *rows = Page(rendered("three samplers")).tables[0]
    names = {"NDCG@20": "ndcg@20", "Precision@20": "precision@20", "Recall@20": "recall@20", "AUC": "auc"}
    assert [head.strip() for head in heads] == ["Sampler", "NDCG@20", "False negatives", *list(names)[1:]]
    for label, row in zip(("RNS", "DNS", "BNS"), rows, strict=True):
        assert row[0].split()[0] == label
        for key, cell in zip(names.values(), (row[1], *row[3:]), strict=True):
            mean = np.mean([final_value(group, key) for group in runs if group.label == label])
            assert cell.split()[0] == f"{mean:.4f}"


def test_the_best_mean_is_bold_and_an_oracle_never_is() -> None:
    text = rendered("oracle")
    bold = [value for tag, value in Page(text).tags if tag == "td" and value.get("class") == "best"]
    best = np.mean([final_value(group, "ndcg@20") for group in three_samplers() if group.label == "BNS"])
    assert float(bold[0]["data-value"]) == pytest.approx(best)
    assert all(float(value["data-value"]) < 0.6 for value in bold)


def test_an_oracle_is_marked_in_tables_figures_and_notes() -> None:
    page = Page(rendered("oracle"))
    assert "ORACLE sees the test labels on purpose" in page.visible
    assert sum(text == "sees test labels" for _, text in page.texts) >= 3  # both tables and the list of runs
    assert any(tag == "text" and "ORACLE (sees test" in text for tag, text in page.texts)
    assert "sees test labels" not in Page(rendered("three samplers")).visible


def test_hostile_text_stays_text() -> None:
    text = rendered("hostile")
    page = Page(text)
    assert page.count("script") == 1
    assert HOSTILE in page.visible
    assert "<script>alert" not in text


def test_each_dataset_is_compared_apart() -> None:
    visible = Page(rendered("two datasets")).visible
    assert "Comparison: toy" in visible
    assert "Comparison: other" in visible


def test_missing_numbers_are_dashes() -> None:
    rows = Page(rendered("holes beside others")).tables[0]
    assert [rows[-1][column].strip() for column in (1, 3)] == ["– –", "– –"]  # no value, no difference


@pytest.mark.parametrize(
    ("select", "words"),
    [("last", "Last epoch reported (epoch 8)."), ("best", "test labels were not used to choose")],
)
def test_the_page_says_how_the_epoch_was_chosen(select: str, words: str) -> None:
    assert words in Page(render([run("RNS", select=select)])).visible


def test_the_same_records_give_the_same_bytes() -> None:
    assert render(three_samplers()) == rendered("three samplers")


def test_a_report_needs_a_run() -> None:
    with pytest.raises(InputError, match="at least one run"):
        render([])


def test_write_report_replaces_the_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "new folder" / "report.html"
    for _ in range(2):
        assert write_report([run("RNS")], target) == target
    assert target.read_text(encoding="utf-8") == render([run("RNS")])
    assert list(target.parent.iterdir()) == [target]


def test_write_report_into_a_folder_is_refused_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder; name a file in it"):
        write_report([run("RNS")], tmp_path)


def test_a_failed_write_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def fail(self: Path, other: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report([run("RNS")], target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_importing_the_report_does_not_import_matplotlib() -> None:
    code = "import sys, bayesneg.report.comparison; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_sections_of_a_study_come_before_those_made_from_its_records() -> None:
    text = rendered("two datasets")
    assert text.count("as printed") == 1
    assert text.index('id="s2"') < text.index("as printed") < text.index("Comparison: other")


def test_each_of_several_studies_can_be_jumped_to() -> None:
    page = Page(rendered("two datasets"))
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links == ["#s1", "#s2"]
    assert {"s1", "s2"} <= set(page.ids)


def test_quality_is_shown_against_what_it_costs() -> None:
    assert "NDCG@20 against training time" in rendered("three samplers")
    untimed = [replace(each, epochs=[{"epoch": 1, "ndcg@20": 0.1}]) for each in three_samplers()]
    assert "against training time" not in render(untimed)


def test_a_long_name_leaves_every_number_in_sight(browser: Browser, tmp_path: Path) -> None:
    name = "BNS_prior=Learned(item_model=ease_l2=400_solver=auto)_likelihood=Mixture_weight=10_" * 3
    ends = "[...document.querySelector('table').querySelectorAll('td')].map(cell => cell.getBoundingClientRect().right)"
    place = "document.querySelector('.scroll').getBoundingClientRect().right"
    written = write_report([*three_samplers(), run(name)], tmp_path / "report.html")
    with browser.page(written, width=1100) as page:
        cells, edge = page.value(f"[{ends}, {place}]")
    assert max(cells) <= edge + 1


@pytest.mark.parametrize("colour", [*COLOURS, INK, GREY])
def test_what_is_drawn_is_readable_on_white_and_inverted_on_black(colour: str) -> None:
    drawn = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    half_turn = 2 * np.tile([0.213, 0.715, 0.072], (3, 1)) - np.eye(3)  # hue-rotate(180deg)
    inverted = np.clip(half_turn @ (1 - drawn), 0, 1)
    assert 1.05 / (_luminance(drawn) + 0.05) > 4.5  # the contrast that WCAG asks of text
    assert (_luminance(inverted) + 0.05) / 0.05 > 4.5


def _luminance(colour: np.ndarray) -> float:
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
