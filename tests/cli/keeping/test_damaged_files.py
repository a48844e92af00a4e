"""Whatever is wrong with a file of a run, a search, a ledger or a table: one sentence that names it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from bayesneg import errors
from bayesneg.runs import ledger
from bayesneg.runs.folder import reading, seal
from bayesneg.tuning.kept_trials import KEPT, kept_trials

NESTED = "[" * 100_000
JSON_DAMAGES = {
    "nested": lambda text: NESTED,
    "no JSON": lambda text: text.replace('"', "", 1),
    "a list": lambda text: "[1, 2]\n",
    "a number": lambda text: "7\n",
    "no keys": lambda text: "{}\n",
    "no UTF-8": lambda text: "\udcff" + text,
}


@pytest.fixture
def damaged(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "damaged"))


@pytest.mark.parametrize("how", JSON_DAMAGES)
@pytest.mark.parametrize("name", ["run.json", "metrics.json", "epochs.jsonl"])
def test_damaged_json_of_a_run_is_a_sentence(bayesneg, damaged, name, how):
    path = damaged / name
    path.write_bytes(JSON_DAMAGES[how](path.read_text()).encode(errors="surrogateescape") + b"\n")
    assert str(damaged) in bayesneg("report", damaged).error
    seal(damaged)  # the check behind the digests
    for command in ("report", "evaluate"):
        assert str(damaged) in bayesneg(command, damaged).error


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("metrics.json", "reported_epoch", "3"),
        ("metrics.json", "mean", {"ndcg@20": "high"}),
        ("metrics.json", "interval", {"ndcg@20": 0.5}),
        ("run.json", "label", 5),
        ("run.json", "data", [1]),
        ("run.json", "spec", None),
        ("run.json", "seed", "zero"),
    ],
)
def test_a_value_of_another_type_is_a_sentence(bayesneg, damaged, name, key, value):
    content = json.loads((damaged / name).read_text())
    (content["record"] if name == "run.json" else content)[key] = value
    (damaged / name).write_text(json.dumps(content))
    assert "run.json: the file is cut off or damaged" in bayesneg("report", damaged).error.replace(name, "run.json")
    seal(damaged)  # as a person would who changes it on purpose
    assert "the run is damaged" in bayesneg("report", damaged).error


def test_a_file_that_may_not_be_read_is_not_called_damaged(damaged):
    with pytest.raises(PermissionError, match="weights"), reading(damaged):
        raise PermissionError(13, "Permission denied", str(damaged / "weights.safetensors"))


def panic() -> BaseException:
    """What polars raises where its code gives up: no ``Exception``."""
    return type("PanicException", (BaseException,), {})("range end index 7 out of range\nnote: run with RUST_BACKTRACE")


def test_a_panic_of_polars_is_a_sentence(bayesneg, damaged, place, monkeypatch):
    def panics(*given: object, **named: object) -> None:
        raise panic()

    pl.DataFrame({"user": ["a", "b"], "item": ["x", "y"]}).write_parquet(place / "rows.parquet")
    monkeypatch.setattr(pl, "read_parquet", panics)
    for arguments, named in (
        (("data", "describe", place / "rows.parquet"), "rows.parquet"),
        (("evaluate", damaged), "damaged"),
    ):
        said = bayesneg(*arguments).error
        assert named in said
        assert "range end index 7 out of range" in said
        assert "RUST" not in said


def test_other_exceptions_pass_where_panics_are_caught():
    with pytest.raises(KeyboardInterrupt), errors.no_panic():
        raise KeyboardInterrupt
    with pytest.raises(errors.PanicError), errors.no_panic():
        raise panic()


def test_a_damaged_ledger_is_a_sentence_and_half_a_line_is_not(tmp_path, damaged):
    record = json.loads((damaged / "run.json").read_text())["record"]
    metrics = json.loads((damaged / "metrics.json").read_text())
    whole = {**record, "epochs": [], "final": metrics["mean"], "intervals": metrics["interval"], "reported_epoch": 3}
    line = {"schema": ledger.SCHEMA, "key": "k", "cell": {}, "record": whole}
    path = tmp_path / "records.jsonl"
    path.write_text(f"{json.dumps(line)}\n{NESTED}\n{json.dumps(line)[:50]}")
    assert [*ledger.read(path)] == ["k"]
    for wrong in ({"cell": 5}, {"record": 5}, {"record": {**whole, "final": {"ndcg@20": "high"}}}):
        path.write_text(f"\n{json.dumps({**line, **wrong})}\n")
        with pytest.raises(errors.InputError, match=f"{path} line 2 is damaged .*; delete the line"):
            ledger.read(path)


def test_damaged_lines_of_kept_trials_are_a_sentence(tmp_path):
    line = {
        "place": 0,
        "label": "RNS",
        "claim": "c",
        "curve": {"1": 0.5},
        "state": "COMPLETE",
        "seconds": 1.0,
        "failed": "",
    }
    path = tmp_path / KEPT
    path.write_text(f"{json.dumps(line)}\n{json.dumps(line)[:20]}")
    assert kept_trials(tmp_path) == [line]
    assert path.read_text() == f"{json.dumps(line)}\n"
    for wrong in (
        NESTED,
        "{}",
        "5",
        "x",
        json.dumps({**line, "curve": {"1": "x"}}),
        json.dumps({**line, "curve": {"x": 1}}),
    ):
        path.write_text(f"{json.dumps(line)}\n{wrong}\n")
        with pytest.raises(errors.InputError, match=f"{path} line 2 is damaged"):
            kept_trials(tmp_path)


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished search of one process."""
    optuna = pytest.importorskip("optuna")
    from bayesneg.tuning import studies

    folder = tmp_path_factory.mktemp("searched") / "search"
    facts = {"sampler": "rns", "label": "RNS", "family": "rns", "loss": "bpr", "settings": {}, "loss_settings": {}}
    with studies.opened(folder, {"seed": 0}, resume=False) as store:
        for place in range(2):
            store.study.add_trial(
                optuna.create_trial(
                    value=0.5,
                    intermediate_values={1: 0.25, 2: 0.5},
                    user_attrs={**facts, "place": place, "seconds": 1.0},
                )
            )
    return folder


SEARCH_DAMAGES = {
    "nested": lambda text: NESTED + "\n" + text,
    "no JSON": lambda text: text.replace("{", "", 1),
    "a list": lambda text: "[]\n" + text,
    "a number": lambda text: "5\n" + text,
    "no operation": lambda text: text.replace('"op_code"', '"op"', 1),
    "another operation": lambda text: text.replace('"op_code":4', '"op_code":99', 1),
    "the first line is lost": lambda text: text.partition("\n")[2],
    "a score is text": lambda text: text.replace("0.25", '"x"', 1),
    "a place is text": lambda text: text.replace('"place":0', '"place":"x"', 1),
    "a label is lost": lambda text: text.replace('"label"', '"lebal"', 1),
    "settings are text": lambda text: text.replace('"settings":{}', '"settings":"x"', 1),
    "another result": lambda text: text.replace('"value":0.5', '"value":0.9', 1).replace(
        '"values":[0.5]', '"values":[0.9]', 1
    ),
    "no UTF-8": lambda text: "\udcff" + text,
}


@pytest.mark.parametrize("how", SEARCH_DAMAGES)
def test_a_damaged_search_is_a_sentence(search, tmp_path, how):
    from bayesneg.tuning import studies

    folder = Path(shutil.copytree(search, tmp_path / "search"))
    (journal,) = (path for path in folder.iterdir() if path.suffix == ".jsonl")
    before = journal.read_text()
    text = SEARCH_DAMAGES[how](before.replace(": ", ":"))
    assert text != before.replace(": ", ":")
    journal.write_bytes(text.encode(errors="surrogateescape"))
    with (
        pytest.raises(
            errors.InputError, match=f"{journal} is damaged .*; put back a copy of it, or begin the search again"
        ),
        studies.opened(folder, {"seed": 0}, resume=True),
    ):
        pass


def test_a_whole_search_is_resumed(search):
    from bayesneg.tuning import studies

    with studies.opened(search, {"seed": 0}, resume=True) as store:
        assert len(store.live()) == 2


HUGE = 10**20


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "--epochs", HUGE),
        ("train", "--seed", HUGE),
        ("train", "--evaluate-every", HUGE),
        ("train", "--evaluate-users", HUGE),
        ("train", "--set", f"dim={HUGE}"),
        ("train", "--set", f"candidates={HUGE}"),
        ("compare", "--seeds", HUGE),
        ("compare", "--jobs", HUGE),
        ("tune", "--trials", HUGE),
        ("data", "prepare", "--out", "new", "--chunk-rows", HUGE),
    ],
)
def test_a_size_that_no_array_can_have_is_a_sentence(bayesneg, ratings, arguments):
    command, *options = arguments
    names = (command, options.pop(0)) if command == "data" else (command,)
    assert "at most 2^63 - 1, got 1" in bayesneg(*names, ratings, *options).error


START = """
import os, runpy, signal, sys
import bayesneg
class Early:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Early())
sys.argv = ["bayesneg", "--version"]
runpy.run_module("bayesneg", run_name="__main__")
"""


def test_ctrl_c_while_libraries_are_imported_leaves_no_traceback():
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\ninterrupted\n")
