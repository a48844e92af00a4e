"""What the help shows, what it costs to show it, and which stream takes what."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bayesneg.config.build import reach
from bayesneg.config.registry import MODELS, built_in_samplers, likelihoods, priors
from bayesneg.losses import losses

COMMANDS = [
    ["train"],
    ["compare"],
    ["tune"],
    ["audit"],
    ["priors"],
    ["reproduce"],
    ["evaluate"],
    ["recommend"],
    ["report"],
    ["data", "list"],
    ["data", "get"],
    ["data", "describe"],
    ["data", "prepare"],
]
BRIEF = ("--epochs", 1, "--seeds", 1, "-q")
HEAVY = ("numba", "polars", "matplotlib", "torch", "scipy", "optuna")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_shows_an_example_of_it(bayesneg, command):
    done = bayesneg(*command, "--help")
    assert done.code == 0
    assert "Example" in done.out
    assert f"  bayesneg {' '.join(command)}" in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())


def test_the_help_shows_defaults(bayesneg):
    text = bayesneg("train", "--help-all").out
    assert "[default: (200 with the recommended settings, else 100)]" in " ".join(text.replace("│", " ").split())
    assert "[default: (bns)]" in text
    assert "[default: (inferred)]" in text


def test_the_help_of_tune_is_about_tuning(bayesneg):
    """Options that it shares with compare mean something else there, and brackets are no markup."""
    shown = {name: " ".join(bayesneg(name, "--help").out.replace("│", " ").split()) for name in ("tune", "compare")}
    assert "pip install 'bayesneg[tune]'" in shown["tune"]
    assert "[default: popularity,item-knn,ease]" in shown["tune"]
    assert "[default: popularity,ease]" in shown["compare"]
    assert "softmax over a shared pool of uniform negatives" in shown["tune"]
    assert "--select" in shown["compare"]
    assert "--select" not in shown["tune"], "it always selects on validation data"
    assert "one run folder per sampler and seed" in shown["compare"]
    assert "folder for trials, final runs and recommendation" in shown["tune"]


def test_the_help_of_train_lists_every_sampler_loss_model_and_setting(bayesneg):
    text = bayesneg("train", "--help-all").out
    shown = set(text[text.index("Samplers, with") :].split())
    names = {*built_in_samplers(), *priors(), *likelihoods(), *losses(), *MODELS}
    kinds = [*(each.kind for each in built_in_samplers().values()), *priors().values(), *losses().values()]
    kinds += MODELS.values()
    assert names | {key for kind in kinds for key in reach(kind, {}).settings} <= shown


@pytest.mark.parametrize("command", ["train", "compare", "tune", "audit"])
def test_the_help_is_short_and_help_all_has_every_option(bayesneg, command):
    import typer

    from bayesneg.cli import app

    brief, full = bayesneg(command, "--help").out, bayesneg(command, "--help-all").out
    assert len(brief.splitlines()) < 110
    assert f"bayesneg {command} --help-all" in " ".join(brief.split())
    assert {name for name in built_in_samplers() if f"{name}," not in brief} <= {"srns"}  # the last of the list
    options = {name for param in typer.main.get_command(app).commands[command].params for name in param.opts}
    assert {name for name in options if name.startswith("--") and name not in full} == set()
    assert "--separator" in full
    assert "--separator" not in brief
    assert bayesneg(command, "--help").out == brief, "one after the other"


def test_a_name_for_other_settings_is_explained_by_the_main_name(bayesneg):
    text = " ".join(bayesneg("train", "--help-all").out.split())
    assert "BNS with the flat prior (as bns, prior=flat)" in text


@pytest.mark.parametrize("command", ["train", "compare", "tune", "audit"])
def test_every_command_that_trains_takes_a_loss(bayesneg, command):
    text = " ".join(bayesneg(command, "--help").out.replace("│", " ").split())
    assert "--loss" in text
    assert "[default: (bpr)]" in text


def test_without_a_command_the_help_is_shown(bayesneg):
    done = bayesneg()
    assert "bayesneg compare synthetic" in done.out
    assert done.err == ""


def test_the_version_is_shown(bayesneg):
    assert bayesneg("--version").out.startswith("bayesneg 0.")


def modules_after(code: str) -> tuple[set[str], float]:
    """The modules a fresh interpreter has loaded after ``code``, and the seconds it took."""
    script = (
        "import sys, time; started = time.perf_counter()\n"
        f"{code}\n"
        "print(time.perf_counter() - started, *{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr
    seconds, *names = said.splitlines()[-1].split()
    return set(names), float(seconds)


def test_importing_bayesneg_is_quick_and_imports_nothing_heavy():
    loaded, seconds = min((modules_after("import bayesneg") for _ in range(3)), key=lambda pair: pair[1])
    assert not loaded.intersection((*HEAVY, "numpy", "pydantic"))
    assert seconds < 0.5


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["data", "list"]], ids=" ".join)
def test_help_and_lists_import_nothing_heavy(arguments):
    code = f"from bayesneg.cli import main\ntry: main({arguments!r})\nexcept SystemExit: pass"
    assert not modules_after(code)[0].intersection(HEAVY)


@pytest.mark.parametrize(
    ("arguments", "result", "note"),
    [
        (["train", "DATA", "--epochs", 1, "--out", "run", "-q"], "mean ±95%", "recorded in run"),
        (["compare", "DATA", "--samplers", "rns,dns", *BRIEF], "ndcg@20 − RNS", "report: "),
        (["audit", "DATA", "--samplers", "rns,bns", "--probes", 50, *BRIEF], "what is picked", "report: "),
        (["priors", "DATA", "--priors", "rate"], "Brier", None),
        (["evaluate", "RUN", "--per-user", "users.csv"], "mean ±95%", "one row per user in users.csv"),
        (["recommend", "RUN", "--user", "u7"], "for user u7", None),
        (["report", "RUN"], "report of 1 run", None),
        (["data", "list"], "ml-100k", None),
        (["data", "describe", "DATA"], "interactions per user", None),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_results_are_on_stdout_and_notes_on_stderr(bayesneg, ratings, finished, arguments, result, note):
    stand_in = {"DATA": ratings, "RUN": finished}
    done = bayesneg(*(stand_in.get(argument, argument) for argument in arguments))
    assert done.code == 0, done.err
    assert result in done.out
    if note is None:
        assert done.err == ""
    else:
        assert note in done.err
        assert note not in done.out
        assert result not in done.err


def test_a_pipe_that_takes_ascii_only_gets_every_row(finished):
    command = [sys.executable, "-m", "bayesneg", "evaluate", str(finished)]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"ndcg" in done.stdout
