"""A sweep ends with the same numbers whatever happens on the way."""

from __future__ import annotations

import multiprocessing.spawn
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
import sweeps
from sweeps import children, is_running

from bayesneg.errors import InputError
from bayesneg.experiments.datasets import Source
from bayesneg.reproduction.sweeps.cells import Cell, run_cell
from bayesneg.reproduction.sweeps.sweep import sweep
from bayesneg.runs import ledger

RUN = """
import sys
from pathlib import Path
from bayesneg.experiments.datasets import Source
from bayesneg.reproduction.sweeps.recipe import Recipe
from bayesneg.reproduction.sweeps.sweep import sweep

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
    """A recipe, its cells, and a ledger of them that no worker had a part in."""
    folder = tmp_path_factory.mktemp("whole")
    source, path = Source(), folder / "records.jsonl"
    cells = sweeps.read(folder, epochs=25).cells(source.fingerprint)
    writer = ledger.Writer(path)
    for cell in cells:
        record = run_cell(cell, source.split(cell.dataset, cell.view), progress=lambda line: None)
        writer.add(ledger.Entry(cell.key, cell.to_dict(), record))
    return folder / "three.toml", cells, path


def start(recipe: Path, path: Path, *, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """A sweep in another process, whose whole group may get a signal."""
    command = [sys.executable, "-c", RUN, recipe, path]
    return subprocess.Popen(command, stderr=stderr, text=True, start_new_session=True)


def waited(condition) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def under_way(recipe: Path, path: Path, **more: int) -> subprocess.Popen[str]:
    """A sweep in another process that has finished its first cell."""
    process = start(recipe, path, **more)
    waited(lambda: path.exists() and path.stat().st_size)
    return process


def killing_workers(path: Path, *, n: int) -> Thread:
    """Kills workers of this process once the first cell is finished."""

    def kill() -> None:
        waited(lambda: path.exists() and path.stat().st_size)
        for worker in children(os.getpid())[:n]:
            os.kill(worker, signal.SIGKILL)

    thread = Thread(target=kill)
    thread.start()
    return thread


def test_a_sweep_in_workers_gives_the_numbers_of_this_process(whole, tmp_path):
    _, cells, undisturbed = whole
    path = tmp_path / "new" / "records.jsonl"
    assert sweep(cells, path, Source(), jobs=2, progress=False) == []
    assert len(cells) == path.read_text().count("\n") == 12
    assert numbers(path) == numbers(undisturbed)


def test_killed_at_random_moments_and_started_again_it_gives_the_same_numbers(whole, tmp_path):
    recipe, _, undisturbed = whole
    path, moment = tmp_path / "records.jsonl", random.Random(4)  # after one record, and after three more
    for _ in range(2):
        sweeps.killed(start(recipe, path), path, moment)
    assert start(recipe, path).wait(60) == 0
    assert numbers(path) == numbers(undisturbed)


def test_a_lost_worker_costs_its_cell_a_second_try_and_the_rest_goes_on(whole, tmp_path):
    _, cells, undisturbed = whole
    path = tmp_path / "records.jsonl"
    killing = killing_workers(path, n=1)
    assert sweep(cells, path, Source(), jobs=2, progress=False) == []
    killing.join()
    assert numbers(path) == numbers(undisturbed)


def python_that_is_killed(monkeypatch, folder: Path, starts: str) -> None:
    """Workers are killed at those of their starts: a pattern of the shell, 1 is the first."""
    path = folder / "python"
    path.write_text(
        f'#!/bin/sh\ncase "$*" in *spawn_main*) echo >> "{folder}/starts";; *) exec "{sys.executable}" "$@";; esac\n'
        f'case $(($(wc -l < "{folder}/starts"))) in {starts}) kill -KILL $$;; esac\nexec "{sys.executable}" "$@"\n'
    )
    path.chmod(0o755)
    monkeypatch.setattr(multiprocessing.spawn, "_python_exe", str(path).encode())


def test_workers_killed_while_they_start_are_replaced(whole, tmp_path, monkeypatch):
    _, cells, undisturbed = whole
    python_that_is_killed(monkeypatch, tmp_path, "1|2")
    path = tmp_path / "records.jsonl"
    assert sweep(cells[:2], path, Source(), jobs=1, progress=False) == []
    expected = numbers(undisturbed)
    assert numbers(path) == {key: expected[key] for key in sorted(cell.key for cell in cells[:2])}


def test_where_no_worker_starts_every_cell_is_reported_after_a_few_attempts(whole, tmp_path, monkeypatch):
    _, cells, _ = whole
    python_that_is_killed(monkeypatch, tmp_path, "*")
    failures = sweep(cells, tmp_path / "records.jsonl", Source(), progress=False)
    assert {failure.cell.key for failure in failures} == {cell.key for cell in cells}
    assert {failure.why for failure in failures} == {"4 worker processes in a row died before they were ready"}
    assert (tmp_path / "starts").read_text().count("\n") == 4


def test_where_no_worker_starts_any_more_what_is_left_is_reported(whole, tmp_path, monkeypatch):
    _, cells, _ = whole
    python_that_is_killed(monkeypatch, tmp_path, "[3-9]")
    path = tmp_path / "records.jsonl"
    killing = killing_workers(path, n=2)
    failures = sweep(cells, path, Source(), jobs=2, progress=False)
    killing.join()
    assert 0 < len(failures) == len(cells) - len(ledger.read(path))


def test_ctrl_c_while_workers_start_says_nothing_of_theirs(whole, tmp_path):
    process = start(whole[0], tmp_path / "records.jsonl", stderr=subprocess.PIPE)
    waited(lambda: len(children(process.pid)) == 2)
    workers = children(process.pid)
    time.sleep(0.1)  # they import
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert said.count("Traceback") == 1  # of this test's own script
    assert "spawn_main" not in said
    assert not any(map(is_running, workers))


def test_workers_end_when_the_sweep_is_killed(whole, tmp_path):
    process = under_way(whole[0], tmp_path / "records.jsonl")
    workers = children(process.pid)
    assert workers
    process.kill()
    process.wait()
    waited(lambda: not any(map(is_running, workers)))


def test_ctrl_c_ends_the_sweep_and_its_workers_and_keeps_what_is_finished(whole, tmp_path):
    recipe, cells, undisturbed = whole
    path = tmp_path / "records.jsonl"
    process = under_way(recipe, path, stderr=subprocess.PIPE)
    workers = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert said.count("Traceback") == 1
    assert workers
    assert not any(map(is_running, workers))
    before, kept = path.read_text(), len(ledger.read(path))
    assert 0 < kept < len(cells)
    assert sweep(cells, path, Source(), jobs=2, progress=False) == []
    assert path.read_text().startswith(before)
    assert numbers(path) == numbers(undisturbed)


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
