"""A real browser, where this machine has one."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest


def open_without_complaint(page: Path, folder: Path) -> None:
    """Open a page in headless Chromium and take a picture of it; nothing may be said on its console."""
    picture = folder / "page.png"
    done = _chromium(page, folder, "--enable-logging=stderr", f"--screenshot={picture}")
    assert picture.stat().st_size > 10_000
    assert "CONSOLE" not in done.stderr


def measured(text: str, expression: str, folder: Path, *options: str) -> Any:
    """The value of a JavaScript expression in a page that Chromium has laid out."""
    page = folder / "measured.html"
    script = f"<script>document.title = JSON.stringify({expression})</script></body>"
    free = re.sub(r"<meta http-equiv[^>]*>", "", text)  # the page itself allows no other script
    page.write_text(free.replace("</body>", script), encoding="utf-8")
    shown = _chromium(page, folder, "--window-size=1100,800", "--dump-dom", *options).stdout
    return json.loads(html.unescape(shown.partition("<title>")[2].partition("</title>")[0]))


def _chromium(page: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    always = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    return subprocess.run(
        [browser, *always, *options, page.as_uri()], capture_output=True, text=True, check=False, timeout=120
    )
