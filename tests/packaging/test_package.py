"""The wheel and the sdist: what is in them, and that they work outside the checkout, alone and with each extra."""

from __future__ import annotations

import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import bayesneg as bn
from benchmarks.packaging.environments import CONSTRAINTS, Environment, build, extras

HOME = Path(__file__).parents[2]
SOURCES = HOME / "src" / "bayesneg"
# What each extra is for, in a line of Python; the large ones are installed by `make test-integrations`.
USES = {
    "torch": "import bayesneg as bn; s = bn.split(bn.synthetic(40, 60)); "
    "print(bn.fit(bn.TorchMF(dim=4, device='cpu'), s, bn.BNS(), epochs=1, progress=False).record.final)",
    "tune": "import bayesneg as bn; s = bn.split(bn.synthetic(40, 60), validation=0.1); "
    "bn.tune('mf', s, 'rns', baselines='popularity', trials=1, seeds=1, epochs=1, jobs=1, progress=False)",
    "postgres": "import psycopg, optuna",
    "index": "import usearch.index",
    "serve": "from bayesneg.serving import app",
    "tensorboard": "import bayesneg as bn; bn.tracking.TensorBoard('logs')",
}
ELSEWHERE = {"mlflow", "wandb", "integrations", "bench", "dev", "docs"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def required(built, tmp_path_factory):
    """An environment with the wheel and what it requires."""
    found = Environment(tmp_path_factory.mktemp("environments") / "required")
    found.install("--no-compile", built.wheel)
    return found


def test_every_extra_is_tested_here_or_elsewhere():
    assert set(USES) | ELSEWHERE >= set(extras())
    assert not set(USES) - set(extras())


def test_the_two_files_of_tested_versions_agree():
    lines = [(HOME / name).read_text(encoding="utf-8").splitlines() for name in CONSTRAINTS]
    one, other = ({re.sub(r"[-_.]+", "-", line.split("==")[0]).lower(): line for line in file} for file in lines)
    shared = {name for name in one.keys() & other if "==" in one[name]}
    assert shared
    assert {name: one[name].split("==")[1] for name in shared} == {name: other[name].split("==")[1] for name in shared}


def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
    info = f"bayesneg-{bn.__version__}.dist-info"
    ours = {name for name in names if not name.startswith(info)}
    tracked = subprocess.run(["git", "ls-files", "src/bayesneg"], cwd=HOME, capture_output=True, text=True, check=True)
    assert ours == {name.removeprefix("src/") for name in tracked.stdout.split()}
    assert f"{info}/licenses/LICENSE" in names


def test_the_sdist_builds_the_same_wheel_without_what_is_ignored(built):
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "constraints.txt"} <= names
    assert "src/bayesneg/py.typed" in names
    folders = {name.partition("/")[0] for name in names if "/" in name}
    assert folders == {"src"}, "a part of the tests or the docs is of no use without the rest"


def test_the_version_has_one_place(required, tmp_path):
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert required.run("-m", "bayesneg", "--version", folder=tmp_path).split()[-1] == bn.__version__
    said = required.run("-c", "from importlib.metadata import version; print(version('bayesneg'))", folder=tmp_path)
    assert said.strip() == bn.__version__


def test_a_comparison_without_extras(required, tmp_path):
    arguments = "compare synthetic --samplers rns --epochs 1 --seeds 1 --report page.html"
    assert "RNS" in required.run("-m", "bayesneg", *arguments.split(" "), folder=tmp_path)
    assert (tmp_path / "page.html").stat().st_size > 10_000
    where = required.run("-c", "import bayesneg; print(bayesneg.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(required.packages)


def test_a_missing_extra_is_named(required, tmp_path):
    arguments = ("train", "synthetic", "--model", "torch-mf", "--epochs", "1")
    with pytest.raises(RuntimeError, match=r"exit code 2\n.*bayesneg\[torch\]"):
        required.run("-m", "bayesneg", *arguments, folder=tmp_path)


@pytest.mark.parametrize("extra", USES)
def test_an_extra_brings_what_it_needs(extra, required, tmp_path):
    above = Environment(tmp_path / "environment", beneath=required)
    above.install("--no-compile", f"bayesneg[{extra}]")
    above.run("-W", "error::ImportWarning", "-c", USES[extra], folder=tmp_path)
