"""What the documents say is so: their code runs, and their numbers are the recorded ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (HOME / page).read_text(encoding="utf-8"), flags=re.DOTALL)


PAGES = {  # and how many blocks each promises
    "README.md": 3,
    "docs/models.md": 4,
    "docs/priors.md": 3,
    "docs/tuning.md": 1,
    "docs/audit.md": 1,
}
BLOCKS = [pytest.param(code, id=f"{page} {place}") for page in PAGES for place, code in enumerate(blocks(page), 1)]


@pytest.mark.parametrize("code", BLOCKS)
def test_the_code_of_a_page_runs(code, tmp_path):
    if "torch" in code.lower():
        pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")
    if "bn.tune(" in code:
        pytest.importorskip("optuna", reason="optuna is not installed (the extra 'tune')")
    (tmp_path / "block.py").write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "block.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_code_it_promises(page):
    assert len(blocks(page)) == PAGES[page]


@pytest.mark.parametrize(
    "script", ["results_page.py", "reproduction_page.py", "speed_page.py", "audit_page.py", "beyond_page.py"]
)
def test_a_page_of_results_is_what_the_records_give(script):
    done = subprocess.run(
        [sys.executable, f"benchmarks/{script}", "--check"], cwd=HOME, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
