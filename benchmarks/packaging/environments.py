"""The wheel and the sdist, and clean environments with them; the tests of the package use these, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.machine import ROOT

CONSTRAINTS = ("constraints.txt", "constraints-integrations.txt")
# what an environment has, asked of its own Python: name, version, licence and bytes of each distribution
INSTALLED = """
import json, sys
from importlib.metadata import distributions
found = {}
for dist in distributions(path=[sys.argv[1]]):
    meta = dist.metadata
    named = [line.rpartition(" :: ")[2] for line in meta.get_all("Classifier") or [] if line.startswith("License ::")]
    text = (meta["License"] or "").strip()
    licence = meta["License-Expression"] or ", ".join(named) or (text if "\\n" not in text else text.splitlines()[0])
    size = sum(path.stat().st_size for f in dist.files or [] if (path := dist.locate_file(f)).is_file())
    found[meta["Name"]] = {"version": dist.version, "licence": licence or "not stated", "bytes": size}
print(json.dumps(found))
"""


class Built(NamedTuple):
    """The files of a release."""

    wheel: Path
    sdist: Path


def build(folder: Path) -> Built:
    """Build the sdist of this checkout, and the wheel from the sdist.

    Args:
        folder: Where the two files are written.
    """
    run(sys.executable, "-m", "build", "--quiet", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


def extras() -> dict[str, list[str]]:
    """The extras of ``pyproject.toml`` and what they require."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(project["optional-dependencies"])


class Environment:
    """A virtual environment of its own.

    Args:
        folder: Where it is made.
        python: The Python that it is for.
        beneath: An environment whose packages are seen as well, so that only what an extra adds is installed.
    """

    def __init__(self, folder: Path, python: str = sys.executable, beneath: Environment | None = None) -> None:
        self.folder = folder
        run(python, "-m", "venv", folder)
        self.python = folder / "bin" / "python"
        (self.packages,) = (folder / "lib").glob("python*/site-packages")
        if beneath is not None:
            (self.packages / "beneath.pth").write_text(f"{beneath.packages}\n", encoding="utf-8")

    def install(self, *what: object) -> None:
        """Install with pip, within the tested versions."""
        pins = (argument for name in CONSTRAINTS for argument in ("-c", ROOT / name))
        run(self.python, "-m", "pip", "install", "--quiet", *pins, *what)

    def run(self, *arguments: object, folder: Path) -> str:
        """What the environment's Python prints with these arguments, in a folder outside the checkout."""
        return run(self.python, *arguments, cwd=folder)

    def installed(self) -> dict[str, dict[str, Any]]:
        """The packages here, without those beneath, pip and setuptools."""
        found = json.loads(run(self.python, "-I", "-c", INSTALLED, self.packages))
        return {name: facts for name, facts in sorted(found.items()) if name not in ("pip", "setuptools")}


def run(*command: object, cwd: Path | None = None) -> str:
    """The standard output of a command that must succeed; without the paths that a checkout adds."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_CONSTRAINT")
    env = {key: value for key, value in os.environ.items() if key not in hidden}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
