"""Links that are right in the repository and on the site.

A page links to files beside ``docs/``: to Markdown that has a page here, and to sources, tests and records, which have
none. On the site the first become links to that page, the others the name of the file. Numbers are kept in one line
with their intervals.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)\s#]+)(#[^)\s]*)?\)")
# in a narrow column a number stays with its interval, and p with its value
TOGETHER = re.compile(r"(?<=\d) ± (?=\d)|\bp [<=] (?=\d)")
# what lies beside docs/ and has a page here
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def rewrite(app: Sphinx, name: str, source: list[str]) -> None:
    root, folder = Path(app.srcdir).parent, Path(app.srcdir, name).parent

    def one(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / link[2]))
        if target.is_relative_to(app.srcdir):
            return link[0]
        inside = target.relative_to(root).as_posix()
        if inside in PAGES:
            page = os.path.relpath(Path(app.srcdir, PAGES[inside]), folder)
            return f"[{link[1]}]({page}{link[3] or ''})"
        return f"`{inside}`" if link[1].strip("`/") in inside else f"{link[1]} (`{inside}`)"

    source[0] = TOGETHER.sub(lambda found: found[0].replace(" ", "\u00a0"), LINK.sub(one, source[0]))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
