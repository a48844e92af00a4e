"""``bayesneg serve``: what requests get, and what a reload does to them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

import bayesneg as bn

pytest.importorskip("fastapi", reason="fastapi is not installed (the extra 'serve')")
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Using `httpx` with `starlette.testclient` is deprecated")  # by newer versions
    from fastapi.testclient import TestClient

from bayesneg.serving import reloading, server
from bayesneg.serving.app import create_app
from bayesneg.serving.limits import Limits
from bayesneg.serving.reloading import Reloader
from bayesneg.serving.telemetry import Telemetry

LIMITS = Limits(max_k=50, max_users=3, max_ids=20, max_body=2_000)


def reloader_of(folder, *, index=True, watch=0.0, said=None):
    return Reloader(
        folder, index=index, watch=watch, telemetry=Telemetry(), say=(said if said is not None else []).append
    )


@pytest.fixture(scope="module")
def client(saved):
    with TestClient(create_app(reloader_of(saved), LIMITS), raise_server_exceptions=False) as opened:
        yield opened


def pairs(items, value="score"):
    return [(line["item"], pytest.approx(line[value])) for line in items]


def error_of(answer, status):
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    return answer.json()["error"]


def test_recommend_answers_as_the_run_does(client, run):
    user = run.split.train.user_ids[4].item()
    found = client.get("/recommend", params={"user": user, "k": 7}).json()
    assert found["user"] == user  # an integer, as in the data
    assert found["n_training_interactions"] == run.split.train.counts[4]
    assert pairs(found["items"]) == run.recommend(user, k=7)
    allowed = client.get("/recommend", params={"user": user, "k": 7, "include_held_out": True}).json()
    assert pairs(allowed["items"]) == run.recommend(user, k=7, include_held_out=True)


def test_several_users_get_the_lists_that_each_gets(client, run):
    users = run.split.train.user_ids[:3].tolist()
    first = run.recommend(users[0], k=1)[0][0]
    found = client.post("/recommend", json={"users": users, "k": 5, "exclude": [first]}).json()["lists"]
    assert [line["user"] for line in found] == users
    assert [pairs(line["items"]) for line in found] == [run.recommend(user, k=5, exclude=[first]) for user in users]


def test_similar_and_fold_in_answer_as_the_run_does(client, run):
    item = run.split.train.item_ids[9]
    found = client.get("/similar", params={"item": item, "k": 4}).json()
    assert (found["item"], pairs(found["items"], "similarity")) == (item, run.similar(item, 4))
    items = run.split.train.item_ids[[1, 5, 8]].tolist()
    new = client.post("/fold-in", json={"items": [*items, "unheard of"], "k": 6, "skip_unknown": True}).json()
    assert (new["n_items"], new["unknown"]) == (3, ["unheard of"])
    assert pairs(new["items"]) == run.fold_in(items).recommend(k=6)
    only = run.split.train.item_ids[20:25].tolist()
    few = client.post("/fold-in", json={"items": items, "only": only}).json()
    assert {line["item"] for line in few["items"]} == set(only)


def test_an_unknown_identifier_is_a_404_with_the_sentence_of_the_run(client, run):
    for asked, call in {
        ("GET", "/recommend?user=100000"): lambda: run.recommend("100000"),
        ("GET", "/similar?item=flim%207"): lambda: run.similar("flim 7"),
    }.items():
        with pytest.raises(bn.BayesnegError) as expected:
            call()
        assert error_of(client.request(*asked), 404) == str(expected.value)
    assert "nearest user" in error_of(client.get("/recommend?user=100000"), 404)
    assert "'flim'" in error_of(client.post("/fold-in", json={"items": ["flim"]}), 404)
    assert "100000" in error_of(client.post("/recommend", json={"users": [1, 100000]}), 404)


@pytest.mark.parametrize(
    ("path", "status", "expected"),
    [
        ("/recommend", 422, "user is missing; the parameters are user, k, include_held_out"),
        ("/recommend?user=", 422, "user must not be empty, got ''"),
        ("/recommend?user=1&k=0", 422, "k must be at least 1, got 0"),
        ("/recommend?user=1&k=ten", 422, "k must be a whole number, got 'ten'"),
        ("/recommend?user=1&k=51", 400, "k must be at most 50, got 51"),
        ("/recommend?user=1&K=5", 422, "there is no parameter 'K'; the parameters are user, k, include_held_out"),
        ("/recommend?user=1&include_held_out=perhaps", 422, "include_held_out must be true or false, got 'perhaps'"),
        ("/recommend?user=" + "9" * 1_001, 422, "user must have at most 1,000 characters"),
        ("/similar?item=film%201&k=-1", 422, "k must be at least 1, got -1"),
        ("/fold-in", 405, "/fold-in does not take GET; use POST"),
        ("/../etc/passwd", 404, "there is no '/etc/passwd'; the paths are /recommend, /similar"),
        ("/recommend?user=1&user=2", 400, "user is given 2 times; give it once"),
        ("/", 404, "there is no '/'; the paths are /recommend"),
    ],
)
def test_a_wrong_request_gets_a_sentence(client, path, status, expected):
    assert expected in error_of(client.get(path), status)


@pytest.mark.parametrize(
    ("path", "body", "status", "expected"),
    [
        ("/fold-in", {"items": []}, 422, "items must name at least one identifier, got none"),
        ("/fold-in", {"items": "film 1"}, 422, "items must be a list of identifiers, got 'film 1'"),
        (
            "/fold-in",
            {"items": ["film 1", 1.5]},
            422,
            "items[1] must be an identifier, a whole number or a text, got 1.5",
        ),
        ("/fold-in", {"items": [["film 1"]]}, 422, "items[0] must be"),
        ("/fold-in", {"items": [True]}, 422, "items[0] must be"),
        ("/fold-in", {"items": ["film 1"] * 21}, 400, "items must have at most 20 identifiers, got 21"),
        ("/fold-in", {"items": ["film 1"], "k": 1.5}, 422, "k must be a whole number, got 1.5"),
        ("/fold-in", {"items": ["film 1"], "k": True}, 422, "k must be a whole number, got True"),
        ("/fold-in", {"items": ["film 1"], "k": "2"}, 422, "k must be a whole number, got '2'"),
        ("/recommend", {"users": [1], "k": True}, 422, "k must be a whole number, got True"),
        ("/fold-in", {"items": ["film 1"], "path": "/etc/passwd"}, 422, "there is no parameter 'path'"),
        ("/fold-in", {"items": ["film 1"], "only": ["nothing"]}, 400, "only: item 'nothing' is not in the data"),
        ("/fold-in", [1], 422, "the body must be a JSON object"),
        ("/recommend", {"users": [1, 2, 3, 4]}, 400, "users must have at most 3 identifiers, got 4"),
        ("/recommend", {"users": [1], "k": 10**9}, 400, "k must be at most 50, got 1,000,000,000"),
    ],
)
def test_a_wrong_body_gets_a_sentence(client, path, body, status, expected):
    assert expected in error_of(client.post(path, json=body), status)


def test_a_body_that_is_no_json_gets_a_sentence(client):
    headers = {"content-type": "application/json"}
    assert "the body must be JSON" in error_of(client.post("/fold-in", content=b'{"items', headers=headers), 422)
    for content in (b'{"items": ["\xff"]}', b'{"items": ' + b"[" * 990 + b"]" * 990 + b"}"):
        answer = client.post("/fold-in", content=content, headers=headers)
        assert answer.status_code in (400, 422)
        assert "the paths are" not in answer.json()["error"]
    not_utf8 = client.post("/fold-in", content=b'{"items": ["\xff"]}', headers=headers)
    assert error_of(not_utf8, 400).startswith('the body must be JSON in UTF-8, such as {"items": [1, 2]}')
    assert "send it with the header content-type: application/json" in error_of(
        client.post("/fold-in", content=b'{"items": [1]}', headers={"content-type": "text/plain"}), 422
    )
    assert "/recommend does not take PUT; use GET or POST" in error_of(client.put("/recommend"), 405)
    assert "the body is missing" in error_of(client.post("/fold-in"), 422)


@pytest.mark.parametrize("announced", [True, False])
def test_a_large_body_is_refused(client, announced):
    body = json.dumps({"items": ["x" * 900] * 3}).encode()
    content = body if announced else iter([body[:1_500], body[1_500:]])
    answer = client.post("/fold-in", content=content, headers={"content-type": "application/json"})
    assert "the body must have at most 2,000 bytes" in error_of(answer, 413)


def test_a_failure_of_the_server_shows_no_trace(saved, monkeypatch):
    def broken(self, user, **how):
        raise RuntimeError("secret detail")

    reloader = reloader_of(saved)
    monkeypatch.setattr(bn.ExportedModel, "recommend", broken)
    with TestClient(create_app(reloader, LIMITS), raise_server_exceptions=False) as opened:
        answer = opened.get("/recommend?user=1")
    assert error_of(answer, 500) == "the server failed to answer; its log says why"


def test_health_and_metrics_say_what_answers_and_what_was_asked(saved, run):
    with TestClient(create_app(reloader_of(saved), LIMITS)) as opened:
        health = opened.get("/health").json()
        assert (health["status"], health["dataset"], health["search"]) == ("ok", "films", "exact")
        assert health["fingerprint"] == run.split.fingerprint
        assert (health["n_users"], health["n_items"]) == (run.split.train.n_users, run.split.train.n_items)
        for path in ("/recommend?user=1", "/recommend?user=1", "/recommend?user=none", "/nowhere", "/elsewhere"):
            opened.get(path)
        answer = opened.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    assert lines['bayesneg_requests_total{path="/recommend",status="200"}'] == "2"
    assert lines['bayesneg_requests_total{path="/recommend",status="404"}'] == "1"
    assert lines['bayesneg_requests_total{path="other",status="404"}'] == "2"
    assert lines['bayesneg_request_seconds_bucket{path="/recommend",le="+Inf"}'] == "3"
    assert lines['bayesneg_request_seconds_count{path="/recommend"}'] == "3"
    assert lines["bayesneg_requests_in_flight"] == "1"  # this one
    assert any(line.startswith('bayesneg_model_info{label="RNS"') for line in lines)


def test_the_openapi_page_has_every_path_and_the_sentence_of_errors(client):
    page = client.get("/docs")
    assert page.status_code == 200
    for method, path in (
        ("GET", "/recommend"),
        ("POST", "/recommend"),
        ("GET", "/similar"),
        ("POST", "/fold-in"),
        ("GET", "/health"),
    ):
        assert f"<code>{method} {path}</code>" in page.text
    assert not re.findall(r"<script|(?:src|href)='?(?:https?:)?//", page.text)  # offline, too
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "identifier of the user, as in the data" in page.text
    schema = client.get("/openapi.json").json()
    assert set(schema["paths"]) == {"/recommend", "/similar", "/fold-in", "/health", "/metrics"}
    answers = schema["paths"]["/recommend"]["get"]["responses"]
    assert answers["422"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
    assert {parameter["name"] for parameter in schema["paths"]["/recommend"]["get"]["parameters"]} == {
        "user", "k", "include_held_out",
    }  # fmt: skip


def test_an_export_is_served_with_its_index_and_exactly_without(exported, run):
    users = [int(user) for user in np.flatnonzero(run.split.known.counts < 30)[:3]]
    for index, search in ((True, "index"), (False, "exact")):
        with TestClient(create_app(reloader_of(exported, index=index), LIMITS)) as opened:
            assert opened.get("/health").json()["search"] == search
            for user in users:
                found = opened.get(f"/recommend?user={run.split.train.user_ids[user]}&k=10").json()["items"]
                exact = run.recommend(run.split.train.user_ids[user].item(), k=10)
                assert len({line["item"] for line in found} & {item for item, _ in exact}) >= 9
            items = run.split.train.item_ids[:3].tolist()
            folded = opened.post("/fold-in", json={"items": items, "k": 5}).json()["items"]
            assert len({line["item"] for line in folded} & {i for i, _ in run.fold_in(items).recommend(k=5)}) >= 4


def test_an_export_without_interactions_does_not_fold_in(run, tmp_path):
    folder = run.export(tmp_path / "model", interactions=False)
    with TestClient(create_app(reloader_of(folder), LIMITS)) as opened:
        answer = opened.post("/fold-in", json={"items": run.split.train.item_ids[:1].tolist()})
        assert "export without interactions" in error_of(answer, 400)
        assert opened.get("/recommend?user=1").json()["n_training_interactions"] is None


@pytest.fixture(scope="module")
def other(data):
    """A second model of the same data."""
    return bn.fit(bn.baselines.EASE(), data, progress=False)


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.01)


def test_a_changed_folder_is_reloaded_and_a_damaged_one_is_not(run, other, tmp_path):
    folder, said = run.export(tmp_path / "model"), []
    reloader = reloader_of(folder, watch=0.02, said=said)
    reloader.start()
    try:
        before = reloader.current
        time.sleep(0.1)
        assert (reloader.current, said) == (before, [])  # unchanged: loaded once
        other.export(folder, overwrite=True)
        wait_for(lambda: reloader.current is not before)
        assert reloader.current.model.run.record.label == "EASE"
        (folder / "model.safetensors").write_bytes(b"half")
        (folder / "config.json").touch()
        wait_for(lambda: reloader.telemetry.reloads["failed"])
        time.sleep(0.1)
        assert reloader.telemetry.reloads == {"loaded": 1, "failed": 1}  # tried once
        assert "the old model goes on" in said[-1]
        shutil.rmtree(folder)
        time.sleep(0.1)
        assert reloader.telemetry.reloads["failed"] == 1
        run.export(folder)
        wait_for(lambda: reloader.telemetry.reloads["loaded"] == 2)
        assert reloader.current.model.run.record.label == "RNS"
    finally:
        reloader.stop()


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(run, other, tmp_path, monkeypatch):
    folder = run.export(tmp_path / "model")
    reloader, read, n_read = reloader_of(folder), reloading._read, []

    def slowly(path, **how):
        found = read(path, **how)
        if not n_read:
            other.export(folder, overwrite=True)
        n_read.append(found)
        return found

    monkeypatch.setattr(reloading, "_read", slowly)
    assert reloader.reload()
    assert [model.run.record.label for model in n_read] == ["RNS", "EASE"]
    assert reloader.current.model is n_read[1]


def test_a_folder_that_is_still_written_to_is_not_loaded(run, tmp_path):
    folder = run.export(tmp_path / "model")
    reloader = reloader_of(folder)
    before = reloading.signature_of(folder)
    assert not reloader.is_due(before, before)
    (folder / "config.json").touch()
    after = reloading.signature_of(folder)
    assert not reloader.is_due(after, before)
    assert reloader.is_due(after, after)
    shutil.rmtree(folder)
    gone = reloading.signature_of(folder)
    assert not reloader.is_due(gone, gone)


def test_a_request_keeps_the_model_that_it_began_with(run, other, saved, monkeypatch):
    reloader = reloader_of(saved)
    answer = bn.ExportedModel.recommend

    def slow(self, user, **how):
        reloader.current = type(reloader.current)(
            bn.ExportedModel(other, None, {}), reloader.current.signature, time.time()
        )
        return answer(self, user, **how)

    monkeypatch.setattr(bn.ExportedModel, "recommend", slow)
    user = run.split.train.user_ids[4].item()
    with TestClient(create_app(reloader, LIMITS)) as opened:
        assert pairs(opened.get(f"/recommend?user={user}").json()["items"]) == run.recommend(user)
        assert pairs(opened.get(f"/recommend?user={user}").json()["items"]) == other.recommend(user)


def test_no_request_is_lost_over_reloads_of_a_real_server(run, other, tmp_path):
    folder = run.export(tmp_path / "model")
    command = [sys.executable, "-c", "from bayesneg.cli import main; main()"]
    options = ["serve", str(folder), "--port", "0", "--watch", "0.05"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    try:
        process.stderr.readline()
        home = process.stderr.readline().partition("/recommend")[0]
        assert home.startswith("http://127.0.0.1:")
        port = home.rpartition(":")[2]
        with pytest.raises(bn.BayesnegError, match=f"port {port} on 127.0.0.1 is in use"):
            server.listening("127.0.0.1", int(port))
        user = run.split.train.user_ids[4].item()
        lists = [[item for item, _ in model.recommend(user, k=5)] for model in (run, other)]
        found, stop = [], []

        def ask():
            while not stop:
                with urlopen(f"{home}/recommend?user={user}&k=5", timeout=10) as answer:
                    found.append(lists.index([line["item"] for line in json.load(answer)["items"]]))

        threads = [Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        other.export(folder, overwrite=True)
        wait_for(lambda: found and found[-1] == 1)
        run.export(folder, overwrite=True)
        os.kill(process.pid, signal.SIGHUP)
        wait_for(lambda: found[-1] == 0)
        stop.append(True)
        for thread in threads:
            thread.join()
        with pytest.raises(HTTPError) as refused:
            urlopen(Request(f"{home}/fold-in", data=b"x" * 2_000_000, method="POST"), timeout=10)
        assert refused.value.code == 413
        refused.value.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
        assert process.stderr.read().splitlines()[-1] == "stopped"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere"], "nowhere holds no run and no export"),
        (["RUN", "--port", "70000"], "--port must be from 0 to 65535, got 70000"),
        (["RUN", "--port", "USED"], "is in use; name another with --port, or stop what listens there"),
        (["RUN", "--host", "no.such.host.invalid"], "host 'no.such.host.invalid' is not an address of this machine"),
        (["RUN", "--watch", "-1"], "watch must be a number of at least 0, got -1"),
        (["RUN", "--max-k", "0"], "--max-k must be a whole number of at least 1, got 0"),
    ],
)
def test_a_wrong_option_gets_a_sentence(bayesneg, saved, arguments, expected):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        named = {"RUN": saved, "USED": taken.getsockname()[1]}
        assert expected in bayesneg("serve", *(named.get(argument, argument) for argument in arguments)).error


def test_without_the_extra_the_way_to_it_is_named(bayesneg, saved, monkeypatch):
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    assert "pip install 'bayesneg[serve]'" in bayesneg("serve", saved).error


def test_an_item_without_a_training_interaction_is_not_guessed_at(client, data):
    popular = data.train.popularity
    cold, warm = data.train.item_ids[popular.argmin()], data.train.item_ids[popular.argmax()]
    assert popular.min() == 0
    answer = client.get("/similar", params={"item": cold})
    assert (answer.status_code, "has no training interaction" in answer.json()["error"]) == (400, True)
    answer = client.post("/fold-in", json={"items": [warm, cold]})
    assert (answer.status_code, answer.json()["n_items"], answer.json()["untrained"]) == (200, 1, [cold])
    answer = client.post("/fold-in", json={"items": [cold]})
    assert (answer.status_code, "nothing to fold in" in answer.json()["error"]) == (400, True)
