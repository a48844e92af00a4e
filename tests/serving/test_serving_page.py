"""The requests on docs/how-to/serving.md get the answers that stand there, from the model of its first command."""

from __future__ import annotations

import json
import re
import shlex
import warnings
from pathlib import Path

import pytest

from bayesneg.cli import main

pytest.importorskip("fastapi", reason="fastapi is not installed (the extra 'serve')")
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Using `httpx` with `starlette.testclient` is deprecated")  # by newer versions
    from fastapi.testclient import TestClient

from bayesneg.serving.app import create_app
from bayesneg.serving.limits import Limits
from bayesneg.serving.reloading import Reloader
from bayesneg.serving.telemetry import Telemetry

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "serving.md").read_text(encoding="utf-8")
HOST = "http://127.0.0.1:8000"


def shown() -> list[tuple[list[str], str]]:
    """The arguments of each curl, and the line below it."""
    found = re.findall(r"^\$ (curl .*)\n(.*)$", PAGE, flags=re.MULTILINE)
    return [(shlex.split(command)[1:], answer) for command, answer in found]


def close(value: object) -> object:
    """Scores but for the last digits, which differ between processors."""
    if isinstance(value, dict):
        return {key: close(each) for key, each in value.items()}
    if isinstance(value, list):
        return [close(each) for each in value]
    return pytest.approx(value, rel=1e-3) if isinstance(value, float) else value


def test_the_answers_of_the_page_are_those_of_the_server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = re.search(r"^bayesneg (train synthetic .*)$", PAGE, flags=re.MULTILINE)
    with pytest.raises(SystemExit) as ended:
        main([*shlex.split(command[1]), "--baselines", "none", "-q"])
    assert not ended.value.code
    reloader = Reloader(tmp_path / "runs" / "bns", index=False, watch=0.0, telemetry=Telemetry(), say=print)
    asked = shown()
    assert len(asked) >= 3
    with TestClient(create_app(reloader, Limits())) as client:
        for (address, *more), answer in asked:
            assert address.startswith(HOST)
            path = address.removeprefix(HOST)
            body = more[more.index("--json") + 1] if "--json" in more else None
            got = client.get(path) if body is None else client.post(path, json=json.loads(body))
            assert json.loads(answer) == close(got.json()), got.text
