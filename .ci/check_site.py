"""Check the built docs site: links, what pages load, raw markup, a page with its parameters for every public name; then
every page in a browser without a network (``open_site.py``).

python .ci/check_site.py build/site
"""

from __future__ import annotations

import re
import sys
import time
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import open_site

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# markup that a reader should not see: roles, directives, fences, mathtext
RAW = re.compile(
    r":(?:func|class|meth|mod|data|ref|doc):`|\{code-cell\}|^```|^:::|\$\\math|^\| .* \|$", flags=re.MULTILINE
)
VERBATIM = {"pre", "code", "script", "style"}


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


def warnings_of_cells(path: Path) -> list[str]:
    """What the cells of a tutorial wrote to stderr: warnings, with paths of the machine that built the site."""
    text = path.read_text(encoding="utf-8")
    return [
        f"a cell warns: {said[:160]}" for said in re.findall(r'class="output stderr.*?<pre>(.*?)</pre>', text, re.S)
    ]


def styles_from_elsewhere(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [f"{link}: loaded from the network" for link in re.findall(r"url\(['\"]?((?:https?:)?//[^)'\"]+)", text)]


def undocumented(site: Path) -> list[str]:
    """Public names without a page, and parameters that their page does not name."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "_site"))
    from parameters import parameters
    from public_names import FOLDER, pages

    found = []
    for name in {each.path: each for each in pages().values()}.values():
        path = site / FOLDER / f"{name.path}.html"
        if not path.exists():
            found.append(f"{name.path}: no page")
            continue
        text = path.read_text(encoding="utf-8")
        taken = parameters(name.value) if callable(name.value) else []
        found += [f"{name.path}: no {each}" for each in taken if not re.search(rf"<strong>\**{each}</strong>", text)]
    return found


def main() -> int:
    site = Path(sys.argv[1]).resolve()
    found: dict[str, list[str]] = {}
    pages = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    for path in pages:
        faults = [*dead_links(site, path), *loaded_from_elsewhere(path), *raw_markup(path), *warnings_of_cells(path)]
        if faults:
            found[str(path.relative_to(site))] = faults
    for path in sorted(site.rglob("*.css")):
        if faults := styles_from_elsewhere(path):
            found[str(path.relative_to(site))] = faults
    found["the reference"] = undocumented(site)
    start = time.monotonic()
    found |= open_site.faults(site, pages)
    print(f"opened in {time.monotonic() - start:.0f} s")
    for where, faults in found.items():
        for fault in faults:
            print(f"{where}: {fault}", file=sys.stderr)
    n_faults = sum(map(len, found.values()))
    print(f"{len(pages)} pages, {n_faults} faults")
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
