"""One HTML file that opens offline: the frame that every page of ours has, and how it is written.

Nothing is fetched (a content security policy forbids it) and a page reads without its script, which only sorts tables.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from pathlib import Path

from bayesneg.errors import InputError
from bayesneg.report.assets import SCRIPT, STYLE
from bayesneg.report.markup import Markup, element


def page(title: str, *parts: Markup) -> str:
    """The whole file as text."""
    main = element("main", {}, *parts)
    whole = element("html", {"lang": "en"}, _head(title), element("body", {}, main, _script()))
    return f"<!doctype html>\n{whole}\n"


def write_page(text: str, path: str | Path) -> Path:
    """Write the file; a reader never sees half of it. Returns the path."""
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file in it, such as {target / 'report.html'}")
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(unfinished).chmod(0o644)
        Path(unfinished).replace(target)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    return target


def _head(title: str) -> Markup:
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return element(
        "head",
        {},
        element("meta", {"charset": "utf-8"}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        element("title", {}, title),
        element("style", {}, Markup(STYLE)),
    )


def _script() -> Markup:
    return element("script", {}, Markup(SCRIPT))
