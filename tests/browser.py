"""A real browser, where this machine has one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def open_without_complaint(page: Path, folder: Path) -> None:
    """Open a page in headless Chromium and take a picture of it; nothing may be said on its console."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    picture = folder / "page.png"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--screenshot={picture}"]
    done = subprocess.run(
        [browser, *options, f"--user-data-dir={folder / 'profile'}", page.as_uri()],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert picture.stat().st_size > 10_000
    assert "CONSOLE" not in done.stderr
