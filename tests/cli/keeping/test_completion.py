"""Shell completion: the scripts are shown and installed, and Tab finds commands, options and names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def run(arguments, home, **environment):
    """In a fresh process, as a shell starts it."""
    found = {**os.environ, "HOME": str(home), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", **environment}
    command = [sys.executable, "-m", "bayesneg", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=found, check=False)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_shown(tmp_path, shell):
    done = run(["--show-completion", shell], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "_BAYESNEG_COMPLETE=complete_" + shell in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
def test_bash_completes_what_is_installed(tmp_path):
    """--install-completion writes a script; bash reads it and asks it as it does when Tab is pressed."""
    done = run(["--install-completion", "bash"], tmp_path)
    assert done.returncode == 0, done.stderr
    (script,) = tmp_path.glob(".bash_completions/*.sh")
    assert str(script) in (tmp_path / ".bashrc").read_text()
    program = tmp_path / "bayesneg"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bayesneg "$@"\n')
    program.chmod(0o755)
    asked = {
        "bayesneg comp": "compare",
        "bayesneg train --evaluate-e": "--evaluate-every",
        "bayesneg train synthetic --sampler sr": "srns",
        "bayesneg compare synthetic --losses bpr,log": "bpr,logistic",
        "bayesneg train synthetic --model light": "lightgcn",
    }
    lines = [f"source '{script}'"]
    for words in asked:
        given = " ".join(f"'{word}'" for word in words.split())
        lines += [f"COMP_WORDS=({given}); COMP_CWORD={len(words.split()) - 1}; _bayesneg_completion bayesneg"]
        lines += ['echo "${COMPREPLY[@]}"']
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    home = {**os.environ, "HOME": str(tmp_path), "PATH": path, "PYTHONPATH": os.pathsep.join(map(str, _path()))}
    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, env=home, check=True)
    assert done.stdout.splitlines() == list(asked.values())


def _path() -> list[Path]:
    """Where this process found the package."""
    import bayesneg

    return [Path(bayesneg.__file__).parent.parent]
