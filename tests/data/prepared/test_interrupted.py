"""Killed at any moment, the same call goes on and ends with the same bytes; a disk that fills is named."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import bayesneg as bn

# dies in the middle of its n-th write: half of the bytes are there
CHILD = """
import os, signal, sys
from pathlib import Path
import bayesneg as bn
from bayesneg.data.prepared import files
from bayesneg.whole_files import unfinished

source, out, left = sys.argv[1], sys.argv[2], int(sys.argv[3])

def dying(write, half):
    def either(*given, **named):
        global left
        left -= 1
        if left == 0:
            half(*given)
            os.kill(os.getpid(), signal.SIGKILL)
        return write(*given, **named)
    return either

def half_a_file(path, content):
    unfinished(path).write_bytes(bytes(content)[: len(content) // 2])

def half_an_array(growing, values):
    growing._file.write(values[: len(values) // 2].astype(growing.dtype).tobytes())
    growing._file.flush()

files.write_whole = dying(files.write_whole, half_a_file)
files.GrowingArray.append = dying(files.GrowingArray.append, half_an_array)
bn.prepare(source, out, chunk_rows=60, user_columns=["plan"])
"""


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_killed_again_and_again_it_ends_with_the_same_bytes(tmp_path, ending):
    rng = np.random.default_rng(0)
    rows = {
        "user": [*map(str, rng.integers(0, 40, 290)), *(f"u{n}" for n in rng.integers(0, 9, 10))],
        "item": rng.integers(0, 30, 300),
        "time": rng.integers(0, 9, 300),
        "plan": rng.choice(["pro", "free"], 300).tolist(),
    }
    source = tmp_path / f"rows.{ending}"
    pl.DataFrame(rows).write_parquet(source) if ending == "parquet" else pl.DataFrame(rows).write_csv(source)
    bn.prepare(source, tmp_path / "whole", user_columns=["plan"])
    ends = []
    kills = (2, 7, 13, 9, 12) if ending == "parquet" else (7, 20)
    for writes in (*kills, 10**6):
        command = [sys.executable, "-c", CHILD, str(source), str(tmp_path / "killed"), str(writes)]
        ends.append(subprocess.run(command, check=False, timeout=60).returncode)
    assert ends == [-9] * len(kills) + [0]
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


FULL = """
import resource, sys
from bayesneg.cli import main
from bayesneg.data.prepared.integer_table import IntegerTable
IntegerTable().number(__import__("numpy").arange(2000))  # compiled before files may not grow
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
main(["data", "prepare", sys.argv[1], "--out", sys.argv[2], *sys.argv[4:]])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files by a system call")
def test_a_disk_that_fills_is_a_sentence_that_names_the_file_and_the_command_goes_on_later(tmp_path):
    rng = np.random.default_rng(0)
    pairs = {"user": rng.integers(0, 3000, 9000), "item": rng.integers(0, 30, 9000)}
    source, out = tmp_path / "rows.parquet", tmp_path / "out"
    pl.DataFrame(pairs).write_parquet(source)
    for size, file in ((20_000, "keys-"), (30_000, "indices.npy")):
        command = [sys.executable, "-c", FULL, str(source), str(out), str(size), "--chunk-rows", "3000"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"error: {out}")
        assert file in done.stderr
        assert done.stderr.endswith("check the path and the free disk space\n")
        assert done.stderr.count("\n") == 1
    assert bn.prepare(source, out).fingerprint == bn.load(source).fingerprint
