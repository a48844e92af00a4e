"""``torchrun -m bayesneg``: a process that dies, one that hangs, mistakes, and recommendations in parts."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from threading import Timer

import numpy as np
import polars as pl
import pytest

import bayesneg as bn

pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

from launching import LIMIT, children, finished, kill, torchrun

from commands import bayesneg as bayesneg

MODEL = ("--model", "torch-mf", "--device", "cpu", "--sampler", "bns", "--set", "dim=8", "--set", "batch_size=64")
QUICK = ("--baselines", "none", "--select", "last")
MISBEHAVING = Path(__file__).with_name("misbehaving.py")


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """The arguments of a small training."""
    data, path = bn.synthetic(60, 150, seed=3), tmp_path_factory.mktemp("data") / "pairs.csv"
    pl.DataFrame({"user": data.users, "item": data.indices}).write_csv(path)
    return ("train", path, *MODEL, *QUICK, "--epochs", 24)


@pytest.fixture(scope="module")
def uninterrupted(train, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "whole"
    said, err = finished(process := torchrun(2, "-m", "bayesneg", *train, "--out", out))
    assert process.returncode == 0, err
    assert said.count("ndcg") == 1  # one process speaks
    return out


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes cannot be killed here")
def test_a_killed_process_is_restarted_and_the_run_ends_in_the_same_bytes(train, uninterrupted, tmp_path):
    out = tmp_path / "killed"
    _, err = finished(process := torchrun(2, MISBEHAVING, "dies", *train, "--out", out, restarts=1))
    assert process.returncode == 0, err
    assert "Signal 9 (SIGKILL) received by PID" in err or "exitcode: -9" in err
    assert (out / "weights.safetensors").read_bytes() == (uninterrupted / "weights.safetensors").read_bytes()
    killed, whole = bn.load_run(out), bn.load_run(uninterrupted)
    assert killed.record.final == whole.record.final
    for line, other in zip(killed.record.epochs, whole.record.epochs, strict=True):
        assert {**line, "seconds": 0} == {**other, "seconds": 0}


def test_a_process_that_never_comes_to_wait_is_named_in_time(train, tmp_path):
    _, err = finished(process := torchrun(2, MISBEHAVING, "never waits", *train, "--out", tmp_path / "waits"), 120)
    assert process.returncode == 1
    assert err.count("error: ") == 1
    assert "error: no answer from rank 1: it died, hangs or cannot be reached" in err
    assert float(re.search(r"waited ([\d.]+) s", err)[1]) < 30  # of 3, and not of torch's half an hour


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_a_process_that_hangs_is_named(train, uninterrupted, tmp_path):
    """After ``uninterrupted``, so that nothing is left to compile and both ranks are about as fast."""
    process = torchrun(2, MISBEHAVING, "stops", *train, "--out", tmp_path / "hangs", "--ranks-timeout", 15)
    give_up = Timer(LIMIT, kill, [process])
    give_up.start()
    try:
        said = next((line for line in process.stderr if "error: " in line), "")
    finally:
        give_up.cancel()
    with suppress(ProcessLookupError):
        os.kill(children(process.pid)[-1], signal.SIGKILL)  # torchrun would wait half a minute for it to end
    finished(process, 120)
    assert "error: no answer from rank 1" in said
    assert process.returncode == 1


def test_a_restart_leaves_a_run_alone_that_was_refused(train, uninterrupted):
    before = {path.name: path.read_bytes() for path in uninterrupted.iterdir() if path.is_file()}
    _, err = finished(process := torchrun(2, "-m", "bayesneg", *train, "--out", uninterrupted, restarts=1))
    assert process.returncode == 1
    assert err.count("already holds a run") == 2  # once in each attempt
    assert {path.name: path.read_bytes() for path in uninterrupted.iterdir() if path.is_file()} == before


def test_one_process_and_several_do_not_resume_each_other(train, uninterrupted, tmp_path, bayesneg):
    plain = tmp_path / "plain"
    said = bayesneg(*train, "--out", uninterrupted, "--resume")
    assert f"{uninterrupted} was trained by processes of torchrun" in said.error
    assert bayesneg(*train, "--out", plain).code == 0
    _, err = finished(process := torchrun(2, "-m", "bayesneg", *train, "--out", plain, "--resume"))
    assert process.returncode == 1
    assert f"error: {plain} was trained in one process; resume it without torchrun" in err


def test_recommendations_are_written_in_parts(uninterrupted, tmp_path):
    out = tmp_path / "recs.parquet"
    process = torchrun(
        2, "-m", "bayesneg", "recommend", uninterrupted, "--all-users", "-k", 5, "--device", "cpu", "--out", out
    )
    said, err = finished(process)
    assert process.returncode == 0, err
    assert "59 users, 295 rows" in said
    assert err.count("1 user has no training interaction: the most popular items") == 1
    assert sorted(path.name for path in out.iterdir()) == ["part-00000.parquet", "part-00001.parquet"]
    parts, whole = pl.read_parquet(out / "*.parquet"), bn.load_run(uninterrupted).recommend_all(k=5)
    assert parts.drop("score").equals(whole.drop("score"))
    np.testing.assert_allclose(parts["score"], whole["score"], rtol=1e-4)


def test_a_mistake_is_one_sentence_by_rank_0(tmp_path):
    process = torchrun(2, "-m", "bayesneg", "train", tmp_path / "none.csv", "--model", "torch-mf", "--device", "cpu")
    _, err = finished(process)
    assert process.returncode == 1  # of torchrun; that of the processes is 2
    assert err.count("error: ") == 1
    assert "none.csv: no such file" in err
    assert "exitcode  : 2" in err


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files by a system call")
def test_a_disk_that_fills_ends_all_and_the_last_checkpoint_is_resumed(train, uninterrupted, tmp_path):
    out = tmp_path / "full"
    _, err = finished(process := torchrun(2, MISBEHAVING, "full disk", *train, "--out", out))
    assert process.returncode == 1
    assert err.count("error: ") == 1
    assert f"error: the checkpoint {out / 'checkpoint-000020'} could not be written (rank 1: OSError: " in err
    assert "make room on the disk and start again with --resume" in err
    assert [path.name for path in out.glob("*checkpoint*")] == ["checkpoint-000010"]
    assert not [*out.glob(".*")]
    _, err = finished(process := torchrun(2, "-m", "bayesneg", *train, "--out", out, "--resume"))
    assert process.returncode == 0, err
    assert (out / "weights.safetensors").read_bytes() == (uninterrupted / "weights.safetensors").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files by a system call")
def test_recommendations_that_do_not_fit_the_disk_leave_what_was_there(uninterrupted, tmp_path):
    out = tmp_path / "recs.parquet"
    out.mkdir()
    (out / "part-00007.parquet").write_text("of before")
    recommend = ("recommend", uninterrupted, "--all-users", "-k", 5, "--device", "cpu", "--out", out)
    _, err = finished(process := torchrun(2, MISBEHAVING, "full disk", *recommend))
    assert process.returncode == 1
    assert f"error: --out {out} exists; name another folder, or replace it with --force" in err
    _, err = finished(process := torchrun(2, MISBEHAVING, "full disk", *recommend, "--force"))
    assert process.returncode == 1
    assert err.count("error: ") == 1
    assert f"error: rank 1: {tmp_path / '.recs.parquet.part' / 'part-00001.parquet'}: File too large; " in err
    assert "check the path and the free disk space" in err
    assert [path.name for path in tmp_path.iterdir()] == ["recs.parquet"]
    assert [path.read_text() for path in out.iterdir()] == ["of before"]
