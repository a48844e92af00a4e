"""What the documents say is so: their code runs, and their numbers are the recorded ones."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.pages import publish as pages
from benchmarks.pages.__main__ import PAGES as RESULTS_PAGES

HOME = Path(__file__).parent.parent


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (HOME / page).read_text(encoding="utf-8"), flags=re.DOTALL)


PAGES = {  # and how many blocks each promises
    "README.md": 3,
    "docs/models.md": 5,
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


@pytest.mark.parametrize("page", RESULTS_PAGES)
def test_a_page_of_results_is_what_the_records_give(page):
    import_module(f"benchmarks.pages.{page}").publish(check=True)


def test_a_picture_is_stale_when_something_in_it_can_be_seen_to_differ(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pages, "HOME", tmp_path)
    drawing = '<path id="m{name}" d="M 10.{digit} 20" style="stroke: {ink}"/><use href="#m{name}"/><text>{tick}</text>'
    look = {"name": "a1", "digit": 1, "ink": "#111111", "tick": "0.32"}

    def drawn(**changed):
        return lambda folder: (folder / "one.svg").write_text(drawing.format(**{**look, **changed}), encoding="utf-8")

    images = tmp_path / "images"
    pages.keep_pictures(images, drawn(), check=False)
    pages.keep_pictures(images, drawn(name="b2", digit=3), check=True)  # another machine's last bits
    for changed in ({"ink": "#222222"}, {"digit": 9}, {"tick": "0.12"}, {"tick": 'id="m"'}):
        with pytest.raises(SystemExit):
            pages.keep_pictures(images, drawn(**changed), check=True)
        assert "images is out of date: one.svg" in capsys.readouterr().err
    (images / "old.svg").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit):
        pages.keep_pictures(images, drawn(), check=True)
    pages.keep_pictures(images, drawn(digit=9), check=False)
    assert [path.name for path in images.iterdir()] == ["one.svg"]
    assert "10.9" in (images / "one.svg").read_text(encoding="utf-8")
