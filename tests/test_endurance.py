"""Short runs of the four parts of tests/endurance.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from enduring import damages, inputs, kills, loop


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not killed by signals here")
def test_a_killed_training_is_resumed_to_the_same_result(tmp_path):
    assert kills.run(tmp_path, 1, 0, ("train",)) == 0


def test_damaged_files_give_the_right_answer_or_a_sentence(tmp_path):
    assert damages.run(tmp_path, 12, 0, ("run", "export", "prepared")) == 0


def test_a_wrong_answer_is_noticed():
    """The judge itself: it must not call everything right."""
    assert damages._judged(0, "a", "", "a") == "same"
    assert damages._judged(0, "b", "", "a") == "another answer"
    assert damages._judged(2, "", "error: damaged\n", "a") == "refused"
    assert "Traceback" in damages._judged(1, "", "Traceback (most recent call last)", "a")
    assert damages._judged(-11, "", "", "a").startswith("exit -11")


def test_generated_bad_input_is_read_or_refused(tmp_path):
    assert inputs.run(tmp_path, 300, 0) == 0


def test_an_input_without_a_sentence_is_noticed(tmp_path, monkeypatch):
    def broken(path: Path) -> None:
        raise KeyError(path)

    monkeypatch.setattr(inputs.bn, "load", broken)
    assert inputs.run(tmp_path, 40, 0) > 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_rounds_of_everything_go_through(tmp_path, monkeypatch):
    pytest.importorskip("fastapi", reason="fastapi is not installed (the extra 'serve')")
    monkeypatch.setattr(loop, "WARM", 1)
    monkeypatch.setattr(loop, "GROWTH", 1.0)  # three rounds say nothing about memory
    assert loop.run(tmp_path, 0.0) == 0
