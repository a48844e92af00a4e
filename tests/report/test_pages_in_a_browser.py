"""The pages in a real browser: clicked, hovered, sorted, filtered, narrow, dark and on paper."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from report_runs import run, search, three_samplers

import bayesneg as bn
from bayesneg.report.audit_page.page import write_audit
from bayesneg.report.comparison import write_report
from bayesneg.report.tuning import write_tuning_report
from browser import DARK, LIGHT

HOSTILE = """<script>alert(1)</script>"' & $x_1$ id="p" url(#a)"""
LONG = "BNS (candidates=2048, shared=true, weighting=posterior, prior=learned) + Softmax (temperature=0.08)"
PAGES = ("comparison", "audit", "run", "search")
COMPARED = ["RNS", "DNS", "BNS", LONG, HOSTILE, "EASE"]


def timed(record, seconds):
    """Epochs that take so long: the axis of seconds spans decades."""
    return replace(record, epochs=[{**line, "seconds": seconds} for line in record.epochs])


def with_all_metrics(record):
    """As many metrics as a run has."""
    more = {f"{name}@{k}": 0.0123 for name in ("hit", "mrr", "map", "precision", "recall") for k in (5, 10, 20)}
    more |= {f"popularity@{k}": 258.4 for k in (5, 10, 20)} | {f"coverage@{k}": 0.1838 for k in (5, 10, 20)}
    final = {**more, **record.final}
    return replace(record, final=final, intervals={key: (value * 0.9, value * 1.1) for key, value in final.items()})


@pytest.fixture(scope="module")
def records():
    """An audit with a drill-down: with a posterior, without one, with test labels, and with a hostile name."""
    samplers = {"RNS": bn.RNS(), "BNS": bn.BNS(), "oracle": oracle, HOSTILE: bn.DNS()}
    settings = {"seeds": 2, "epochs": 3, "probes": 200, "users": 5, "progress": False}
    return bn.audit(
        bn.MF(dim=4),
        bn.hide(bn.synthetic(60, 50, n_interactions=600, liked_share=0.4, seed=0), [0.2, 0.5]),
        samplers,
        **settings,
    ).records


def oracle(split):
    return bn.BNS(prior=bn.priors.Oracle(split.held_out))


@pytest.fixture(scope="module")
def pages(records, tmp_path_factory):
    """Name → file."""
    folder = tmp_path_factory.mktemp("pages")
    ease = run("EASE", ndcg=0.43, epochs=[{"epoch": 1, "ndcg@20": 0.43}], spec={"sampler": None})
    more = [run(LONG, seed, 0.41 + seed / 100) for seed in range(3)]
    compared = [*three_samplers(), *(timed(each, 30.0) for each in more), timed(run(HOSTILE, ndcg=0.39), 0.004), ease]
    return {
        "comparison": write_report([with_all_metrics(each) for each in compared], folder / "comparison.html"),
        "audit": write_audit(records, folder / "audit.html"),
        "run": write_report([run("RNS")], folder / "run.html"),
        "search": write_tuning_report(search(), folder / "search.html"),
    }


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    ("width", "scheme"), [(1400, LIGHT), (360, LIGHT), (800, DARK)], ids=["wide", "narrow", "dark"]
)
def test_nothing_is_raw_or_cut_off_and_nothing_is_fetched(browser, pages, name, width, scheme):
    with browser.page(pages[name], width=width, scheme=scheme) as page:
        assert page.flaws() == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_off_on_paper(browser, pages, name):
    with browser.page(pages[name], width=1032) as page:  # A4, landscape, without its margins
        page.call("Emulation.setEmulatedMedia", media="print", features=[DARK])
        assert page.flaws() == []
        assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.value("getComputedStyle(document.querySelector('figure svg')).filter") == "none"


BAD = r"""<!doctype html><meta charset="utf-8"><body style="margin: 0">
<p>$\mathdefault{10^{-2}}$</p><p>a NaN</p><p>{{ title }}</p>
<p>{py:class}`BNS`</p><p>:func:`fit`</p><p>&lt;b&gt;bold&lt;/b&gt;</p><p>&amp;lt;b&amp;gt;</p><p>```python</p>
<div style="overflow: hidden; width: 90px"><p style="width: 300px">cut</p></div>
<div style="width: 3000px">wide</div>
<table style="table-layout: fixed; width: 60px"><td style="white-space: nowrap">wider than the cell</table>
<svg width="50" height="20"><text x="30" y="10">longer than that</text></svg>
<script>console.error("a word of complaint"); new Image().src = "http://127.0.0.1:9/x.png"</script>"""


def test_a_bad_page_is_found_out(browser, tmp_path):
    (tmp_path / "bad.html").write_text(BAD, encoding="utf-8")
    with pytest.raises(AssertionError), browser.page(tmp_path / "bad.html", width=800) as page:  # noqa: PT012
        kinds = [flaw.partition(":")[0] for flaw in page.flaws()]
        assert kinds.count("raw text") == 8
        expected = {"the page scrolls", "beyond the page", "cut off", "wider than its cell", "cut off by its drawing"}
        assert expected <= set(kinds)
        assert any("a word of complaint" in said for said in page.complaints())
        assert page.requests() == ["http://127.0.0.1:9/x.png"]
        page.wait("performance.getEntriesByType('resource').length > 0")
        assert [each.partition(": ")[0] for each in page.missing()] == ["http://127.0.0.1:9/x.png"]


CHART = "document.querySelectorAll('svg[data-chart]')[{}]"


def point(page, chart, series, place=-1):
    """Where a point of a series is on the screen, and what it says."""
    page.middle("svg[data-chart]", chart)
    at = f"{CHART.format(chart)}"
    found = f"JSON.parse({at}.dataset.chart).series[{series}].points.at({place})"
    x, y = page.value(
        f"(([x, y]) => (p => [p.x, p.y])(new DOMPoint(x, y).matrixTransform({at}.getScreenCTM())))({found})"
    )
    return (x, y), page.value(f"{found}.slice(2)")


def tip(page):
    return page.value("document.getElementById('tip').hidden ? null : document.getElementById('tip').innerText")


@pytest.mark.parametrize("name", PAGES)
def test_every_chart_tells_the_series_and_the_values_of_a_point(browser, pages, name):
    with browser.page(pages[name]) as page:
        charts = page.value("[...document.querySelectorAll('svg[data-chart]')].map(svg => svg.checkVisibility())")
        assert any(charts)
        for chart in [place for place, is_shown in enumerate(charts) if is_shown]:  # others are folded
            at, _ = point(page, chart, 0)
            page.hover(at)
            who, *lines = tip(page).split("\n")
            series = page.value(f"JSON.parse({CHART.format(chart)}.dataset.chart).series")
            told = {each["name"]: [values[2:] for values in each["points"]] for each in series}
            assert lines in told[who], "another series may have a point at the same place"
            assert any(character.isdigit() for line in lines for character in line)
        page.hover((2, 2))
        assert tip(page) is None


def test_a_point_of_a_curve_tells_the_epoch_the_mean_and_every_seed(browser, pages):
    with browser.page(pages["comparison"]) as page:
        figures = page.value("[...document.querySelectorAll('figure')].map(f => f.querySelector('strong').textContent)")
        at, _ = point(page, figures.index("NDCG@20 over epochs"), 2)
        page.hover(at)
        means = [each.at_epochs("ndcg@20")[8] for each in three_samplers() if each.label == "BNS"]
        seeds = ", ".join(f"seed {seed}: {value:.4f}" for seed, value in enumerate(means))
        assert tip(page).split("\n") == ["BNS", "epoch 8", f"NDCG@20 {sum(means) / 3:.4f}", seeds]


def test_keys_walk_along_the_points(browser, pages):
    with browser.page(pages["comparison"]) as page:
        figures = page.value("[...document.querySelectorAll('figure')].map(f => f.querySelector('strong').textContent)")
        chart = figures.index("NDCG@20 over epochs")
        page.middle("svg[data-chart]", chart)
        page.value(f"{CHART.format(chart)}.focus()")
        told = []
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Escape"):
            page.call("Input.dispatchKeyEvent", type="keyDown", key=key)
            told.append(tip(page) and tip(page).split("\n")[:2])
        assert told == [["RNS", "epoch 4"], ["RNS", "epoch 6"], ["DNS", "epoch 6"], None]


def shown_series(page, chart):
    visible = '[...svg.querySelectorAll(`[data-series="${at}"]`)].some(e => getComputedStyle(e).display !== "none")'
    each = f"JSON.parse(svg.dataset.chart).series.map((s, at) => {visible} ? s.name : null).filter(n => n)"
    return page.value(f"(svg => {each})({CHART.format(chart)})")


@pytest.mark.parametrize(
    ("width", "selector"),
    [(1400, "svg [data-label='1'] text"), (360, ".legend button:nth-child(2)")],
    ids=["wide", "narrow"],
)
@pytest.mark.parametrize("name", ["comparison", "audit"])
def test_a_click_on_a_name_hides_its_series_and_another_shows_it(browser, pages, name, width, selector):
    with browser.page(pages[name], width=width) as page:
        chart = 1
        all_names = shown_series(page, chart)
        at, _ = point(page, chart, 1)
        page.hover(at)
        assert tip(page).startswith(all_names[1])
        inside = f"figure:has(> svg[data-slug-{chart}]) "
        page.value(f"{CHART.format(chart)}.setAttribute('data-slug-{chart}', '')")
        page.click(inside + selector)
        assert shown_series(page, chart) == [each for each in all_names if each != all_names[1]]
        page.hover(at)
        assert tip(page) is None or not tip(page).startswith(all_names[1])
        assert page.value(f"document.querySelector({json.dumps(inside + '[aria-pressed=false]')}) !== null")
        page.click(inside + selector)
        assert shown_series(page, chart) == all_names


def column(page, selector, place):
    """What the rows in sight of the first such table sort by."""
    rows = f"[...document.querySelector('{selector}').tBodies[0].rows].filter(row => !row.hidden)"
    return page.value(f"{rows}.map(row => row.cells[{place}].dataset.value)")


def test_a_table_sorts_by_a_column_both_ways_and_back(browser, pages):
    with browser.page(pages["comparison"]) as page:
        before = column(page, "table", 1)
        orders = []
        for _ in range(3):
            page.click("table thead button", 1)
            orders.append(column(page, "table", 1))
        assert orders == [sorted(before, key=float, reverse=True), sorted(before, key=float), before]


def test_a_table_shows_the_rows_that_hold_every_word(browser, pages):
    with browser.page(pages["comparison"]) as page:
        page.type(".tools input", "bns softmax")
        assert column(page, "table", 0) == [LONG]
        assert page.value("document.querySelector('.tools [role=status]').textContent") == f"1 of {len(COMPARED)} rows"
        page.type(".tools input", " nobody")
        assert column(page, "table", 0) == []


def test_the_reader_chooses_between_light_and_dark(browser, pages):
    back = "getComputedStyle(document.querySelector('figure')).backgroundColor"
    drawn = "getComputedStyle(document.querySelector('figure svg')).filter"
    light, dark = ["rgb(255, 255, 255)", "none"], ["rgb(0, 0, 0)", "invert(1) hue-rotate(180deg)"]
    for scheme, looks in ((LIGHT, [light, dark, light]), (DARK, [dark, light, dark])):
        with browser.page(pages["run"], scheme=scheme) as page:
            seen = [page.value(f"[{back}, {drawn}]")]
            for _ in range(2):
                page.click("#theme")
                seen.append(page.value(f"[{back}, {drawn}]"))
        assert seen == looks


def recorded(records, label, user):
    """The picks of a user by the first seed on the first split: negative → prior, unbias, false."""
    record = next(each for each in records if each.label == label)
    found = record.epochs[-1]["drill_down"]
    picks = found["picks"]
    rows = [place for place, at in enumerate(picks["user"]) if at == user]
    return [{name: picks[name][row] for name in picks} for row in rows], found["users"]["id"][user]


def first_explorer(page):
    page.value("document.querySelector('[data-explorer]').id = 'first'")
    page.middle("#first")
    return "#first"


def choose(page, which, value):
    """Choose the user (0) or the sampler (1) of the drill-down."""
    select = f"document.querySelectorAll('[data-explorer] select')[{which}]"
    page.value(f"(s => {{ s.value = '{value}'; s.dispatchEvent(new Event('change')); }})({select})")


def test_the_drill_down_shows_what_each_sampler_picked_for_a_user(browser, pages, records):
    with browser.page(pages["audit"]) as page:
        place = first_explorer(page)
        choose(page, 0, 3)
        table = f"{place} table"
        assert set(column(page, table, 0)) == {"RNS", "BNS", "oracle (sees test labels)", HOSTILE}
        choose(page, 1, 1)
        rows, user = recorded(records, "BNS", 3)
        assert page.value(f"document.querySelector('{place} [role=status]').textContent").startswith(f"User {user}: ")
        assert column(page, table, 2) == [row["negative"] for row in rows]
        assert [float(each) for each in column(page, table, 7)] == [row["prior"] for row in rows]
        posterior = [float(each) for each in column(page, table, 8)]
        assert posterior == pytest.approx([1 - row["unbias"] for row in rows], abs=1e-5)
        assert [each != "no" for each in column(page, table, 3)] == [row["false"] for row in rows]
        dots = page.value(f"document.querySelectorAll('{place} .strip .pick').length")
        wrong = page.value(f"document.querySelectorAll('{place} .strip .wrong').length")
        assert (dots, wrong) == (len(rows), sum(row["false"] for row in rows))
        page.hover(page.middle(f"{place} .strip .pick"))
        assert tip(page).startswith("BNS\nnegative ")
        page.click(f"{place} input[type=checkbox]")
        assert column(page, table, 2) == [row["negative"] for row in rows if row["false"]]
        page.click(f"{table} thead button", 4)
        scores = [row["score"] for row in rows if row["false"]]
        assert [float(each) for each in column(page, table, 4)] == sorted(scores, reverse=True)


def test_a_sampler_without_a_posterior_has_dashes_in_the_drill_down(browser, pages):
    with browser.page(pages["audit"], width=360) as page:
        place = first_explorer(page)
        choose(page, 1, 0)
        rows = f"[...document.querySelectorAll('{place} tbody tr')]"
        shown = page.value(f"{rows}.map(row => [7, 8].map(at => row.cells[at].textContent))")
        assert shown
        assert all(pair == ["–", "–"] for pair in shown)
        assert page.flaws() == []


def ticks(page, chart):
    """The labels in sight of the vertical axis, from below, as numbers."""
    texts = f"[...{CHART.format(chart)}.querySelectorAll('[data-yaxis] text')].filter(t => !t.closest('.off'))"
    shown = page.value(f"{texts}.map(t => [t.textContent, t.getBoundingClientRect().top])")
    return [
        float(text.replace("−", "-").rstrip("%"))
        for text, _ in sorted(shown, key=lambda pair: -pair[1])
        if "@" not in text
    ]


def test_the_axis_of_curves_follows_what_is_shown(browser, pages):
    with browser.page(pages["comparison"]) as page:
        figures = page.value("[...document.querySelectorAll('figure')].map(f => f.querySelector('strong').textContent)")
        chart = figures.index("NDCG@20 over epochs")
        series = page.value(f"JSON.parse({CHART.format(chart)}.dataset.chart).series.map(s => s.name)")
        before, drawn = ticks(page, chart), page.value(f"{CHART.format(chart)}.innerHTML")
        names = f"{CHART.format(chart)}.querySelectorAll('[data-label]')"
        press = (
            f"{names}.forEach(n => n.dataset.label === '{series.index('RNS')}' || n.dispatchEvent(new Event('click')))"
        )
        page.value(f"void {press}")
        after = ticks(page, chart)
        assert after == sorted(after)
        assert after[-1] - after[0] < before[-1] - before[0]
        values = [each.at_epochs("ndcg@20") for each in three_samplers() if each.label == "RNS"]
        last = sum(each[8] for each in values) / len(values)
        assert after[0] - 0.05 < last < after[-1] + 0.05
        at = point_in_sight(page, chart, series.index("RNS"))
        page.hover(at)
        assert tip(page).startswith("RNS\nepoch 8")
        # the mark of the last point stands where its value is on the new axis
        low, high = tick_places(page, chart)
        assert at[1] == pytest.approx(low[1] + (last - low[0]) / (high[0] - low[0]) * (high[1] - low[1]), abs=2)
        page.hover((2, 2))
        page.value(f"void {press}")
        assert ticks(page, chart) == before
        assert page.flaws() == []
        assert len(page.value(f"{CHART.format(chart)}.innerHTML")) == pytest.approx(len(drawn), rel=0.1)


def test_a_series_that_is_flat_but_for_rounding_can_stay_alone(browser, tmp_path):
    """The ticks of an axis of 1e-13 were counted without end."""
    flat = [{"epoch": epoch, "ndcg@20": 0.3 + 1e-13 * epoch, "tnr": 0.9} for epoch in range(1, 9)]
    records = [run("RNS"), run("FLAT", ndcg=0.3, epochs=flat)]
    with browser.page(write_report(records, tmp_path / "flat.html")) as page:
        figures = page.value("[...document.querySelectorAll('figure')].map(f => f.querySelector('strong').textContent)")
        chart = figures.index("NDCG@20 over epochs")
        names = f"{CHART.format(chart)}.querySelectorAll('[data-label]')"
        for alone in (0, 1):
            press = f"{names}.forEach(n => n.dataset.label === '{alone}' || n.dispatchEvent(new Event('click')))"
            page.value(f"void {press}")
            found = ticks(page, chart)
            assert 2 <= len(found) < 12
            assert found == sorted(found)
            page.value(f"void {press}")


@pytest.mark.parametrize("label", ["BNS " * 60, "x" * 200], ids=["words", "one word"])
def test_a_name_of_200_characters_is_cut_off_nowhere(browser, tmp_path, label):
    with browser.page(write_report([run("RNS"), run(label)], tmp_path / "long.html"), width=360) as page:
        assert page.flaws() == []


def point_in_sight(page, chart, series):
    """Where the last mark of a series is on the screen."""
    uses = f"[...{CHART.format(chart)}.querySelectorAll('[data-series=\"{series}\"] use')]"
    last = f"{uses}.filter(use => use.getAttribute('x') > 0).at(-1)"
    page.middle("svg[data-chart]", chart)
    return page.value(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({last}.getBoundingClientRect())")


def tick_places(page, chart):
    """The lowest and the highest tick: (value, where its line is on the screen)."""
    each = "g => [g.querySelector('text').textContent, g.querySelector('path').getBoundingClientRect()]"
    groups = (
        f"[...{CHART.format(chart)}.querySelectorAll('[data-yaxis] > g:has(path)')].filter(g => !g.closest('.off'))"
    )
    found = page.value(f"{groups}.map({each}).map(([t, b]) => [Number(t), b.y + b.height / 2])")
    return found[0], found[-1]
