"""A sweep ends with the same numbers whatever happens on the way."""

from __future__ import annotations

import multiprocessing.spawn
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import sweeps

from bayesneg.errors import InputError
from bayesneg.experiments.cells import Cell
from bayesneg.experiments.datasets import Source
from bayesneg.experiments.sweep import sweep
from bayesneg.runs import ledger

RUN = """
import multiprocessing
import sys
from pathlib import Path
from bayesneg.experiments.datasets import Source
from bayesneg.experiments.recipe import Recipe
from bayesneg.experiments.sweep import sweep

multiprocessing.set_executable(sys.argv[3])
failures = sweep(Recipe.read(Path(sys.argv[1])).cells(Source().fingerprint), Path(sys.argv[2]), Source(), jobs=2)
sys.exit(len(failures))
"""


def numbers(path: Path) -> dict[str, object]:
    """All that a table is made from; seconds are not."""
    return {
        key: (entry.cell, dict(entry.record.final), entry.record.reported_epoch, entry.record.at_epochs("tnr"))
        for key, entry in sorted(ledger.read(path).items())
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Cell], Path]:
    """A recipe, its cells, and the ledger of a sweep that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    cells = sweeps.read(folder, epochs=25).cells(Source().fingerprint)
    path = folder / "out" / "records.jsonl"
    assert sweep(cells, path, Source(), jobs=2, progress=False) == []
    return folder / "three.toml", cells, path


def start(recipe: Path, path: Path, *, python: str = sys.executable) -> subprocess.Popen[str]:
    """A sweep in a process of its own; its workers are started with ``python``."""
    return subprocess.Popen([sys.executable, "-c", RUN, recipe, path, python], stderr=subprocess.DEVNULL, text=True)


def children(process: subprocess.Popen[str]) -> list[int]:
    """Its worker processes; multiprocessing has another one."""
    found = []
    for threads in Path(f"/proc/{process.pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(number) for number in threads.read_text().split()]
    return [number for number in found if b"spawn_main" in command_of(number)]


def command_of(number: int) -> bytes:
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return b""


def is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_every_cell_is_there_once(whole):
    _, cells, path = whole
    assert len(cells) == 12
    assert set(ledger.read(path)) == {cell.key for cell in cells}
    assert path.read_text().count("\n") == 12


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_random_moments_and_started_again_it_gives_the_same_numbers(whole, tmp_path, seed):
    recipe, _, undisturbed = whole
    path, moment = tmp_path / "records.jsonl", random.Random(seed)
    for _ in range(3):
        sweeps.killed(start(recipe, path), path, moment)
    assert start(recipe, path).wait(60) == 0
    assert numbers(path) == numbers(undisturbed)


def under_way(recipe, path, **changes):
    """A sweep that has finished its first cell."""
    process = start(recipe, path, **changes)
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.005)
    return process


def test_a_lost_worker_costs_its_cell_a_second_try_and_the_rest_goes_on(whole, tmp_path):
    recipe, _, undisturbed = whole
    path = tmp_path / "records.jsonl"
    process = under_way(recipe, path)
    os.kill(children(process)[0], signal.SIGKILL)
    assert process.wait(60) == 0
    assert numbers(path) == numbers(undisturbed)


def python_that_is_killed(folder: Path, starts: str) -> str:
    """An interpreter that is killed at those of its starts as a worker: a pattern of the shell, 1 is the first."""
    path = folder / "python"
    path.write_text(
        f'#!/bin/sh\ncase "$*" in *spawn_main*) echo >> "{folder}/starts";; *) exec "{sys.executable}" "$@";; esac\n'
        f'case $(($(wc -l < "{folder}/starts"))) in {starts}) kill -KILL $$;; esac\nexec "{sys.executable}" "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def test_workers_killed_while_they_start_are_replaced(whole, tmp_path, monkeypatch):
    _, cells, undisturbed = whole
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", python_that_is_killed(tmp_path, "1|2").encode())
    path = tmp_path / "records.jsonl"
    assert sweep(cells[:2], path, Source(), jobs=1, progress=False) == []
    expected = numbers(undisturbed)
    assert numbers(path) == {key: expected[key] for key in sorted(cell.key for cell in cells[:2])}


def test_where_no_worker_starts_every_cell_is_reported_after_a_few_attempts(whole, tmp_path, monkeypatch):
    _, cells, _ = whole
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", python_that_is_killed(tmp_path, "*").encode())
    failures = sweep(cells, tmp_path / "records.jsonl", Source(), progress=False)
    assert {failure.cell.key for failure in failures} == {cell.key for cell in cells}
    assert {failure.why for failure in failures} == {"4 worker processes in a row died before they were ready"}
    assert (tmp_path / "starts").read_text().count("\n") == 4


def test_where_no_worker_starts_any_more_what_is_left_is_reported(whole, tmp_path):
    recipe, cells, _ = whole
    path = tmp_path / "records.jsonl"
    process = under_way(recipe, path, python=python_that_is_killed(tmp_path, "[3-9]"))
    for worker in children(process):
        os.kill(worker, signal.SIGKILL)
    n_failures = process.wait(60)
    assert 0 < n_failures == len(cells) - len(ledger.read(path))


def in_a_terminal(recipe: Path, path: Path) -> subprocess.Popen[str]:
    """A sweep whose whole group gets the signal, as at Ctrl-C."""
    command = [sys.executable, "-c", RUN, recipe, path, sys.executable]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def test_ctrl_c_while_workers_start_says_nothing_of_theirs(whole, tmp_path):
    process = in_a_terminal(whole[0], tmp_path / "records.jsonl")
    until = time.monotonic() + 60
    while len(workers := children(process)) < 2:
        assert time.monotonic() < until
        time.sleep(0.005)
    time.sleep(0.1)  # they import
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert said.count("Traceback") == 1  # of this test's own script
    assert not any(map(is_running, workers))


def test_workers_end_when_the_sweep_is_killed(whole, tmp_path):
    process = under_way(whole[0], tmp_path / "records.jsonl")
    workers = children(process)
    assert workers
    process.kill()
    process.wait()
    until = time.monotonic() + 60
    while any(map(is_running, workers)):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_ctrl_c_ends_the_sweep_and_its_workers_and_keeps_what_is_finished(whole, tmp_path):
    recipe, cells, _ = whole
    path = tmp_path / "records.jsonl"
    process = under_way(recipe, path)
    workers = children(process)
    process.send_signal(signal.SIGINT)
    process.wait(60)
    assert process.returncode != 0
    assert workers
    assert not any(map(is_running, workers))
    kept = ledger.read(path)
    assert 0 < len(kept) < len(cells)
    assert start(recipe, path).wait(60) == 0
    assert {key: entry.record.final for key, entry in kept.items()} == {
        key: ledger.read(path)[key].record.final for key in kept
    }


def test_a_finished_cell_is_not_run_again_unless_asked_to(whole, tmp_path):
    _, cells, undisturbed = whole
    path = tmp_path / "records.jsonl"
    path.write_text(undisturbed.read_text())
    assert sweep(cells, path, Source(), progress=False) == []
    assert path.read_text() == undisturbed.read_text()
    assert sweep(cells[:1], path, Source(), resume=False, progress=False) == []
    assert path.read_text().count("\n") == len(cells) + 1
    assert numbers(path) == numbers(undisturbed)


def test_a_line_left_unfinished_is_run_again(whole, tmp_path):
    _, cells, undisturbed = whole
    path = tmp_path / "records.jsonl"
    path.write_text(undisturbed.read_text()[:-200])
    assert len(ledger.read(path)) == len(cells) - 1
    assert sweep(cells, path, Source(), progress=False) == []
    assert numbers(path) == numbers(undisturbed)


def test_a_cell_that_cannot_be_trained_is_reported_and_the_others_are_finished(whole, tmp_path):
    _, cells, _ = whole
    wrong = [
        replace(cells[0], model_settings={"learning_rate": 1e30}),
        replace(cells[1], fingerprint="of other data"),
    ]
    path = tmp_path / "records.jsonl"
    failures = sweep([*wrong, cells[2]], path, Source(), jobs=2, progress=False)
    assert {failure.cell.key for failure in failures} == {cell.key for cell in wrong}
    assert "diverged" in " ".join(map(str, failures))
    assert "plan the sweep again" in " ".join(map(str, failures))
    assert list(ledger.read(path)) == [cells[2].key]


def test_no_worker_is_an_error():
    with pytest.raises(InputError, match="jobs must be a whole number of at least 1, got 0"):
        sweep([], Path("x"), Source(), jobs=0)
