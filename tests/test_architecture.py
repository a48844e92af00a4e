"""The house stays in order: imports point one way, heavy libraries have few homes, nothing unsafe is loaded."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "bayesneg"
# each room and the rooms it may import; errors and seeding are open to all
MAY_IMPORT = {
    "kernels": set(),
    "progress": set(),
    "data": {"kernels"},
    "interfaces": {"data", "kernels"},
    "linear": {"data", "kernels"},
    "samplers": {"interfaces", "data", "kernels", "linear"},
    "models": {"interfaces", "data", "kernels", "linear"},
    "evaluation": {"interfaces", "data", "kernels"},
    "runs": {"interfaces", "data", "models", "evaluation"},
    "training": {"interfaces", "data", "evaluation", "models", "progress", "runs"},
    "config": {"interfaces", "data", "models", "samplers"},
    "report": {"runs", "evaluation"},
    "experiments": {
        "interfaces",
        "data",
        "kernels",
        "models",
        "samplers",
        "evaluation",
        "progress",
        "runs",
        "training",
        "config",
    },
    "tuning": {
        "interfaces",
        "data",
        "models",
        "samplers",
        "evaluation",
        "progress",
        "runs",
        "training",
        "config",
        "experiments",
    },
    "reproduction": {"kernels", "models", "evaluation", "config", "experiments", "report", "runs"},
    "cli": {
        "config",
        "data",
        "evaluation",
        "experiments",
        "progress",
        "report",
        "reproduction",
        "runs",
        "training",
        "tuning",
    },
    "__main__": {"cli"},
}
OPEN = {"errors", "seeding", "checks"}
HOMES = {
    "numba": {"data", "evaluation", "kernels", "linear"},
    "torch": {"kernels", "linear", "models"},
    "triton": {"kernels"},
    "matplotlib": {"report"},
    "optuna": {"tuning"},
    "typer": {"cli"},
    "pydantic": {"config", "experiments"},
}


def imports(path: Path, *, typing_too: bool = False) -> set[str]:
    """Modules that a file imports, those for type checking only left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not typing_too:
            skipped.update(ast.walk(node))
    found = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names if node.module == "bayesneg")
    return found


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = [path for path in SOURCE.rglob("*.py") if room_of(path) not in ("__init__",)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    room = room_of(path)
    allowed = {"errors"} if room in OPEN else MAY_IMPORT[room] | OPEN | {room, "__version__"}
    own = {name.split(".")[1] for name in imports(path) if name.startswith("bayesneg.")}
    assert own <= allowed, f"{room} may not import {sorted(own - allowed)}"


@pytest.mark.parametrize("library", HOMES)
def test_heavy_libraries_have_few_homes(library):
    users = {room_of(path) for path in FILES if any(name.split(".")[0] == library for name in imports(path))}
    assert users == HOMES[library]


def test_nothing_unsafe_is_loaded():
    for path in FILES:
        assert not {"pickle", "marshal", "shelve", "dill", "joblib"} & {name.split(".")[0] for name in imports(path)}, (
            path
        )


def test_files_can_be_read_in_one_sitting():
    long = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in FILES}
    assert not {name for name, lines in long.items() if lines > 350}


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return done.stdout


def test_importing_the_package_pulls_in_nothing_heavy():
    loaded = python("import sys, bayesneg; print(*sys.modules)").split()
    assert not {"numba", "polars", "matplotlib", "scipy", "torch", "rich", "pydantic", "optuna"} & set(loaded)


def test_every_public_name_is_there():
    import bayesneg as bn

    for name in bn.__all__:
        assert getattr(bn, name) is not None
    assert set(bn.__all__) <= set(dir(bn))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        bn.Nothing  # noqa: B018


COMPILE = """
import bayesneg as bn
from bayesneg.kernels.numba import draws
from bayesneg.kernels.numba import observed
from bayesneg.evaluation import _judge
from bayesneg.kernels.numba import sgd
split = bn.split(bn.synthetic(30, 40, seed=0), test=0.2, seed=0)
for sampler in (bn.RNS(), bn.PNS(), bn.BNS()):
    run = bn.fit(bn.MF(dim=2), split, sampler, epochs=1, progress=False)
    run.evaluate(k=5)
    run.recommend(user=split.train.user_ids[0], k=5)
training = sgd.train_block, observed.mark_cells, draws.draw_uniform, draws.draw_weighted
entry_points = *training, _judge.judge, _judge.top_k
print(sum(sum(f.stats.cache_misses.values()) for f in entry_points))
"""


def test_a_second_process_compiles_nothing(tmp_path):
    first, second = (int(python(COMPILE, NUMBA_CACHE_DIR=str(tmp_path))) for _ in range(2))
    assert first == 7  # one each, and training for two rules
    assert second == 0


def test_a_change_in_any_kernel_file_compiles_anew(tmp_path):
    """numba's cache looks at one file; the digest makes it notice the others."""
    import shutil

    shutil.copytree(SOURCE, tmp_path / "src" / "bayesneg", ignore=shutil.ignore_patterns("__pycache__"))
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path / "src")}
    python(COMPILE, **settings)
    with (tmp_path / "src" / "bayesneg" / "kernels" / "numba" / "choices.py").open("a") as choices:
        choices.write("\n# changed\n")
    assert int(python(COMPILE, **settings)) >= 7
