"""A sweep packed here runs where there is no polars, no pydantic and nothing to draw with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import sweeps

from bayesneg.runs import ledger

SCRIPT = ("-m", "benchmarks.studies.packed_sweep")
ROOT = Path(__file__).parents[2]
ABSENT = ("polars", "pydantic", "safetensors", "matplotlib", "typer", "narwhals")


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment in which importing any of these fails, in workers too."""
    folder = tmp_path / "absent"
    folder.mkdir()
    for name in ABSENT:
        (folder / f"{name}.py").write_text("raise ImportError('not on this machine')\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}


def test_a_packed_sweep_gives_the_same_numbers_on_a_bare_machine(tmp_path, bare):
    pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")
    recipe = sweeps.recipe(tmp_path, epochs=2)
    options = ["--model", "mf,lightgcn", "--seeds", "1", "--samplers", "rns,bns"]
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    subprocess.run([sys.executable, *SCRIPT, "pack", tmp_path / "packed", recipe, *options], cwd=ROOT, check=True)
    run = [sys.executable, *SCRIPT, "run", tmp_path / "packed", "--jobs", "2", "--records"]
    subprocess.run([*run, here], cwd=ROOT, check=True)
    done = subprocess.run([*run, there], cwd=ROOT, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one, other = ledger.read(here), ledger.read(there)
    assert len(one) == 8
    assert {key: entry.record.final for key, entry in one.items()} == {key: other[key].record.final for key in one}
