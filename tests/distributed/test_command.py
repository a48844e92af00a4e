"""``torchrun -m bayesneg``: a process that dies, one that hangs, mistakes, and recommendations in parts."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from threading import Timer

import numpy as np
import polars as pl
import pytest

import bayesneg as bn

pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

from launching import torchrun

MODEL = ("--model", "torch-mf", "--device", "cpu", "--sampler", "bns", "--set", "dim=8", "--set", "batch_size=64")
QUICK = ("--baselines", "none", "--select", "last")


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """The arguments of a small training."""
    data, path = bn.synthetic(60, 150, seed=3), tmp_path_factory.mktemp("data") / "pairs.csv"
    pl.DataFrame({"user": data.users, "item": data.indices}).write_csv(path)
    return ("-m", "bayesneg", "train", path, *MODEL, *QUICK)


def children(process: subprocess.Popen[str]) -> list[int]:
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(pid) for pid in found.split()]


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture(scope="module")
def uninterrupted(train, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "whole"
    process = torchrun(2, *train, "--epochs", 24, "--out", out)
    said, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert said.count("ndcg") == 1  # one process speaks
    return out


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_a_killed_process_is_restarted_and_the_run_ends_in_the_same_bytes(train, uninterrupted, tmp_path):
    out = tmp_path / "killed"
    process = torchrun(2, *train, "--epochs", 24, "--out", out, restarts=1)
    wait_for(out / "checkpoint-000010", process)
    os.kill(children(process)[-1], signal.SIGKILL)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert (out / "weights.safetensors").read_bytes() == (uninterrupted / "weights.safetensors").read_bytes()
    killed, whole = bn.load_run(out), bn.load_run(uninterrupted)
    assert killed.record.final == whole.record.final
    for line, other in zip(killed.record.epochs, whole.record.epochs, strict=True):
        assert {**line, "seconds": 0} == {**other, "seconds": 0}


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_a_process_that_hangs_is_named(train, tmp_path):
    out = tmp_path / "hangs"
    process = torchrun(2, *train, "--epochs", 5000, "--out", out, "--ranks-timeout", 4)
    wait_for(out / "checkpoint-000010", process)
    hanging = children(process)[-1]
    os.kill(hanging, signal.SIGSTOP)
    give_up = Timer(60, process.kill)
    give_up.start()
    try:
        said = next((line for line in process.stderr if "error: " in line), "")
    finally:
        give_up.cancel()
        with suppress(ProcessLookupError):
            os.kill(hanging, signal.SIGKILL)  # torchrun would wait half a minute for it to end
        process.communicate(timeout=60)
    assert "error: no answer from rank 1" in said
    assert process.returncode == 1


def test_recommendations_are_written_in_parts(uninterrupted, tmp_path):
    out = tmp_path / "recs.parquet"
    process = torchrun(2, "-m", "bayesneg", "recommend", uninterrupted, "--all-users", "-k", 5, "--out", out)
    said, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "59 users, 295 rows" in said
    assert sorted(path.name for path in out.iterdir()) == ["part-00000.parquet", "part-00001.parquet"]
    parts, whole = pl.read_parquet(out / "*.parquet"), bn.load_run(uninterrupted).recommend_all(k=5)
    assert parts.drop("score").equals(whole.drop("score"))
    np.testing.assert_allclose(parts["score"], whole["score"], rtol=1e-4)


def test_a_mistake_is_one_sentence_by_rank_0(tmp_path):
    process = torchrun(2, "-m", "bayesneg", "train", tmp_path / "none.csv", "--model", "torch-mf", "--device", "cpu")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1  # of torchrun; that of the processes is 2
    assert err.count("error: ") == 1
    assert "none.csv: no such file" in err
    assert "exitcode  : 2" in err
