"""``bayesneg tune``: what it prints and writes, and that its command trains what it recommends."""

from __future__ import annotations

import html
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.tuning import given

pytest.importorskip("optuna", reason="optuna is not installed (the extra 'tune')")

START = "import sys; from bayesneg.cli import main; main(sys.argv[1:])"
SMALL = ("--trials", 6, "--epochs", 4, "--seeds", 2, "-q")


def test_the_command_trains_what_is_advised(bayesneg, ratings):
    data = ("--split-by", "user", "--min-rating", 2, "--set", "dim=8", "--set", "candidates=3", "--evaluate-every", 3)
    found = bayesneg("tune", ratings, *SMALL, "--samplers", "rns,dns,bns", *data, "--out", "tuned", "--json").json
    assert set(found) == {"report", "out", "command", "recommended", "advice", "plan", "best", "trials", "runs"}
    assert set(found["recommended"]) == {"label", "sampler", "loss", "model", "options", "why"}
    kept = json.loads((ratings.parent / "tuned" / "recommended.json").read_text())
    assert kept == {**found["recommended"], "command": found["command"]}
    assert found["advice"]["evidence"][0]["over_users"].keys() >= {"mean", "low", "high"}
    name, *arguments = shlex.split(found["command"])
    assert name == "bayesneg"
    trained, again = (bayesneg(*arguments, "--json").json for _ in range(2))
    assert again == trained, "pasted twice"
    (advised,) = [r for r in found["runs"] if r["label"] == found["advice"]["label"] and r["seed"] == 0]
    n_epochs, key = len(advised["epochs"]), f"validation_{found['advice']['key']}"
    one, other = ([line.get(key) for line in run["epochs"][:n_epochs]] for run in (trained, advised))
    assert best_of(trained, key) >= best_of(advised, key)
    if found["recommended"]["sampler"] is None:
        assert trained["final"] == advised["final"]
    else:
        assert one[2] == other[2], "the third epoch is evaluated in both"
        assert "--epochs 200" in found["command"]
        assert len(trained["epochs"]) > n_epochs, "it goes on where four epochs were not enough"
    assert trained["spec"]["sampler"] == advised["spec"]["sampler"]
    is_sampled = found["recommended"]["sampler"] is not None
    assert ("--evaluate-every 3" in found["command"]) is is_sampled, "it decides the best epoch"
    assert all(trial["label"] == "RNS" or "candidates=3" in trial["label"] for trial in found["trials"])


def best_of(run, key):
    return max(line[key] for line in run["epochs"] if key in line)


def test_other_data_and_other_settings_have_another_folder(bayesneg, ratings):
    small = ("--trials", 1, "--epochs", 2, "--seeds", 1, "-q", "--samplers", "rns", "--baselines", "none", "--json")
    commands = [bayesneg("tune", ratings, *small, *more).json["command"] for more in ((), (), ("--split-seed", 1))]
    ratings.write_text("".join(ratings.read_text().splitlines(keepends=True)[:-3]))
    commands.append(bayesneg("tune", ratings, *small).json["command"])
    folders = [shlex.split(command)[-2] for command in commands]
    assert folders[0] == folders[1]
    assert len(set(folders)) == 3
    assert all(folder.startswith("runs/recommended-") for folder in folders)


def test_the_time_that_the_rest_takes_is_said_and_how_to_shorten_it(bayesneg, ratings):
    few = ("--trials", 4, "--epochs", 2, "--seeds", 1, "--samplers", "rns,dns")
    said = bayesneg("tune", ratings, *few).err
    assert "to go at this pace: " in said
    assert " for 3 trials, " in said
    assert "for the final comparison; shorter with fewer --trials, --epochs or --seeds, or with --minutes" in said
    assert "to go" not in bayesneg("tune", ratings, *few, "-q").err
    assert "within the 30 minutes of this search" in bayesneg("tune", ratings, *few, "--minutes", 30).err
    assert "minutes must be a number above 0, got 0" in bayesneg("tune", ratings, *few, "--minutes", 0).error


def test_the_command_trains_a_baseline_as_it_was_tuned_or_given(bayesneg, ratings, monkeypatch):
    monkeypatch.setattr(given, "_validated", lambda one, *_: -one.l2)  # the smallest l2 is best on validation
    small = ("--trials", 1, "--epochs", 1, "--seeds", 2, "-q", "--samplers", "rns", "--json")
    for named, label, l2 in (("ease", "EASE (l2=100)", 100.0), ("ease:l2=400", "EASE (l2=400)", 400.0)):
        found = bayesneg("tune", ratings, *small, "--baselines", named).json
        assert {run["label"] for run in found["runs"]} == {"RNS", label}
        assert found["advice"]["label"] == label  # one epoch from random vectors learns next to nothing
        trained = bayesneg(*shlex.split(found["command"])[1:], "--json").json
        assert trained["spec"]["model"]["l2"] == l2
        assert trained["final"] == found["runs"][-1]["final"]
        shutil.rmtree(ratings.parent / "runs")


def test_the_same_baselines_stand_beside_as_in_python(bayesneg, ratings):
    small = {"trials": 1, "epochs": 1, "seeds": 1}
    given = [part for key, value in small.items() for part in (f"--{key}", value)]
    shown = bayesneg("tune", ratings, "--samplers", "rns", *given, "-q", "--json").json
    split = bn.split(bn.load(ratings), test=0.2, validation=0.1, seed=0)
    assert [run["label"] for run in shown["runs"]] == [
        record.label for record in bn.tune(bn.MF(), split, "rns", **small, progress=False).records
    ]


def in_order(text, *parts):
    places = [text.index(part) for part in parts]
    return places == sorted(places)


def test_sentence_command_and_table_go_to_stdout_in_this_order_and_to_the_page(bayesneg, ratings):
    pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")
    done = bayesneg("tune", ratings, *SMALL)
    assert done.code == 0, done.err
    assert done.out.startswith("Use ")
    table, trials = "ndcg@20 − MF + RNS + BPR", "search on validation data: 6 trials"
    assert in_order(done.out, "Use ", "\n\n  bayesneg train ", table, trials)
    sentence = done.out.partition(" Still improving")[0].splitlines()[0]
    command = done.out.splitlines()[2].strip()
    page = html.unescape((ratings.parent / "report.html").read_text())
    headings = (f"<h2>{name}</h2>" for name in ("Comparison", "Evidence", "The search on validation data"))
    assert in_order(page, sentence, f"{command}</pre>", *headings)
    assert "TorchMF + InBatch (posterior) + Softmax" in done.out
    assert " · TorchMF (" not in page, "labels that name the model have no second name"
    assert {path.name for path in ratings.parent.iterdir()} == {"ratings.csv", "report.html"}


def test_a_failed_trial_is_named(bayesneg, ratings, own_samplers):
    assert "OutOfRange, failed: " in bayesneg("tune", ratings, *SMALL, "--samplers", "own.py:OutOfRange").err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--validation", 0), "--validation must be above 0, got 0"),
        (("--trials", 1, "--model", "mf"), "trials must be at least 3"),
        (("--set", "dimm=8"), "'dimm' is not a setting of what is searched by default; did you mean dim"),
        (("--resume",), "--resume needs --out"),
        (("--samplers", "oracle"), "cannot be tuned"),
        (("--baselines", "mf"), "'mf' is not a baseline"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_any_training(bayesneg, ratings, options, expected):
    assert expected in bayesneg("tune", ratings, *options).error
    assert [path.name for path in ratings.parent.iterdir()] == ["ratings.csv"]


def facts(folder):
    found = json.loads((folder / "tuning.json").read_text())
    return found["advice"], [{**trial, "seconds": 0} for trial in found["trials"]]


def test_a_search_stopped_and_stopped_again_goes_on_to_the_same_end(bayesneg, place):
    rng = np.random.default_rng(0)
    pairs = {(int(u), int(200 * i**2)) for u, i in zip(rng.integers(0, 100, 3_000), rng.random(3_000), strict=True)}
    (place / "world.csv").write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in sorted(pairs)))
    options = ["tune", "world.csv", "--samplers", "rns,dns,bns", "--trials", 8, "--epochs", 12, "--seeds", 2, "--out"]
    assert bayesneg(*options, "whole", "-q").code == 0
    code, _ = stopped(place, [*options, "stopped"], signal.SIGKILL, after=20)
    assert code == -signal.SIGKILL
    code, said = stopped(place, [*options, "stopped", "--resume"], signal.SIGINT, after=40)
    assert code == 130, said
    assert "resume with the same command and --resume" in said
    assert bayesneg(*options, "stopped", "--resume", "-q").code == 0
    assert facts(place / "stopped") == facts(place / "whole")


def stopped(place, options, how, *, after):
    """The exit code of a search that gets a signal once its journal has so many scores, and what it said."""
    command = [sys.executable, "-c", START, *map(str, options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal, until = place / "stopped" / "search.jsonl", time.monotonic() + 60
    while not journal.exists() or journal.read_text().count("intermediate_value") < after:
        assert time.monotonic() < until
        time.sleep(0.005)
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    assert not (place / "stopped" / "tuning.json").exists()
    return process.returncode, said
