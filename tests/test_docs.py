"""What the documents say is so: their code runs, and their numbers are the recorded ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (HOME / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS, ids=lambda code: code.strip().splitlines()[-1][:30])
def test_the_code_of_the_readme_runs(code, tmp_path):
    (tmp_path / "block.py").write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "block.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_has_the_code_it_promises():
    assert len(BLOCKS) == 3


def test_the_results_page_is_what_the_recorded_results_give():
    done = subprocess.run(
        [sys.executable, "benchmarks/results_page.py", "--check"], cwd=HOME, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
