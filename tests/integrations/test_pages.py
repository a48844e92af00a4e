"""The pages on other people's software: their code runs, and is at most thirty lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.integrations.text_world import tiny_encoder
from tests.integrations.needs import needs

PAGES = Path(__file__).parents[2] / "docs" / "how-to" / "integrations"
NEEDED = {
    "lightning": ("pytorch_lightning",),
    "pykeen": ("pykeen",),
    "pytorch-geometric": ("torch_geometric",),
    "two-towers": (),
    "sentence-transformers": ("sentence_transformers", "datasets", "accelerate"),
}


def test_every_page_is_run():
    assert {page.stem for page in PAGES.glob("*.md")} - {"index"} == set(NEEDED)


@pytest.mark.parametrize("page", [pytest.param(name, marks=needs("torch", *NEEDED[name])) for name in NEEDED])
def test_the_code_of_a_page_runs(page, monkeypatch, tmp_path):
    from bayesneg.data.synthetic import synthetic

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(synthetic, "__defaults__", (100, 120))  # users, items
    if page == "sentence-transformers":  # a model that is made here takes the place of one that would be downloaded
        import sentence_transformers

        words = re.sub(r"\W+", " ", (PAGES / f"{page}.md").read_text(encoding="utf-8"))
        model = tiny_encoder([words])
        monkeypatch.setattr(sentence_transformers, "SentenceTransformer", lambda name: model)
    namespace: dict = {}
    for block in re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL):
        assert sum(bool(line.strip()) for line in block.splitlines()) <= 30
        exec(compile(block, f"{page}.md", "exec"), namespace)
