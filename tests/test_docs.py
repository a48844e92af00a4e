"""What the documents say is so: their code runs, their commands exist, and their numbers are the recorded ones."""

from __future__ import annotations

import re
import shlex
import sys
import types
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.pages.__main__ import PAGES as RESULTS_PAGES

HOME = Path(__file__).parent.parent
MARKDOWN = sorted(
    str(path.relative_to(HOME))
    for path in (*HOME.glob("*.md"), *HOME.glob("docs/**/*.md"))
    if "reference/api" not in path.as_posix()  # made when the site is built
)
BLOCK = re.compile(
    r"(?:as `(?P<file>\w+\.(?:py|toml))`:\n\n)?"
    r"```(?:\{code-cell\} )?(?P<language>python|toml|sh|bash|console)\n(?P<text>.*?)```",
    re.DOTALL,
)
# pages whose code tests/integrations runs, in an environment of their own
ELSEWHERE = [page for page in MARKDOWN if page.startswith("docs/how-to/integrations/")]
PAGES = [page for page in MARKDOWN if page not in ELSEWHERE]
# commands that are parsed only: they need data that is not here, or minutes, or do not end
NOT_RUN = re.compile(
    r"kuairec|clicks\.csv|shown\.csv|ratings\.csv|ml-100k|\breproduce\b|\btune\b|bayesneg serve\b|mlflow:|wandb:"
)


def blocks(page: str, *languages: str) -> list[re.Match[str]]:
    text = (HOME / page).read_text(encoding="utf-8")
    return [found for found in BLOCK.finditer(text) if found["language"] in languages]


def commands(page: str) -> list[str]:
    """Every ``bayesneg …`` of a page: lines of its shell blocks, and those in the cells of a table."""
    if page == "CHANGELOG.md":  # names what is gone
        return []
    shell = "\n".join(found["text"] for found in blocks(page, "sh", "bash", "console")).replace("\\\n", " ")
    cells = re.findall(r"\| `(bayesneg [^`|]+)` \|", (HOME / page).read_text(encoding="utf-8"))
    lines = re.findall(r"^(?:\$ )?(?:\S+=\S+ )*(?:\.venv/bin/)?(bayesneg [^\n]*)$", shell, flags=re.MULTILINE)
    return [*lines, *cells]


@pytest.mark.parametrize("page", PAGES)
def test_no_page_has_the_marks_of_a_merge(page):
    marks = re.findall(r"^(?:<{7} .*|={7}|>{7} .*)$", (HOME / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert marks == []


def arguments(command: str) -> list[str]:
    return shlex.split(command, comments=True)[1:]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """An empty folder, and a small dataset where a page says ``synthetic``."""
    from bayesneg.data.synthetic import synthetic

    monkeypatch.setattr(synthetic, "__defaults__", (200, 300))  # users, items
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BAYESNEG_DATA", raising=False)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python") or commands(page)])
def test_the_code_and_then_the_commands_of_a_page_run(page, small, monkeypatch, capsys):
    from bayesneg.cli import main

    module = types.ModuleType(Path(page).stem.replace("-", "_") + "_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # where dataclasses look for their annotations
    for block in blocks(page, "toml"):
        if block["file"]:  # others are parts of a file, such as pyproject.toml
            (small / block["file"]).write_text(block["text"], encoding="utf-8")
    for block in blocks(page, "python"):
        need_extras(block["text"])
        if block["file"]:
            (small / block["file"]).write_text(block["text"], encoding="utf-8")
        line = block.string[: block.start("text")].count("\n")
        exec(compile("\n" * line + block["text"], HOME / page, "exec"), module.__dict__)
    for command in commands(page):
        if NOT_RUN.search(command):
            continue
        need_extras(command)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments(command))
        assert not ended.value.code, f"{command}: {capsys.readouterr().err}"


def need_extras(text: str) -> None:
    if re.search("torch|lightgcn", text, flags=re.IGNORECASE):
        pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")
    if "usearch" in text:
        pytest.importorskip("usearch", reason="usearch is not installed (the extra 'index')")
    if re.search(r"TensorBoard\(|tensorboard:", text):
        pytest.importorskip("tensorboard", reason="tensorboard is not installed (the extra 'tensorboard')")
    if "bn.tune(" in text:
        pytest.importorskip("optuna", reason="optuna is not installed (the extra 'tune')")


@pytest.mark.parametrize("command", sorted({command for page in PAGES for command in commands(page)}))
def test_a_command_of_a_page_has_the_options_it_is_given(command):
    import typer

    from bayesneg.cli import app

    group, rest = typer.main.get_command(app), arguments(command)
    while isinstance(group, typer.core.TyperGroup) and rest and not rest[0].startswith("-"):
        name, *rest = rest
        assert name in group.commands, f"there is no command {name}"
        group = group.commands[name]
    if not {"-h", "--help"} & set(rest):
        group.make_context(name, rest)  # parses, converts and refuses; runs nothing


@pytest.mark.parametrize("page", MARKDOWN)
def test_what_a_page_refers_to_is_there(page):
    text = (HOME / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link]
    links = [link for link in links if link != "api/index.md"]  # written by `make docs`, which checks it
    assert [link for link in links if not ((HOME / page).parent / link).exists()] == []
    paths = re.findall(r"`((?:src|tests|benchmarks|docs)/[\w/.-]+)`", text)
    assert [path for path in paths if not (HOME / path).exists()] == []
    known = "\n".join(path.read_text(encoding="utf-8") for path in (HOME / "tests").rglob("test_*.py"))
    tests = re.findall(r"\b(test_\w{20,})`", text)
    assert [name for name in tests if f"def {name}(" not in known] == []


def test_what_a_docstring_refers_to_is_there():
    source = "\n".join(path.read_text(encoding="utf-8") for path in (HOME / "src").rglob("*.py"))
    defined = set(re.findall(r"^ *(?:class|def) (\w+)", source, flags=re.MULTILINE))
    named = {name.split(".")[-1] for name in re.findall(r":(?:func|class|meth):`~?([\w.]+)`", source)}
    assert named - defined == set()


def test_the_page_on_torch_loops_has_a_row_for_every_sampler():
    from bayesneg.samplers.registry import samplers

    page = (HOME / "docs" / "how-to" / "torch.md").read_text(encoding="utf-8")
    rows = "".join(line for line in page.splitlines() if line.startswith("| `bn."))
    missing = {each.kind.__name__ for each in samplers().values()} - set(re.findall(r"\b([A-Z]\w+)\(", rows))
    assert not missing


def test_the_version_is_the_same_everywhere():
    import bayesneg as bn

    version = bn.__version__  # pyproject.toml reads it, too
    for name, pattern in {
        "CITATION.cff": r"^version: (\S+)$",
        "docs/citing.md": r"version += \{([^}]+)\}",
        "CHANGELOG.md": r"^## (\d\S*?),? ",
    }.items():
        assert re.search(pattern, (HOME / name).read_text(encoding="utf-8"), flags=re.MULTILINE)[1] == version, name


@pytest.mark.parametrize("page", RESULTS_PAGES)
def test_a_page_of_results_is_what_the_records_give(page):
    import_module(f"benchmarks.pages.{page}").publish(check=True)
