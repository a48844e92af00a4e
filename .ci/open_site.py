"""The built docs site in headless Chromium without a network: every page opened wide and narrow, and worked.

What a reader would stumble on is a fault: raw markup, what is cut off, what the console says, files that are missing,
and a control (theme, search, sidebar; in a report names, heads of tables, filters, points) that does nothing.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser import DARK, Browser, OpenPage, chromium

WIDE, NARROW = 1400, 390  # pixels
LOOKED_FOR = ("false negative", "reference/api/bayesneg.BNS.html", "BNS")  # two searches and where the second leads
THEME, MENU = ".bd-header .theme-switch-button", "button.primary-toggle"
MODE = "document.documentElement.dataset.mode"


def faults(site: Path, pages: list[Path]) -> dict[str, list[str]]:
    """Page → what is wrong with it; nothing where this machine has no browser.

    Args:
        site: The folder of the site.
        pages: Its pages, reports among them.
    """
    program = chromium()
    if program is None:
        print("no Chromium on this machine: the pages were not opened", file=sys.stderr)
        return {}
    found: dict[str, list[str]] = {}
    folders: set[Path] = set()
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder), program) as browser:
        with browser.tab(width=WIDE) as page:
            for path in pages:
                page.resize(WIDE, 900)
                page.go(path)
                work = of_report(page) if path.parent.name == "reports" else of_page(page, path.parent not in folders)
                found[f"{path.relative_to(site)}, opened"] = [*work, *of_console(page)]
                folders.add(path.parent)
            found["the search"] = [*of_search(page, site), *of_console(page)]
        with browser.tab(width=WIDE, scheme=DARK) as page:  # the site was switched by its own button
            for path in sorted(site.glob("reports/*.html")):
                page.go(path)
                found[f"{path.relative_to(site)}, dark"] = [*page.flaws(), *of_console(page)]
    return {where: said for where, said in found.items() if said}


def of_console(page: OpenPage) -> list[str]:
    """What a page said on the console, but for the theme's note on its colours, and what it did not find."""
    return [*(line for line in page.complaints() if "[PST]" not in line), *page.missing()]


def of_page(page: OpenPage, is_first: bool) -> Iterator[str]:
    """A page of the site, wide and on a phone; at the first of a folder what its pages share, theme and menus."""
    if is_first:
        yield from _sidebar(page)
    page.stand_still()
    yield from page.flaws()
    if is_first:
        yield from _theme(page)
    page.resize(NARROW, 800)
    yield from (f"narrow: {flaw}" for flaw in page.flaws())
    if is_first:
        page.click(MENU)
        page.wait("document.getElementById('pst-primary-sidebar-modal').open")
        yield from (f"menu: {flaw}" for flaw in page.flaws())


def _theme(page: OpenPage) -> Iterator[str]:
    """The switch turns the page dark and light; nothing is cut off in either."""
    for mode in ("dark", "light"):
        page.click(THEME)
        page.click(f".bd-header .theme-change-button[data-mode={mode}]")
        if page.value(MODE) != mode:
            yield f"the theme switch does not turn the page {mode}"
        yield from (f"{mode}: {flaw}" for flaw in page.flaws())


def _sidebar(page: OpenPage) -> Iterator[str]:
    """The button above the sidebar folds it and brings it back."""
    fold, width = "#pst-collapse-sidebar-button", "document.querySelector('.bd-sidebar-primary').offsetWidth"
    if not page.value(f"document.querySelector('{fold}')?.checkVisibility() ?? false"):
        return
    widths = [page.value(width)]
    for _ in range(2):
        page.click(fold)
        page.value("new Promise(done => setTimeout(done, 1000))")  # it slides
        widths.append(page.value(width))
    if not widths[1] < widths[0] == widths[2]:
        yield f"the sidebar does not fold and unfold: its widths are {widths}"


def of_report(page: OpenPage) -> Iterator[str]:
    """A report: every chart hovered, every name, head and filter used, wide, narrow and in the other theme."""
    yield from page.flaws()
    yield from _charts(page)
    yield from _names(page, "svg[data-chart] [data-label]", "false")
    yield from _tables(page)
    page.click("#theme")
    yield from (f"other theme: {flaw}" for flaw in page.flaws())
    page.resize(NARROW, 800)
    yield from (f"narrow: {flaw}" for flaw in page.flaws())
    hidden = ".legend button[aria-pressed=false]"
    yield from _names(page, hidden, "true")
    if page.value(f"document.querySelectorAll('{hidden}, .off').length"):
        yield "a series that was shown again is hidden"


def _charts(page: OpenPage) -> Iterator[str]:
    """The last point of every chart tells its values."""
    charts = "[...document.querySelectorAll('svg[data-chart]')]"
    last = "JSON.parse(s.dataset.chart).series.flatMap(e => e.points).at(-1) ?? null"
    for place, point in enumerate(page.value(f"{charts}.map(s => {last})")):
        if point is None:
            continue
        page.middle("svg[data-chart]", place)
        on_screen = f"new DOMPoint({point[0]}, {point[1]}).matrixTransform({charts}[{place}].getScreenCTM())"
        x, y = page.value(f"(p => [p.x, p.y])({on_screen})")
        page.hover((x, y))
        if page.value("document.getElementById('tip').hidden"):
            yield f"chart {place}: nothing is told at {point}"


def _names(page: OpenPage, selector: str, pressed: str) -> Iterator[str]:
    """A click on each of these names hides its series, or shows it again."""
    page.value(f"void (names = [...document.querySelectorAll({json.dumps(selector)})])")
    for place in range(page.value("names.length")):
        page.value(f"names.forEach((name, at) => name.toggleAttribute('data-now', at === {place}))")
        page.click("[data-now]")
        if page.value(f"names[{place}].ariaPressed") != pressed:
            yield f"{selector} {place}: a click changes nothing"


def _tables(page: OpenPage) -> Iterator[str]:
    """The head of each column sorts; a filter that nothing matches leaves no row, an empty one all; the drill-down."""
    for place in range(page.value("document.querySelectorAll('thead button').length")):
        page.click("thead button", place)
        if not page.value(f"document.querySelectorAll('thead button')[{place}].parentElement.ariaSort"):
            yield f"head {place}: a click does not sort"
    filters = ".tools input[type=search]"
    for place in range(page.value(f"document.querySelectorAll('{filters}').length")):
        box = f"document.querySelectorAll('{filters}')[{place}]"
        rows = f"[...{box}.parentElement.nextElementSibling.querySelectorAll('tbody tr')].filter(r => !r.hidden).length"
        counts = [page.value(rows)]
        page.click(filters, place)
        for text in ("nothing holds this", ""):
            page.value(f"{box}.select()")
            page.call("Input.insertText", text=text) if text else _press(page, "Backspace", 8)
            counts.append(page.value(rows))
        if not counts[0] == counts[2] > counts[1] == 0:
            yield f"filter {place}: rows before, where none matches and after: {counts}"
    for place in range(page.value("document.querySelectorAll('[data-explorer] select').length")):
        choose = "(s => void (s.selectedIndex = s.options.length - 1, s.dispatchEvent(new Event('change'))))"
        page.value(f"{choose}(document.querySelectorAll('[data-explorer] select')[{place}])")
    yield from (f"drill-down: {flaw}" for flaw in page.flaws())


def _press(page: OpenPage, key: str, code: int, **more: str) -> None:
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)


def of_search(page: OpenPage, site: Path) -> Iterator[str]:
    """The search of a page at the top and of one below: what is looked for is found, and its page opens."""
    words, target, name = LOOKED_FOR
    page.resize(WIDE, 900)
    for start, wanted in (("index.html", words), ("reference/api/bayesneg.RNS.html", name)):
        page.go(site / start)
        page.click(".search-button-field, .search-button__button")
        page.wait("document.querySelector('#pst-search-dialog').open")
        page.call("Input.insertText", text=wanted)
        _press(page, "Enter", 13, text="\r")
        page.wait("location.pathname.endsWith('/search.html') && document.readyState === 'complete'")
        page.wait("/\\d/.test(document.querySelector('.search-summary, #search-results p')?.textContent ?? '')")
        links = page.value("[...document.querySelectorAll('#search-results ul a')].map(a => a.href)")
        if not links:
            yield f"nothing is found for {wanted!r}"
        yield from page.flaws()
    if not any(target in link for link in links):
        yield f"{name}: {target} is not among {links}"
