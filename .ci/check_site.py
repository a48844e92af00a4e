"""Check the built docs site: links, what pages load, raw markup, the parameters of the reference, and in a browser
without a network the console and the width on a narrow screen.

python .ci/check_site.py build/site
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# markup that a reader should not see: roles, directives, fences, mathtext
RAW = re.compile(r":(?:func|class|meth|mod|data|ref|doc):`|\{code-cell\}|^```|^:::|\$\\math", flags=re.MULTILINE)
VERBATIM = {"pre", "code", "script", "style"}
NARROW = 500  # pixels, the least that Chromium gives a window
OPENED = ("index.html", "tutorials/five-minutes.html", "how-to/gallery.html", "reference/api/bayesneg.BNS.html")


class Page(HTMLParser):
    """What a page links to, what it loads, and the anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.text: list[str] = []
        self._verbatim = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        self._verbatim += tag in VERBATIM
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADED and LOADED[tag] in found and found.get("rel") not in ("index", "search", "next", "prev"):
            self.loads.append(found[LOADED[tag]])

    def handle_endtag(self, tag: str) -> None:
        self._verbatim -= tag in VERBATIM

    def handle_data(self, data: str) -> None:
        if not self._verbatim:
            self.text.append(data)


@cache
def page(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def dead_links(site: Path, path: Path) -> list[str]:
    """Links and loaded files that are not there; anchors that their page does not have."""
    found = []
    for link in (*page(path).links, *page(path).loads):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or link.startswith(("#top", "javascript")):
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        if not target.is_relative_to(site) or not target.exists():
            found.append(f"{link}: no such file")
        elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in page(target).anchors:
            found.append(f"{link}: no such anchor")
    return found


def loaded_from_elsewhere(path: Path) -> list[str]:
    """What a page would fetch from the network: the site must work offline."""
    loads = [link for link in page(path).loads if urlsplit(link).netloc]
    return [f"{link}: loaded from the network" for link in loads]


def raw_markup(path: Path) -> list[str]:
    return [f"raw markup: {found}" for found in RAW.findall("".join(page(path).text))]


def styles_from_elsewhere(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [f"{link}: loaded from the network" for link in re.findall(r"url\(['\"]?((?:https?:)?//[^)'\"]+)", text)]


def undocumented(site: Path) -> list[str]:
    """Public names without a page, and parameters that their page does not name."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "_site"))
    from public_names import FOLDER, pages

    from bayesneg.config.docstrings import arguments

    found = []
    for name in {each.path: each for each in pages().values()}.values():
        path = site / FOLDER / f"{name.path}.html"
        if not path.exists():
            found.append(f"{name.path}: no page")
            continue
        text = path.read_text(encoding="utf-8")
        said = arguments(name.value.__doc__) if callable(name.value) else {}
        found += [f"{name.path}: no {each}" for each in said if f"<strong>{each.lstrip('*')}</strong>" not in text]
    return found


def chromium(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A page in headless Chromium without a network: its console on stderr, what it became on stdout."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        return subprocess.CompletedProcess([], 0, "", "")
    with tempfile.TemporaryDirectory() as folder:
        always = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}", "--dump-dom"]
        always += ["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--virtual-time-budget=5000"]
        command = [browser, *always, *options, path.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def too_wide(site: Path, name: str) -> list[str]:
    """How far a page is wider than a narrow screen: what is there is cut off."""
    measured = (site / name).with_name("measured.html")
    root = "document.documentElement"
    script = f"<script>onload = () => document.title = {root}.scrollWidth - {root}.clientWidth</script></body>"
    measured.write_text((site / name).read_text(encoding="utf-8").replace("</body>", script), encoding="utf-8")
    try:
        shown = chromium(measured, f"--window-size={NARROW},900").stdout
    finally:
        measured.unlink()
    more = re.search(r"<title>(\d+)</title>", shown)
    return [f"{more[1]} pixels are cut off"] if more and int(more[1]) else []


def complaints(site: Path, name: str) -> list[str]:
    """What headless Chromium, without a network, says on the console of a page."""
    done = chromium(site / name)
    said = [line.partition("CONSOLE")[2] for line in done.stderr.splitlines() if "CONSOLE" in line]
    return [line for line in said if "[PST]" not in line]  # the theme tells which colours it takes


def main() -> int:
    site = Path(sys.argv[1]).resolve()
    found: dict[str, list[str]] = {}
    pages = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    for path in pages:
        faults = [*dead_links(site, path), *loaded_from_elsewhere(path), *raw_markup(path)]
        if faults:
            found[str(path.relative_to(site))] = faults
    for path in sorted(site.rglob("*.css")):
        if faults := styles_from_elsewhere(path):
            found[str(path.relative_to(site))] = faults
    found["the reference"] = undocumented(site)
    for name in OPENED:
        found[f"the console of {name}"] = complaints(site, name)
        found[f"{name} on a narrow screen"] = too_wide(site, name)
    for where, faults in found.items():
        for fault in faults:
            print(f"{where}: {fault}", file=sys.stderr)
    n_faults = sum(map(len, found.values()))
    print(f"{len(pages)} pages, {n_faults} faults")
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
