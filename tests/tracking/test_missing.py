"""Stores that are not there, as the command line and Python name them; no library of a tracker is needed here."""

from __future__ import annotations

import socket
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.tracking import libraries
from bayesneg.tracking.by_name import tracker_from


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(libraries, "find_spec", lambda name: ModuleSpec(name, None))


@pytest.mark.parametrize("name", ["tensorboard:logs", "mlflow:sqlite:///x.db", "wandb:project"])
def test_a_library_that_is_missing_is_named_with_its_extra(monkeypatch, name, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(libraries, "find_spec", lambda module: None)
    module = name.partition(":")[0]
    with pytest.raises(
        InputError, match=rf"needs the package {module}, which is not installed; pip install 'bayesneg\[{module}\]'"
    ):
        tracker_from(name).check()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tensorbord:x", "'tensorbord' is not a tracker; did you mean tensorboard?"),
        ("tensorboard", "'tensorboard' does not say where to; write for example tensorboard:logs"),
        ("wandb:", "'wandb:' does not say where to"),
    ],
)
def test_a_tracker_that_no_text_gives_is_one_sentence(text, said):
    with pytest.raises(InputError) as caught:
        tracker_from(text)
    assert said in str(caught.value)


def test_an_mlflow_store_that_is_not_there_is_one_sentence(installed, monkeypatch, tmp_path):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(InputError, match="mlflow needs a tracking URI"):
        bn.tracking.MLflow().check()
    with pytest.raises(InputError, match="the folder of the database does not exist; make it"):
        bn.tracking.MLflow(f"sqlite:///{tmp_path}/none/x.db").check()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InputError) as caught:
        bn.tracking.MLflow(f"http://ann:secret@127.0.0.1:{port}").check()
    assert "there is no server at" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "secret" not in bn.tracking.MLflow("http://ann:secret@host").store


def test_weights_and_biases_without_a_login_or_a_server_is_one_sentence(installed, monkeypatch, tmp_path):
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(InputError, match=r"nobody is logged in at http://127.0.0.1:9; run wandb login, or set"):
        bn.tracking.WandB("project").check()
    monkeypatch.setenv("WANDB_API_KEY", "x" * 40)
    with pytest.raises(InputError, match=r"there is no server at http://127.0.0.1:9"):
        bn.tracking.WandB("project").check()
    bn.tracking.WandB("project", mode="offline").check()
    monkeypatch.setenv("WANDB_MODE", "offline")
    bn.tracking.WandB("project").check()


def test_the_calls_to_weights_and_biases_are_those_of_its_documentation(monkeypatch):
    """wandb.init(project, entity, name, config, tags, id, resume, mode, dir), run.log(data, step), run.finish."""
    calls = []
    run = SimpleNamespace(
        id="abc",
        log=lambda data, step: calls.append(("log", data, step)),
        finish=lambda exit_code: calls.append(("finish", exit_code)),
        summary={},
    )
    module = SimpleNamespace(
        init=lambda **given: calls.append(("init", given)) or run, Settings=lambda **given: SimpleNamespace(**given)
    )
    monkeypatch.setitem(__import__("sys").modules, "wandb", module)
    tracker = bn.tracking.WandB("project", mode="offline")
    told = bn.tracking.TrackedRun("BNS", {"epochs": 2}, {"dataset": "d" * 99}, 2, "abc")
    assert tracker.start(told) == "abc"
    given = calls[0][1]
    assert (given["project"], given["id"], given["resume"], given["mode"]) == ("project", "abc", "allow", "offline")
    assert (given["config"], [len(tag) for tag in given["tags"]]) == ({"epochs": 2}, [64])
    tracker.log(3, {"tnr": 0.9})
    tracker.finish("interrupted", {})
    tracker.finish("finished", {"ndcg@20": 0.4})
    assert calls[1:] == [("log", {"epoch": 3, "tnr": 0.9}, 3), ("finish", 1), ("finish", 0)]
    assert run.summary == {"final/ndcg@20": 0.4}
    tracker.start(told._replace(continued=None))
    assert calls[-1][1]["resume"] is None
