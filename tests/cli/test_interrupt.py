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

WHOLE = ("weights.safetensors", "metrics.json", "per_user.parquet")
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
    pairs = {(int(u), int(300 * i**2)) for u, i in zip(rng.integers(0, 100, 3_000), rng.random(3_000), strict=True)}
    path = place / "world.csv"
    path.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in sorted(pairs)))
    return path


def test_a_run_stopped_and_stopped_again_is_resumed_to_the_same_bytes(bayesneg, world):
    options = ("train", world, "--epochs", 45, "--sampler", "srns")  # a sampler with a memory to keep
    assert bayesneg(*options, "--out", "whole").code == 0
    stopped, whole = world.parent / "stopped", world.parent / "whole"
    for how, code, n_lines in ((signal.SIGKILL, -signal.SIGKILL, 13), (signal.SIGINT, 130, 25)):
        process = start(*options, "--out", "stopped", *(["--resume"] if stopped.exists() else []))
        wait_for_lines(stopped / "epochs.jsonl", n_lines)
        process.send_signal(how)
        returned, said = finish(process)
        assert returned == code, said
        assert not (stopped / "metrics.json").exists()
        assert (stopped / "checkpoint.safetensors").exists()
        assert "not finished" in bayesneg("evaluate", stopped).error
    assert "--resume" in said
    assert "Traceback" not in said
    assert bayesneg(*options, "--out", "stopped", "--resume").code == 0
    assert all((stopped / name).read_bytes() == (whole / name).read_bytes() for name in WHOLE)
    assert epochs(stopped) == epochs(whole)


def test_an_interrupted_comparison_is_resumed_to_the_same_numbers(bayesneg, world):
    options = ("compare", world, "--samplers", "rns,bns", "--seeds", 1, "--epochs", 40, "--jobs", 2)
    whole = bayesneg(*options, "--out", "whole", "--json").json["runs"]
    (world.parent / "report.html").unlink()
    process = start(*options, "--out", "stopped")
    wait_for_lines(world.parent / "stopped" / "rns-seed0" / "epochs.jsonl", 3)
    process.send_signal(signal.SIGINT)
    returned, said = finish(process)
    assert returned == 130, said
    assert "--resume" in said
    assert "Traceback" not in said
    assert not (world.parent / "report.html").exists()
    resumed = bayesneg(*options, "--out", "stopped", "--resume", "--json").json["runs"]
    assert [run["final"] for run in resumed] == [run["final"] for run in whole]


def test_an_interrupted_audit_keeps_what_was_finished_and_goes_on_to_the_same_numbers(bayesneg, world):
    def measures(run):
        return [{**line, "seconds": 0} for line in run["epochs"]]

    options = ("audit", world, "--samplers", "rns,bns", "--seeds", 2, "--epochs", 20, "--jobs", 1, "--probes", 200)
    whole = bayesneg(*options, "--out", "whole.jsonl", "--json").json["runs"]
    (world.parent / "audit-report.html").unlink()
    process = start(*options, "--out", "stopped.jsonl")
    wait_for_lines(world.parent / "stopped.jsonl", 2)
    process.send_signal(signal.SIGINT)
    returned, said = finish(process)
    assert returned == 130, said
    assert "--resume" in said
    assert "Traceback" not in said
    assert not (world.parent / "audit-report.html").exists()
    resumed = bayesneg(*options, "--out", "stopped.jsonl", "--resume", "--json").json["runs"]
    assert list(map(measures, resumed)) == list(map(measures, whole))


INTERRUPTING = """
import signal
from pathlib import Path
import numpy as np
import bayesneg as bn


class Interrupting(bn.NegativeSampler):
    def __init__(self, epoch=0):
        self.epoch = epoch

    def sample(self, batch):
        if batch.epoch == self.epoch and (times := Path("times")).exists():
            how_often = int(times.read_text())
            times.unlink()
            for _ in range(how_often):
                signal.raise_signal(signal.SIGINT)
        items = np.arange(batch.train.n_items)
        return np.array([np.setdiff1d(items, batch.train.row(user))[0] for user in batch.users])
"""


@pytest.fixture
def interrupting(place: Path) -> str:
    (place / "own.py").write_text(INTERRUPTING)
    return "own.py:Interrupting"


def test_ctrl_c_lets_the_epoch_finish_and_keeps_it(bayesneg, ratings, interrupting):
    (ratings.parent / "times").write_text("1")
    done = bayesneg("train", ratings, "--sampler", f"{interrupting}:epoch=3", "--epochs", 9, "--out", "run")
    assert (done.code, done.out) == (130, "")
    assert "stopping after this epoch" in done.err
    assert "the same command and --resume" in done.err
    assert [line["epoch"] for line in epochs(ratings.parent / "run")] == [1, 2, 3]
    assert (ratings.parent / "run" / "checkpoint.safetensors").exists()


def test_a_second_ctrl_c_stops_at_once_and_the_half_epoch_is_not_kept(bayesneg, ratings, interrupting):
    def train(times: int, *options: str) -> int:
        if times:
            (ratings.parent / "times").write_text(str(times))
        return bayesneg("train", ratings, "--sampler", f"{interrupting}:epoch=13", "--epochs", 15, "-q", *options).code

    assert train(0, "--out", "whole") == 0
    assert train(2, "--out", "stopped") == 130
    stopped, whole = ratings.parent / "stopped", ratings.parent / "whole"
    assert len(epochs(stopped)) == 12
    assert train(0, "--out", "stopped", "--resume") == 0
    assert (stopped / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()
    assert epochs(stopped) == epochs(whole)


def test_without_out_an_interrupted_run_says_that_nothing_is_kept(bayesneg, ratings, interrupting):
    (ratings.parent / "times").write_text("1")
    done = bayesneg("train", ratings, "--sampler", f"{interrupting}:epoch=1", "--epochs", 9)
    assert done.code == 130
    assert "nothing is kept without --out" in done.err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
