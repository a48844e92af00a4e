"""The docs site without building it: a page for every public name, live links, facts of the front page."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import bayesneg as bn
from bayesneg.config.docstrings import arguments, field_sentences
from test_docs import HOME, MARKDOWN
from test_public_face import REACHABLE

FENCED = re.compile(r"^```.*?^```", flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def public_names():
    pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")
    path = HOME / "docs" / "_site" / "public_names.py"
    spec = spec_from_file_location("public_names", path)
    module = sys.modules["public_names"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    if find_spec("sphinx") is None:  # which stands in for the libraries of the integrations
        module.MORE = tuple(name for name in module.MORE if name not in module.INTEGRATIONS)
    return module


def test_every_public_name_has_a_page(public_names, tmp_path):
    home = public_names.pages()
    assert {f"bayesneg.{name}" for name in REACHABLE} - home.keys() == set()
    public_names.write(tmp_path)
    index = (tmp_path / "index.md").read_text(encoding="utf-8")
    for path, name in home.items():
        page = (tmp_path / f"{name.path}.rst").read_text(encoding="utf-8")
        assert f":: {name.path.rpartition('.')[2]}\n" in page
        assert f"({name.path}.rst)" in index, path


def test_everything_that_can_be_passed_has_a_sentence(public_names, monkeypatch):
    monkeypatch.syspath_prepend(HOME / "docs" / "_site")
    from parameters import parameters

    bare = {}
    for path, name in public_names.pages().items():
        if callable(name.value):
            said = field_sentences(name.value) if isinstance(name.value, type) else arguments(name.value.__doc__)
            bare[path] = [each for each in parameters(name.value) if not said.get(each)]
    assert {path: names for path, names in bare.items() if names} == {}
    assert parameters(bn.LightGCN)[:2] == ["learning_rate", "decay"]  # inherited ones, too
    assert "summaries" not in parameters(bn.BNS)  # what a sampler learns is not passed


def test_what_the_docs_import_has_a_page(public_names):
    imported = re.compile(r"^(?:>>> )?from (bayesneg[\w.]*) import (\w+(?:, \w+)*)", flags=re.MULTILINE)
    text = "\n".join((HOME / page).read_text(encoding="utf-8") for page in MARKDOWN)
    found = {f"{module}.{name}" for module, names in imported.findall(text) for name in names.split(", ")}
    homes = {name for name in found if name.rpartition(".")[0] in public_names.MORE}
    assert homes - public_names.pages().keys() == set()
    assert {name.rpartition(".")[0] for name in found} <= {"bayesneg", *public_names.MORE, *public_names.INTEGRATIONS}


def test_an_object_with_two_names_has_one_page_which_names_both(public_names, tmp_path):
    home = public_names.pages()
    assert home["bayesneg.samplers.BNS"].path == home["bayesneg.BNS"].path == "bayesneg.BNS"
    public_names.write(tmp_path)
    assert "bn.samplers.BNS" in (tmp_path / "bayesneg.BNS.rst").read_text(encoding="utf-8")
    assert not (tmp_path / "bayesneg.samplers.BNS.rst").exists()


def test_a_page_whose_name_is_gone_is_deleted(public_names, tmp_path):
    (tmp_path / "bayesneg.Gone.rst").write_text("Gone\n====\n", encoding="utf-8")
    public_names.write(tmp_path)
    assert not (tmp_path / "bayesneg.Gone.rst").exists()


def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as GitHub and the site make them."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", MARKDOWN)
def test_an_anchor_that_a_page_links_to_is_there(page):
    text = FENCED.sub("", (HOME / page).read_text(encoding="utf-8"))
    links = [link for link in re.findall(r"\]\(([^)\s]*#[^)\s]+)\)", text) if "://" not in link]
    dead = []
    for link in links:
        file, _, anchor = link.partition("#")
        target = (HOME / page).parent / file if file else HOME / page
        if target.suffix == ".md" and anchor not in anchors(target):
            dead.append(link)
    assert dead == []


@pytest.mark.parametrize("page", MARKDOWN)
def test_a_table_begins_after_an_empty_line(page):
    """Else its rows continue the paragraph or the item above, as text with bars."""
    text = FENCED.sub("", (HOME / page).read_text(encoding="utf-8"))
    assert re.findall(r"^[^|#\n][^\n]*\n\|.*\n\| ?:?-.*$", text, flags=re.MULTILINE) == []


def test_the_readme_is_a_front_page():
    text = (HOME / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    (picture, width) = re.findall(r'<img src="([^"]+)" width="(\d+)"', text)[0]
    assert (HOME / picture).exists()
    assert int(width) <= 480, "in full width it would be a screen and a half by itself"
    tutorials = {path.name for path in (HOME / "docs" / "tutorials").glob("*.md")} - {"index.md"}
    assert {name for name in tutorials if f"docs/tutorials/{name}" not in text} == set()


def test_the_facts_of_the_readme_are_the_recorded_ones():
    from bayesneg.models import baselines
    from bayesneg.samplers.registry import samplers

    text = (HOME / "README.md").read_text(encoding="utf-8")
    peers = json.loads((HOME / "benchmarks" / "results" / "speed" / "bench_peers.json").read_text(encoding="utf-8"))
    seconds = peers["ml-1m"]["seconds_per_epoch"]
    for name in ("RNS", "implicit", "Cornac"):
        assert f"{1000 * seconds[name]:.0f} ms" in text
    kinds = {found.kind.__name__ for found in samplers().values()} - {"Posterior", "WarmStart"}  # variants of BNS
    assert f"| {len(kinds)} samplers" in text
    assert len(kinds) - 1 == 10
    assert "ten other samplers" in text
    assert f"{len(baselines.__all__) - 1} baselines" in text  # Baseline itself is none


def calls(page: str):
    """Each call that a page writes in a line of text, as (path, keywords): ``bn.MF(dim=100)``."""
    text = FENCED.sub("", (HOME / page).read_text(encoding="utf-8"))
    for code in re.findall(r"`((?:bn|run)\.[^`]+)`", text):
        tree = ast.parse(code.replace("(…", "(...").replace("=…", "=...").replace(" …", " ..."), mode="eval")
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            yield ast.unparse(call.func), [each.arg for each in call.keywords]


@pytest.mark.parametrize("page", ["docs/how-to/coming-from.md", "docs/tutorials/choosing.md"])
def test_a_call_in_a_table_names_what_there_is(page):
    found = [each for each in calls(page) if "(" not in each[0]]
    assert found
    for path, keywords in found:
        root, *names = path.split(".")
        called = functools.reduce(getattr, names, {"bn": bn, "run": bn.Run}[root])
        assert set(keywords) <= inspect.signature(called).parameters.keys(), path
