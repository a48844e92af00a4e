"""The house stays in order: imports point one way, heavy libraries have few homes, nothing unsafe is loaded."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent
SOURCE = HOME / "src" / "bayesneg"
PAGE = (HOME / "docs" / "architecture.md").read_text(encoding="utf-8")
OPEN = {"errors", "seeding", "checks", "integrity", "whole_files"}


def rooms(cell: str) -> set[str]:
    return {name.strip(" `") for name in cell.split(",")} - {"–", ""}


# the page has each room and the rooms it may import, and each heavy library and the rooms that may use it
MAY_IMPORT = {
    room: rooms(allowed) for room, allowed in re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, flags=re.MULTILINE)
}
HOMES = {
    name: rooms(homes)
    for name, homes in re.findall(r"^\| (?:\*[\w, ]+:\* )?(\w+) \| .* \| (.*) \|$", PAGE, flags=re.MULTILINE)
    if name != "library" and homes != "everywhere"
}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> frozenset[str]:
    """Modules that a file imports, those for type checking only left out."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            skipped.update(ast.walk(node))
    found = set()
    for node in ast.walk(parsed(path)):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names if node.module == "bayesneg")
    return frozenset(found)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = [path for path in SOURCE.rglob("*.py") if room_of(path) not in ("__init__",)]


def test_imports_point_one_way():
    wrong = []
    for path in FILES:
        room = room_of(path)
        allowed = {"errors"} if room in OPEN else MAY_IMPORT.get(room, {"cli"}) | OPEN | {room, "__version__"}
        used = {name.split(".")[1] for name in imports(path) if name.startswith("bayesneg.")}
        wrong += [f"{path.relative_to(SOURCE)} may not import {name}" for name in sorted(used - allowed)]
    assert not wrong


def test_the_page_names_every_room():
    assert {room_of(path) for path in FILES} - OPEN - {"__main__"} == set(MAY_IMPORT)
    declared = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = {re.match(r"[\w-]+", line)[0] for line in declared}
    assert {name for name in names if not re.search(rf"^\| {name} \|", PAGE, flags=re.MULTILINE)} == set()


@pytest.mark.parametrize("library", HOMES)
def test_heavy_libraries_have_few_homes(library):
    users = {room_of(path) for path in FILES if any(name.split(".")[0] == library for name in imports(path))}
    assert users == HOMES[library]


def test_nothing_unsafe_is_loaded():
    for path in FILES:
        assert not {"pickle", "marshal", "shelve", "dill", "joblib"} & {name.split(".")[0] for name in imports(path)}, (
            path
        )


def python_files(folder: str) -> list[Path]:
    return sorted((HOME / folder).rglob("*.py"))


def test_files_can_be_read_in_one_sitting():
    long = {str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert not {name: lines for name, lines in long.items() if lines > 350}


@pytest.mark.parametrize("folder", ["src", "benchmarks", "tests"])
def test_a_folder_holds_about_a_dozen_files(folder):
    sizes = Counter(
        str(path.parent.relative_to(HOME)) for path in python_files(folder) if not path.name.startswith("__")
    )
    assert not {name: size for name, size in sizes.items() if size > 13}


def test_a_class_name_has_one_meaning():
    found = Counter(
        node.name for path in python_files("src") for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef)
    )
    assert not {name for name, times in found.items() if times > 1}


def test_a_module_name_has_one_meaning():
    """Packages count too. The executions of the kernels mirror each other: a name there is one idea."""
    execution = re.compile(r"kernels/(reference|numba|torch)(/|$)")
    files = [path.parent if path.name == "__init__.py" else path.with_suffix("") for path in python_files("src")]
    found = {execution.sub("kernels/", str(path.relative_to(SOURCE))) for path in files}
    names = Counter(Path(name).name for name in found)
    assert not {name for name, times in names.items() if times > 2}


def test_every_family_of_rules_has_its_three_executions():
    """They find each other by the name of the module."""
    reference, numba, torch = (
        {path.name for path in (SOURCE / "kernels" / execution / "choices").glob("*.py")}
        for execution in ("reference", "numba", "torch")
    )
    assert reference == numba == torch


# where an attribute is looked up by its name on purpose
BY_NAME = {
    "__init__.py",  # public names, imported when they are first asked for
    "models/torch/trainable.py",  # the module is the user's, and may lack the method
    "runs/record.py",  # a custom object may have slots instead of a __dict__
}


def test_attributes_are_declared_not_probed():
    """``getattr(value, field.name)`` is fine; ``hasattr``, or a default, says that a protocol is missing."""
    found = []
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            probes = node.func.id == "hasattr" or (
                node.func.id == "getattr" and (len(node.args) == 3 or isinstance(node.args[1], ast.Constant))
            )
            if probes and str(path.relative_to(SOURCE)) not in BY_NAME:
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno} {ast.unparse(node)}")
    assert not found


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


# prints how many cached entry points were compiled, not loaded
COMPILED = """
import sys
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher
modules = [module for name, module in list(sys.modules.items()) if name.startswith("bayesneg.")]
found = {value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
print(sum(sum(f.stats.cache_misses.values()) for f in found if not isinstance(f._cache, NullCache)))
"""
TRAIN = """
import bayesneg as bn
split = bn.split(bn.synthetic(30, 40, seed=0), test=0.2, seed=0)
for sampler in (bn.RNS(), bn.BNS()):
    run = bn.fit(bn.MF(dim=2), split, sampler, epochs=1, progress=False)
    run.evaluate(k=5)
"""
# entry points of three files that take a moment to compile, one with a tuple of the package's own
CALL = """
import numpy as np
from bayesneg.kernels.numba import draws, observed, scoring, sgd
pairs = observed.observed_pairs(np.array([0, 1]), np.zeros(1, np.int32), 3)
draws.look_up(np.zeros(3), np.zeros((1, 2), np.int32), np.empty((1, 2)))
one, vectors = np.zeros(1, np.int32), np.ones((3, 2), np.float32)
tiled = scoring.tile_items(vectors, scoring.tile_layout(one, one, 3))
factors, config = scoring.Factors(vectors[:1].copy(), vectors, tiled), sgd.SGDConfig(0.1, 0.0, False, 1)
sgd.learn_given(one, one, one + 1, factors, config, np.empty(1, np.float32))
"""


def test_what_training_compiles_is_loaded_by_the_next_process():
    python(TRAIN)
    assert int(python(TRAIN + COMPILED)) == 0


def test_the_cache_of_compiled_code_is_used_until_any_kernel_file_changes(tmp_path):
    """numba's cache looks at one file; the digest makes it notice the others."""
    import shutil

    shutil.copytree(SOURCE, tmp_path / "src" / "bayesneg", ignore=shutil.ignore_patterns("__pycache__"))
    path = os.pathsep.join(filter(None, (str(tmp_path / "src"), os.environ.get("PYTHONPATH"))))
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path}
    assert int(python(CALL + COMPILED, **settings)) == 3
    assert int(python(CALL + COMPILED, **settings)) == 0
    with (tmp_path / "src" / "bayesneg" / "kernels" / "numba" / "choices" / "posterior.py").open("a") as rules:
        rules.write("\n# changed\n")
    assert int(python(CALL + COMPILED, **settings)) == 3


def test_the_digest_of_compiled_code_has_the_names_of_the_kernel_files(tmp_path):
    """An index on disk refers to a rule by its module, and cannot be read once that has another name."""
    import shutil

    home = tmp_path / "src" / "bayesneg"
    shutil.copytree(SOURCE, home, ignore=shutil.ignore_patterns("__pycache__"))
    path = os.pathsep.join(filter(None, (str(tmp_path / "src"), os.environ.get("PYTHONPATH"))))
    code = "from bayesneg.kernels.numba.compiling import DIGEST; print(DIGEST)"
    before = python(code, PYTHONPATH=path)
    rules = home / "kernels" / "reference" / "choices" / "srns.py"
    rules.rename(rules.with_stem("srns_rules"))
    assert python(code, PYTHONPATH=path) != before
