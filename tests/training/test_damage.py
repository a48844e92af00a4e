"""A damaged file of a run is refused in a sentence that names it, or the run is still right; one process writes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import bayesneg as bn
from bayesneg.errors import DamagedError, InputError
from bayesneg.integrity.locks import FileLock
from bayesneg.runs import folder as files
from bayesneg.runs.recorder import EPOCHS_DONE
from fits import fit, without_seconds

FLIPS = 12  # bits of each file


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place // 8 % len(content)] ^= 1 << place % 8
    path.write_bytes(content)


def seen(run, user):
    return run.record.to_dict(), run.recommend(user, k=5), run.split.fingerprint


def test_one_flipped_bit_is_refused_or_changes_nothing(split, recorded):
    run, folder = recorded
    right, rng = seen(run, split.train.user_ids[7]), np.random.default_rng(0)
    refused, said = {}, []
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        refused[path.name] = 0
        for place in rng.integers(8 * len(whole), size=FLIPS).tolist():
            flip(path, place)
            try:
                assert seen(bn.load_run(folder), split.train.user_ids[7]) == right, (path.name, place)
            except InputError as error:
                refused[path.name] += 1
                said.append(str(error))
        path.write_bytes(whole)
    assert all(str(folder) in text and "\n" not in text for text in said), said
    unread = {"checkpoint.safetensors", "run.toml", "manifest.json"}  # the last: but for the name of its digest
    assert all(refused[name] == FLIPS for name in refused.keys() - unread), refused
    assert set(files.LISTED) - {files.TRAINED} <= refused.keys()


def test_a_run_without_its_manifest_is_refused_unless_it_never_had_one(split, recorded):
    run, folder = recorded
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"manifest.json is missing; copy it too, or finish the run"):
        bn.load_run(folder)
    head = json.loads((folder / "run.json").read_text())
    del head["manifest"]  # as an earlier version wrote it
    (folder / "run.json").write_text(json.dumps(head))
    assert seen(bn.load_run(folder), split.train.user_ids[7]) == seen(run, split.train.user_ids[7])


def test_a_split_with_other_labels_is_not_the_recorded_one(recorded):
    folder = recorded[1]
    pairs = pl.read_parquet(folder / "split.parquet")
    swapped = pairs.with_columns(pl.col("part").replace({"train": "test", "test": "train"}))
    swapped.write_parquet(folder / "split.parquet")
    with pytest.raises(DamagedError, match=r"split.parquet: the file is .*damaged"):
        bn.load_run(folder)
    files.seal(folder)
    with pytest.raises(DamagedError, match="does not have the recorded fingerprint"):
        bn.load_run(folder)


def cut(array):
    return array[:-1]


def replaced(value):
    def change(array):
        array = array.copy()
        array.flat[array.size // 2] = value
        return array

    return change


@pytest.fixture(scope="session")
def solved(split, tmp_path_factory):
    """Folders of baselines, by name."""
    models = {"ease": bn.baselines.EASE(), "knn": bn.baselines.ItemKNN(neighbours=5), "gfcf": bn.baselines.GFCF(rank=4)}
    models["als"] = bn.baselines.ALS(dim=4)
    top = tmp_path_factory.mktemp("solved")
    for name, model in models.items():
        bn.fit(model, split, out=top / name, progress=False)
    return top


@pytest.mark.parametrize(
    ("name", "array", "change", "words"),
    [
        ("ease", "item_model.dense.weights", cut, r"shape \(99, 100\), and must have \(100, 100\)"),
        ("ease", "item_model.dense.weights", replaced(np.nan), "not finite"),
        ("knn", "item_model.neighbours.neighbours", replaced(2**30), "1073741824, and all must be below 100"),
        ("knn", "item_model.neighbours.neighbours", replaced(-1), "-1, and all must be at least 0"),
        ("knn", "item_model.neighbours.starts", replaced(2**40), "starts must ascend from 0"),
        ("knn", "item_model.neighbours.starts", cut, r"shape \(100,\), and must have \(101\)"),
        ("knn", "item_model.neighbours.weights", cut, "weights has the shape"),
        ("gfcf", "item_model.graph-filter.indices", replaced(100), "100, and all must be below 100"),
        ("gfcf", "item_model.graph-filter.item_vectors", replaced(np.inf), "not finite"),
        ("als", "users", replaced(np.nan), "users has numbers that are not finite"),
        ("als", "items", lambda array: array[:, :-1], r"items has the shape \(100, 3\), and must have \(100, 4\)"),
        ("als", "items", cut, r"\(99, 4\), and must have \(100, 4\)"),
        ("als", "items", lambda array: array.astype(np.int32), "type int32, and must have float"),
    ],
)
def test_arrays_that_are_not_those_of_the_model_are_refused(solved, tmp_path, name, array, change, words):
    folder = shutil.copytree(solved / name, tmp_path / "run")
    bn.load_run(folder)
    weights = files.read_arrays(folder / files.WEIGHTS)
    files.write_arrays(folder / files.WEIGHTS, {**weights, array: change(weights[array])})
    files.seal(folder)
    with pytest.raises(DamagedError, match=words) as found:
        bn.load_run(folder)
    assert str(folder / files.WEIGHTS) in str(found.value)


def test_a_missing_or_unknown_array_is_refused(solved, tmp_path):
    folder = shutil.copytree(solved / "als", tmp_path / "run")
    weights = files.read_arrays(folder / files.WEIGHTS)
    for changed, words in (
        ({"users": weights["users"]}, "items is missing"),
        ({**weights, "itemz": weights["items"]}, "'itemz'"),
    ):
        files.write_arrays(folder / files.WEIGHTS, changed)
        files.seal(folder)
        with pytest.raises(DamagedError, match=words):
            bn.load_run(folder)


EMPIRICAL = bn.BNS(likelihood="empirical")


@pytest.fixture(scope="session")
def followed(split, tmp_path_factory):
    """Folders of samplers that remember, by name, each with the sampler."""
    samplers = {
        "srns": bn.SRNS(memory=3, fresh=5),
        "aobpr": bn.AOBPR(scale=5, rank="factor"),
        "empirical": EMPIRICAL,
        "dens": bn.samplers.DENS(),
    }
    top = tmp_path_factory.mktemp("followed")
    for name, sampler in samplers.items():
        fit(split, sampler, epochs=2, out=top / name)
    return top, samplers


@pytest.mark.parametrize(
    ("name", "array", "change", "words"),
    [
        ("srns", "sampler.items", replaced(2**30), "1073741824, and all must be below 100"),
        ("srns", "sampler.items", replaced(-2), "-2, and all must be at least -1"),
        ("srns", "sampler.items", cut, r"shape \(79, 3\), and must have \(80, 3\)"),
        ("srns", "sampler.past.1", cut, r"shape \(99, \d+\), and must have \(100, \d+\)"),
        ("srns", "sampler.users.0", replaced(np.nan), "not finite"),
        ("aobpr", "sampler.orders", replaced(2**30), "1073741824, and all must be below 100"),
        ("aobpr", "sampler.orders", cut, r"shape \(\d+, 100\), and must have \(\d+, 100\)"),
        ("empirical", "sampler.likelihood.values", replaced(7.0), "7.0, and all must be at most 1"),
        ("empirical", "sampler.likelihood.held", cut, "held has the shape"),
        ("dens", "sampler.gates", replaced(np.inf), "not finite"),
        ("dens", "model.users", cut, r"shape \(79, \d+\), and must have \(80, \d+\)"),
        ("dens", "model.items", replaced(np.nan), "not finite"),
        ("dens", "lines", replaced(0), "lines are not those of epochs"),
        ("dens", EPOCHS_DONE, lambda array: array + 1, "not those of 3 epochs"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(split, followed, tmp_path, name, array, change, words):
    top, samplers = followed
    folder = shutil.copytree(top / name, tmp_path / "run")
    state = files.read_checkpoint(folder)
    files.write_checkpoint(folder, {**state, array: change(state[array])})
    with pytest.raises(DamagedError, match=words) as found:
        fit(split, samplers[name], epochs=4, out=folder, resume=True)
    assert str(folder / files.CHECKPOINT) in str(found.value)


@pytest.mark.parametrize("place", [100, -1003])
def test_the_older_checkpoint_is_used_where_the_newest_is_damaged(split, recorded, six_epochs, place):
    folder = recorded[1]
    fit(split, epochs=5, out=folder, resume=True)
    assert (folder / files.PREVIOUS).exists()
    flip(folder / files.CHECKPOINT, place)
    resumed = fit(split, epochs=6, out=folder, resume=True)
    assert resumed.scorer.users.tobytes() == six_epochs.scorer.users.tobytes()
    assert without_seconds(resumed.record.epochs) == without_seconds(six_epochs.record.epochs)
    for name in (files.CHECKPOINT, files.PREVIOUS):
        assert len(files.read_arrays(folder / name)["lines"])  # the damaged one is not kept as the older
        flip(folder / name, -1003)
    with pytest.raises(DamagedError, match=r"checkpoint.previous.safetensors: the run is damaged .*sha256"):
        fit(split, epochs=7, out=folder, resume=True)


@pytest.mark.parametrize("wrong", [-1, 4])
def test_numbers_that_no_user_or_item_has_are_refused(wrong):
    ids = np.arange(4)
    for users, items, argument in (([0, wrong], [0, 1], "users"), ([0, 1], [0, wrong], "items")):
        with pytest.raises(InputError, match=f"{argument} must be numbers from 0 to 3, got {wrong}"):
            bn.Interactions.from_numbers(np.array(users), np.array(items), user_ids=ids, item_ids=ids)


@pytest.mark.parametrize("resume", [False, True])
def test_a_process_killed_while_it_writes_the_head_leaves_a_folder_that_can_be_used(split, tmp_path, resume):
    """The process is killed for good, in the middle of the file."""
    killed = (
        "import os, signal, sys; from pathlib import Path; from bayesneg.whole_files import write_whole\n"
        "def write(part): part.write_text('{\"sch'); os.kill(os.getpid(), signal.SIGKILL)\n"
        "Path(sys.argv[1]).mkdir(); write_whole(Path(sys.argv[1]) / 'run.json', write)"
    )
    assert subprocess.run([sys.executable, "-c", killed, str(tmp_path / "run")], check=False).returncode == -9
    (left,) = (tmp_path / "run").iterdir()
    assert left.name.startswith(".run.json.")
    fit(split, epochs=1, out=tmp_path / "run", resume=resume)
    assert len(bn.load_run(tmp_path / "run").record.epochs) == 1


def test_replacing_a_run_that_is_interrupted_leaves_a_folder_that_can_be_replaced(recorded, monkeypatch):
    run, folder = recorded
    with monkeypatch.context() as stopped:
        unlink, left = type(folder).unlink, []

        def stopping(path, missing_ok=False):
            if path.name == "weights.safetensors":
                raise KeyboardInterrupt
            left.append(path.name)
            unlink(path, missing_ok=missing_ok)

        stopped.setattr("pathlib.Path.unlink", stopping)
        with pytest.raises(KeyboardInterrupt):
            run.save(folder, overwrite=True)
    assert "run.json" not in left
    run.save(folder, overwrite=True)
    bn.load_run(folder)


def test_a_second_process_is_refused(split, recorded, tmp_path):
    run, folder = recorded
    with files.locked(folder):
        for write in (lambda: fit(split, epochs=5, out=folder, resume=True), lambda: run.save(folder, overwrite=True)):
            with pytest.raises(InputError, match=r"run is being written by another process; wait until it ends, or"):
                write()
    holds = []

    def second(line):
        with pytest.raises(InputError, match="another process"):
            files.locked(tmp_path / "new")
        holds.append(line["epoch"])

    fit(split, epochs=2, out=tmp_path / "new", progress=second)
    assert holds == [1, 2]
    with pytest.raises(ZeroDivisionError):
        fit(split, epochs=4, out=tmp_path / "new", resume=True, progress=lambda line: 1 // 0)
    files.locked(tmp_path / "new").release()  # a run that has ended, or failed, holds nothing


def test_a_killed_process_leaves_no_lock(tmp_path):
    holding = (
        "import sys, time; from pathlib import Path; from bayesneg.integrity.locks import FileLock\n"
        "held = FileLock(Path(sys.argv[1]), way_out=''); print('held', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", holding, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match="another process; wait"):
            FileLock(tmp_path, way_out="wait")
    finally:
        other.kill()
        other.communicate()
    FileLock(tmp_path, way_out="").release()
