"""``bayesneg reproduce`` from end to end: files, kills, what is missing, and the paper's own data."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import sweeps

from bayesneg.cli import main
from bayesneg.data.readers.yahoo import TEST_FILE, TRAIN_FILE

START = "import sys; from bayesneg.cli import main; main(sys.argv[1:])"


def reproduce(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", *map(str, arguments), "-q"])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe and everything made from it."""
    folder = tmp_path_factory.mktemp("finished")
    recipe = sweeps.recipe(folder, epochs=10)
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", str(recipe), "--out", str(folder / "out"), "-q"])
    assert ended.value.code == 0
    return folder


def test_a_custom_recipe_gives_every_format(finished):
    made = {path.name for path in (finished / "out").iterdir()}
    assert made == {"three.md", "three.csv", "three-tests.csv", "three.tex", "three.html", "records.jsonl"}
    text = (finished / "out" / "three.md").read_text()
    assert text.count("## ") == 2  # both views
    assert "best epoch on validation data" in text
    page = (finished / "out" / "three.html").read_text()
    assert 'href="#s2"' in page
    assert 'id="s2"' in page
    assert "Pairwise tests" in page


def test_a_browser_opens_the_report_without_a_word_of_complaint(finished, browser):
    with browser.page(finished / "out" / "three.html") as page:
        assert page.flaws() == []


def test_a_place_that_cannot_be_written_is_named_with_a_way_out(capsys, finished, tmp_path):
    (tmp_path / "file").touch()
    code, _, said = reproduce(capsys, finished / "three.toml", "--out", tmp_path / "file")
    assert code == 2
    assert "name another folder" in said
    code, _, said = reproduce(capsys, tmp_path / "nothing.toml", "--out", tmp_path)
    assert code == 2
    assert "check the path" in said


def reproducing(finished, out, *, jobs):
    return [sys.executable, "-c", START, "reproduce", finished / "three.toml", "--out", out, "--jobs", str(jobs), "-q"]


def test_killed_at_random_moments_and_started_again_it_gives_the_same_table(finished, tmp_path):
    moment = random.Random(1)  # after its first record, and while it starts again
    command = reproducing(finished, tmp_path, jobs=2)
    for _ in range(2):
        sweeps.killed(subprocess.Popen(command, stderr=subprocess.DEVNULL), tmp_path / "records.jsonl", moment)
    subprocess.run(command, stderr=subprocess.DEVNULL, check=True)
    for name in ("three.md", "three.csv", "three-tests.csv", "three.tex"):
        assert (tmp_path / name).read_bytes() == (finished / "out" / name).read_bytes()


def interrupted(command: list[str], records: Path, number: int) -> tuple[int, str]:
    """The exit code of a sweep stopped by a signal once it keeps records, and what it said; its workers are gone."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not (records.exists() and records.stat().st_size):
        assert time.monotonic() < until
        time.sleep(0.01)
    workers = sweeps.children(process.pid)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert not any(map(sweeps.is_running, workers))
    return process.returncode, said


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_says_what_is_kept_and_how_to_go_on(finished, tmp_path, number, expected):
    command = reproducing(finished, tmp_path, jobs=2)
    code, said = interrupted([*command, "--epochs", "60"], tmp_path / "records.jsonl", number)
    assert code == expected
    assert f"{tmp_path} keeps the finished runs; resume with the same command" in said
    assert "Traceback" not in said
    assert not (tmp_path / "three.md").exists()


def test_one_seed_has_no_interval_in_any_format(capsys, tmp_path):
    """The runs have intervals over users; a mean over seeds has none of these."""
    recipe = sweeps.recipe(tmp_path)
    code, _, _ = reproduce(
        capsys, recipe, "--out", tmp_path / "out", "--view", "last", "--seeds", 1, "--samplers", "RNS"
    )
    assert code == 0
    head, *rows = (line.split(",") for line in (tmp_path / "out" / "three.csv").read_text().splitlines())
    assert rows
    assert {row[head.index(end)] for row in rows for end in ("low", "high")} == {""}
    assert all(row[head.index("mean")] for row in rows)
    table = (tmp_path / "out" / "three.md").read_text().partition("**RNS**")[2]
    assert "±" not in table


def test_a_cell_that_fails_is_named_and_the_rest_is_written(capsys, tmp_path):
    recipe = sweeps.recipe(tmp_path)
    recipe.write_text(recipe.read_text() + '\n[[samplers]]\nlabel = "BAD"\nuse = "bns-4:column=height"\n')
    code, _, said = reproduce(capsys, recipe, "--out", tmp_path / "out", "--view", "last", "--seeds", 1)
    assert code == 1
    assert "failed: " in said
    assert "BAD, last, seed 0: prior=group needs a user column" in said
    assert "1 run missing" in said
    assert "**BNS**" in (tmp_path / "out" / "three.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["table9"], "'table9' is not a table or figure; did you mean table"),
        (["table3", "--seeds", 0], "--seeds must be at least 1, got 0"),
        (["table3", "--view", "first"], "--view must be last, best or last,best, got 'first'"),
        (["table3", "--samplers", "xns"], "'xns' is not a row of this experiment"),
        (["table3", "--model", "nn"], "'nn' is not a model"),
        (["table3", "--dataset", "ml-100k"], "ml-100k is not in"),
        (["table3", "--model", "ease"], "'ease' is not a model with a sampler; valid: lightgcn, mf, torch-mf"),
        (["fig2", "--dataset", "nonsense"], "fig2 is drawn from theory alone: it has no dataset"),
        (["fig3", "--epochs", 2], "fig3 is drawn from theory alone: it has no dataset"),
        (["missing.toml"], "missing.toml"),
    ],
)
def test_a_mistake_is_one_sentence_before_any_work(capsys, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAYESNEG_DATA", str(tmp_path / "nothing"))
    code, out, err = reproduce(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_resume_ctrl_c_says_how_what_is_kept_is_not_run_again(finished, tmp_path):
    command = [*reproducing(finished, tmp_path, jobs=1), "--epochs", "60", "--no-resume"]
    _, said = interrupted(command, tmp_path / "records.jsonl", signal.SIGINT)
    assert "resume with the same command without --no-resume" in said


def test_a_custom_recipe_is_never_taken_for_the_paper_s(capsys, tmp_path):
    text = sweeps.recipe(tmp_path).read_text()
    options = ("--out", tmp_path, "--view", "last", "--seeds", 1, "--epochs", 1, "--samplers", "bns", "--json")
    for name in ("table2.toml", "FIG4.TOML"):
        (tmp_path / name).write_text(text.replace(str(tmp_path / "world.csv"), "ml-100k"))
        code, out, said = reproduce(capsys, tmp_path / name, "--dataset", tmp_path / "world.csv", *options)
        assert code == 0, said
        assert {Path(path).name for path in json.loads(out)["files"]} == {
            f"custom-{Path(name).stem}{ending}" for ending in (".md", ".csv", "-tests.csv", ".tex", ".html")
        }


def test_a_published_row_that_does_not_exist_is_named(capsys, tmp_path):
    recipe = sweeps.recipe(tmp_path)
    recipe.write_text(recipe.read_text() + 'paper = "table2/BN"\n')
    code, _, said = reproduce(capsys, recipe, "--out", tmp_path)
    assert code == 2
    assert "three.toml: BNS: paper: 'table2/BN' is not a row of the paper; did you mean table2/BNS?" in said


def test_data_files_of_one_name_have_figures_of_their_own(capsys, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        sweeps.world(tmp_path / folder, n_users=60 if folder == "a" else 50)
    datasets = f"{tmp_path}/a/world.csv,{tmp_path}/b/world.csv"
    code, _, said = reproduce(capsys, "fig1", "--dataset", datasets, "--out", tmp_path, "--epochs", 1)
    assert code == 0, said
    assert {path.name for path in tmp_path.glob("*.svg")} == {
        "fig1-world-mf-last.svg",
        "fig1-world-mf-last-2.svg",
    }


def check_legible_in_a_column(svg: str) -> None:
    """Not wider than 3.5 inches of 72 points, and no text below 7 points at that width."""
    assert float(ElementTree.fromstring(svg).attrib["width"].removesuffix("pt")) <= 3.5 * 72
    sizes = [float(size) for size in re.findall(r"font(?:-size)?: ?([0-9.]+)px", svg)]
    assert sizes
    assert min(sizes) >= 7


@pytest.mark.parametrize("name", ["fig2", "fig3"])
def test_the_theory_s_figures_need_no_data(capsys, tmp_path, name):
    code, _, _ = reproduce(capsys, name, "--out", tmp_path)
    assert code == 0
    first = {path.suffix: path.read_bytes() for path in tmp_path.glob(f"{name}.*")}
    assert set(first) == {".svg", ".pdf", ".png"}
    check_legible_in_a_column(first[".svg"].decode())
    assert first[".pdf"].startswith(b"%PDF")
    assert first[".png"].startswith(b"\x89PNG")
    reproduce(capsys, name, "--out", tmp_path)
    assert {path.suffix: path.read_bytes() for path in tmp_path.glob(f"{name}.*")} == first


@pytest.mark.parametrize("name", ["fig1", "fig4", "fig5"])
def test_figures_from_runs_on_any_data(capsys, tmp_path, name):
    world = sweeps.world(tmp_path)
    code, _, said = reproduce(capsys, name, "--dataset", world, "--out", tmp_path, "--seeds", 1, "--epochs", 2)
    assert code == 0, said
    text = (tmp_path / f"{name}.svg").read_text()
    check_legible_in_a_column(text)
    for wanted in {"fig1": ["epoch 1", "false negatives"], "fig4": ["Posterior", "TNR"], "fig5": ["0.1", "NDCG@20"]}[
        name
    ]:
        assert wanted in text


@pytest.fixture
def yahoo(tmp_path: Path) -> Path:
    """Generated files in the format of Yahoo!-R3: tabs, no header, songs the users chose and random ones."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data" / "yahoo-r3"
    folder.mkdir(parents=True)
    taste = rng.random((3, 120)) < 0.3

    def lines(users: range, draw) -> str:
        return "".join(f"{user}\t{item + 1}\t{rng.integers(1, 6)}\n" for user in users for item in draw(user))

    chosen = {user: np.flatnonzero(taste[user % 3] & (rng.random(120) < 0.7)) for user in range(1, 91)}
    (folder / TRAIN_FILE).write_text(lines(range(1, 91), lambda user: chosen[user]))
    rest = {user: np.setdiff1d(np.arange(120), chosen[user]) for user in range(1, 61)}
    (folder / TEST_FILE).write_text(lines(range(1, 61), lambda user: rng.choice(rest[user], 10, replace=False)))
    return tmp_path / "data"


def test_the_yahoo_path_from_its_files_to_the_table(capsys, tmp_path, yahoo):
    options = ("--data-dir", yahoo, "--out", tmp_path / "out", "--seeds", 2, "--epochs", 2, "--json")
    code, out, said = reproduce(capsys, "table2", "--dataset", "yahoo-r3", "--model", "mf", *options)
    assert code == 0, said
    made = json.loads(out)
    assert {(study["dataset"], study["model"], study["view"]) for study in made["studies"]} == {
        ("yahoo-r3", "mf", "last"),
        ("yahoo-r3", "mf", "best"),
    }
    samplers = made["studies"][0]["samplers"]
    assert list(samplers) == ["RNS", "PNS", "AOBPR", "DNS", "SRNS", "BNS"]
    assert samplers["BNS"]["ndcg@20"]["paper"] == 0.1783
    assert "Yahoo!-R3, MF, last epoch" in (tmp_path / "out" / "table2.md").read_text()


def test_what_the_user_has_not_is_left_out_and_said_so(capsys, tmp_path, yahoo):
    options = ("--data-dir", yahoo, "--out", tmp_path / "out", "--seeds", 1, "--epochs", 1)
    code, out, said = reproduce(capsys, "table2", "--model", "mf", "--samplers", "rns,bns", "--view", "last", *options)
    assert code == 0, said
    assert "left out: ml-100k is not in" in said
    assert "left out: ml-1m is not in" in said
    assert "Yahoo!-R3" in out


@pytest.mark.real
def test_table3_of_the_paper_in_short(capsys, tmp_path, real_data):
    code, _, said = reproduce(capsys, "table3", "--seeds", 1, "--epochs", 3, "--jobs", 2, "--out", tmp_path)
    assert code == 0, said
    text = (tmp_path / "table3.md").read_text()
    assert text.count("**BNS-4**") == 2
    assert "| paper | 0.4205 | 0.1467 | 0.4558 |" in text
    assert (tmp_path / "table3.html").stat().st_size > 100_000
