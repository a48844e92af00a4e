"""Ctrl-C and SIGTERM in any command: the exit code, a sentence, nothing half written, no process left."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bayesneg.data.prepared import preparing
from bayesneg.runs import ledger
from bayesneg.runs.exports import exporting

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its signals are others")
BOTH = pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
START = "import sys; from bayesneg.cli import main; main(sys.argv[1:])"


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def signalled(monkeypatch: pytest.MonkeyPatch, home: object, name: str, number: int) -> None:
    """The process gets a signal at the end of a function."""
    usual = getattr(home, name)

    def then(*given: object, **named: object) -> object:
        found = usual(*given, **named)
        signal.raise_signal(number)
        return found

    monkeypatch.setattr(home, name, then)


@BOTH
def test_an_interrupted_export_leaves_the_one_before(bayesneg, finished, place, monkeypatch, number, code):
    assert bayesneg("export", finished, "exported").code == 0
    before = files_in(place)
    for target in ("new", "exported"):
        with monkeypatch.context() as patched:
            signalled(patched, exporting.files, "write_split", number)
            stopped = bayesneg("export", finished, target, "--force")
        assert (stopped.code, stopped.out) == (code, ""), stopped.err
        assert stopped.err.strip() == "interrupted; no file is left half written; to start over, run the command again"
        assert files_in(place) == before
    assert bayesneg("export", finished, "new").code == 0
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@BOTH
def test_interrupted_preparing_goes_on(bayesneg, ratings, place, monkeypatch, number, code):
    options = ("data", "prepare", ratings, "-q", "--json")
    whole = bayesneg(*options, "--out", "whole").json["fingerprint"]
    with monkeypatch.context() as patched:
        signalled(patched, preparing, "facts_of", number)
        stopped = bayesneg(*options, "--out", "stopped")
    assert (stopped.code, stopped.out) == (code, "")
    assert stopped.err.strip() == "interrupted; stopped keeps what was done, and the same command goes on"
    assert not (place / "stopped" / "prepared.json").exists()
    assert bayesneg(*options, "--out", "stopped").json["fingerprint"] == whole


@BOTH
def test_an_interrupted_download_leaves_nothing(bayesneg, place, monkeypatch, number, code):
    pooch = pytest.importorskip("pooch")
    monkeypatch.setattr(pooch, "retrieve", lambda *given, **named: signal.raise_signal(number))
    stopped = bayesneg("data", "get", "ml-100k", "--data-dir", place)
    assert (stopped.code, stopped.out) == (code, "")
    assert stopped.err.strip().startswith("interrupted; ")
    assert files_in(place) == set()


@BOTH
def test_an_interrupted_audit_says_how_to_go_on(bayesneg, ratings, place, monkeypatch, number, code):
    options = ("audit", ratings, "--samplers", "rns", "--seeds", 2, "--epochs", 1, "--jobs", 1, "-q", "--probes", 50)
    with monkeypatch.context() as patched:
        signalled(patched, ledger.Entry, "to_dict", number)
        stopped = bayesneg(*options, "--out", "found.jsonl")
    assert (stopped.code, stopped.out) == (code, "")
    assert "found.jsonl keeps the finished runs; resume with the same command and --resume" in stopped.err
    assert bayesneg(*options, "--out", "found.jsonl", "--resume").code == 0


def waited(until: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not until():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_sigterm_ends_a_training_after_its_epoch_with_a_checkpoint(bayesneg, ratings, place):
    as_paper = ("--model", "mf", "--sampler", "rns", "--select", "last")  # which no patience ends
    options = ("train", ratings, *as_paper, "--epochs", "4000", "--out", "run", "-q")
    process = subprocess.Popen([sys.executable, "-c", START, *map(str, options)], stderr=subprocess.PIPE, text=True)
    lines = place / "run" / "epochs.jsonl"
    waited(lambda: lines.exists() and lines.read_text().count("\n") > 12)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    assert "run keeps what was trained; resume with the same command and --resume" in said
    assert "Traceback" not in said
    done = lines.read_text().count("\n")
    assert bayesneg("train", ratings, *as_paper, "--epochs", done, "--out", "run", "-q", "--resume").code == 0
