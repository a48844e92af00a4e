"""A run that is stopped goes on to the same bytes as one that never was; in processes of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

WHOLE = ("weights.safetensors", "metrics.json", "per_user.parquet", "checkpoint.safetensors")
START = "import sys; from bayesneg.cli import main; main(sys.argv[1:])"


def start(*arguments: object) -> subprocess.Popen[str]:
    given = [sys.executable, "-c", START, *map(str, arguments)]
    return subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def wait_for_lines(path: Path, n_lines: int) -> None:
    until = time.monotonic() + 60
    while not path.exists() or path.read_text().count("\n") < n_lines:
        assert time.monotonic() < until, f"{path} never had {n_lines} lines"
        time.sleep(0.01)


def epochs(folder: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (folder / "epochs.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


@pytest.fixture
def world(place: Path) -> Path:
    rng = np.random.default_rng(0)
    pairs = {(int(u), int(300 * i**2)) for u, i in zip(rng.integers(0, 200, 6_000), rng.random(6_000), strict=True)}
    path = place / "world.csv"
    path.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in sorted(pairs)))
    return path


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_stopped_run_is_resumed_to_the_same_bytes(bayesneg, world, how, code):
    options = ("train", world, "--epochs", 150, "--sampler", "srns")  # a sampler with a memory to keep
    assert bayesneg(*options, "--out", "whole").code == 0
    process = start(*options, "--out", "stopped")
    stopped, whole = world.parent / "stopped", world.parent / "whole"
    wait_for_lines(stopped / "epochs.jsonl", 23)
    process.send_signal(how)
    returned, said = finish(process)
    assert returned == code, said
    assert not (stopped / "metrics.json").exists()
    assert (stopped / "checkpoint.safetensors").exists()
    if how == signal.SIGINT:
        assert "--resume" in said
        assert "Traceback" not in said
    assert "not finished" in bayesneg("evaluate", stopped).error
    assert bayesneg(*options, "--out", "stopped", "--resume").code == 0
    assert all((stopped / name).read_bytes() == (whole / name).read_bytes() for name in WHOLE)
    assert epochs(stopped) == epochs(whole)


def test_an_interrupted_comparison_is_resumed_to_the_same_numbers(bayesneg, world):
    options = ("compare", world, "--samplers", "rns,bns", "--seeds", 2, "--epochs", 100, "--jobs", 2)
    whole = bayesneg(*options, "--out", "whole", "--json").json["runs"]
    (world.parent / "report.html").unlink()
    process = start(*options, "--out", "stopped")
    wait_for_lines(world.parent / "stopped" / "rns-seed0" / "epochs.jsonl", 5)
    process.send_signal(signal.SIGINT)
    returned, said = finish(process)
    assert returned == 130, said
    assert "--resume" in said
    assert "Traceback" not in said
    assert not (world.parent / "report.html").exists()
    resumed = bayesneg(*options, "--out", "stopped", "--resume", "--json").json["runs"]
    assert [run["final"] for run in resumed] == [run["final"] for run in whole]


def test_an_interrupted_run_without_out_says_that_nothing_is_kept(world):
    process = start("train", world, "--epochs", 100_000)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    returned, said = finish(process)
    assert returned == 130, said
    assert "nothing is kept without --out" in said
