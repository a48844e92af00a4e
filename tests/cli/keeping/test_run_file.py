"""A run as one TOML file: it makes the run again to the byte, options replace its keys, and it runs no code."""

from __future__ import annotations

import inspect
import tomllib

import pytest

import bayesneg as bn
from bayesneg.cli import train
from bayesneg.config.run_files import ELSEWHERE, PARTS
from bayesneg.config.settings import settings_of
from bayesneg.config.toml_files import key_lines
from bayesneg.runs.toml_text import toml_text

RESULT = ("weights.safetensors", "metrics.json", "per_user.parquet", "run.toml")
MINE = """
import numpy as np
import bayesneg as bn

open("ran", "w").close()

def flat(users, items):
    return np.full(np.broadcast(users, items).shape, 0.01)
"""


def same(one, other, names=RESULT):
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.parametrize(
    "options",
    [
        ("--sampler", "bns:prior=learned:candidates=3", "--set", "dim=8", "--min-rating", 2, "--split-by", "last"),
        ("--sampler", "rns:negatives=4", "--loss", "softmax:temperature=0.2", "--split-seed", 3, "--seed", 5),
        ("--sampler", "bns-1", "--select", "last", "--evaluate-every", 2, "--test-share", 0.3),
        ("--model", "item-knn", "--set", "neighbours=7"),
    ],
    ids=["learned", "softmax", "schedule", "baseline"],
)
def test_the_file_of_a_run_folder_makes_the_run_again(bayesneg, ratings, options):
    epochs = () if "--model" in options else ("--epochs", 3)
    assert bayesneg("train", "ratings.csv", *options, *epochs, "--out", "one", "-q").code == 0
    again = bayesneg("train", "one/run.toml", "--out", "two", "-q")
    assert again.code == 0, again.err
    same(ratings.parent / "one", ratings.parent / "two")


def test_a_published_split_is_made_again(bayesneg, place):
    (place / "train.csv").write_text("user,item\n" + "".join(f"u{n % 7},i{n % 11}\n" for n in range(60)))
    (place / "test.csv").write_text("user,item\nu1,i9\nu8,i3\n")
    (place / "users.csv").write_text("user,job\n" + "".join(f"u{n},{n % 2}\n" for n in range(9)))
    given = ("--test", "test.csv", "--user-file", "users.csv", "--user-columns", "job", "--sampler", "bns-4")
    done = bayesneg("train", "train.csv", *given, "--select", "last", "--epochs", 2, "--out", "one", "-q")
    assert done.code == 0, done.err
    assert bayesneg("train", "one/run.toml", "--out", "two", "-q").code == 0
    same(place / "one", place / "two")


def test_a_run_from_python_on_data_in_memory_is_made_again_from_its_folder(bayesneg, place):
    split = bn.split(bn.synthetic(60, 80, seed=4), test=0.2, validation=0.1, seed=0)
    bn.fit(bn.MF(dim=4), split, bn.DNS(3), epochs=2, progress=False, out="one", label="mine")
    (place / "one").rename(place / "moved")
    assert tomllib.loads((place / "moved" / "run.toml").read_text())["data"] == "."
    assert bayesneg("train", "moved/run.toml", "--out", "two", "-q").code == 0
    same(place / "moved", place / "two", RESULT[:3])
    assert bn.load_run("two").record.label == "mine"


def test_a_part_of_a_file_is_not_taken_for_the_file(bayesneg, ratings):
    data = bn.load("ratings.csv")
    split = bn.split(data.select(data.indices < 30), test=0.2, seed=1)
    bn.fit(bn.MF(dim=4), split, bn.RNS(), epochs=1, progress=False, out="one")
    assert tomllib.loads((ratings.parent / "one" / "run.toml").read_text())["data"] == "."
    assert bayesneg("train", "one/run.toml", "--json").json["data"]["fingerprint"] == split.fingerprint


def test_the_file_has_every_setting_since_defaults_may_change(finished):
    written = tomllib.loads((finished / "run.toml").read_text())
    of_model = {key for key, each in settings_of(bn.MF).items() if each.is_text and each.default is not None}
    assert set(written["model"]) == {"name", "init_scale", *of_model}
    assert {"candidates", "prior", "likelihood", "weight", "cdf", "moved", "negatives"} <= set(written["sampler"])
    assert {"test_share", "validation", "split_by", "split_seed", "select", "epochs", "seed"} <= set(written)


def test_a_run_that_is_saved_has_the_file_too(bayesneg, ratings):
    split = bn.split(bn.load("ratings.csv", min_rating=2), test=0.2, seed=1)
    run = bn.fit(bn.MF(dim=4), split, bn.RNS(), epochs=2, progress=False)
    run.save("one")
    bn.load_run("one").save("two")
    assert bayesneg("train", "two/run.toml", "--out", "three", "-q").code == 0
    same(ratings.parent / "one", ratings.parent / "three", RESULT[:3])


def test_resuming_with_more_epochs_updates_the_file(bayesneg, ratings):
    for epochs in (2, 4):
        assert bayesneg("train", ratings, "--epochs", epochs, "--out", "one", "--resume", "-q").code == 0
    assert bayesneg("train", "one/run.toml", "--out", "two", "-q").code == 0
    same(ratings.parent / "one", ratings.parent / "two")


def test_options_replace_what_the_file_says(bayesneg, ratings):
    (ratings.parent / "run.toml").write_text(
        'data = "ratings.csv"\nepochs = 5\nseed = 3\nlabel = "all of it"\nfingerprint = "x"\nsplit_seed = 1\n'
        '[model]\nname = "mf"\ndim = 8\nlearning_rate = 0.05\n'
        '[sampler]\nname = "bns"\nprior = "learned"\nl2 = 3.0\ncandidates = 4\n'
    )
    given = ("--epochs", 1, "--split-seed", 2, "--set", "dim=4", "--set", "prior=popularity", "--json")
    found = bayesneg("train", "run.toml", *given).json
    assert (len(found["epochs"]), found["seed"]) == (1, 3)
    assert found["label"] == "BNS (candidates=4)"
    model, sampler = found["spec"]["model"], found["spec"]["sampler"]
    assert (model["dim"], model["learning_rate"]) == (4, 0.05)
    assert (sampler["candidates"], sampler["prior"]["class"]) == (4, "Popularity")
    other = bayesneg("train", "run.toml", "--sampler", "rns", "--loss", "logistic", *given[:4], "--json").json
    assert (other["label"], other["loss"], other["model"]) == ("RNS", "Logistic", "MF (dim=8, learning_rate=0.05)")
    baseline = bayesneg("train", "run.toml", "--model", "ease", "--split-seed", 2, "--json").json
    assert (baseline["label"], baseline["sampler"]) == ("EASE", "")


def test_a_part_is_written_as_text_or_as_a_table(bayesneg, ratings):
    head = 'data = "ratings.csv"\nepochs = 2\n'
    tables = (
        '[model]\nname = "mf"\ndim = 8\n[sampler]\nname = "dns"\ncandidates = 3\n[loss]\nname = "ccl"\nmargin = 0.5\n'
    )
    (ratings.parent / "tables.toml").write_text(head + tables)
    texts = 'model = "mf:dim=8"\nsampler = "dns:candidates=3"\nloss = "ccl:margin=0.5"\n'
    (ratings.parent / "texts.toml").write_text(head + texts)
    for name in ("tables", "texts"):
        assert bayesneg("train", f"{name}.toml", "--out", name, "-q").code == 0
    same(ratings.parent / "tables", ratings.parent / "texts")


def test_paths_are_relative_to_the_file(bayesneg, ratings):
    folder = ratings.parent / "experiments"
    folder.mkdir()
    (folder / "run.toml").write_text('data = "../ratings.csv"\nepochs = 1\n')
    assert bayesneg("train", "experiments/run.toml", "--json").json["data"]["n_users"] == 30


WRONG = {
    "epoch = 3": "run.toml line 2: 'epoch' is not a key of a run file; did you mean epochs?",
    "epochs = '3'": "run.toml line 2: epochs must be a whole number, got the text '3'",
    "epochs = true": "run.toml line 2: epochs must be a whole number, got true",
    "epochs = 2.0": "run.toml line 2: epochs must be a whole number, got 2.0",
    "validation = '0.1'": "run.toml line 2: validation must be a number, got the text",
    "header = 1": "run.toml line 2: header must be true or false, got 1",
    "split_by = 3": "run.toml line 2: split_by must be text, got 3",
    "epochs = -1": "run.toml line 2: epochs must be a whole number of at least 1, got -1",
    "test_share = 2": "run.toml line 2: test_share must be a share strictly between 0 and 1, got 2.0",
    "split_by = 'users'": "run.toml line 2: split_by must be one of interaction, user, last, time, got 'users'; did",
    "evaluate_every = 0": "run.toml line 2: evaluate_every must be a whole number of at least 1, got 0",
    "[model]\nname = 'mf'\ndim = -3": "run.toml line 4: dim must be a whole number of at least 1, got -3",
    "[model]\nname = 'mf'\ninit = 'alz'": "run.toml line 4: model mf: init must be one of normal, als, got 'alz'; did",
    "[sampler]\nname = 'bns'\ncandidates = 0": "run.toml line 4: candidates must be a whole number of at least 1",
    "epochs =": "run.toml: line 2, column 9: invalid value",
    "[model]\nname = 'mf'\ndim = 'many'": "run.toml line 4: model mf: dim=many",
    "[model]\nname = 'mf'\ndims = 3": "run.toml line 4: 'dims' is not a setting of model mf; did you mean dim?",
    "[model]\ndim = 3": "run.toml line 2: [model] needs a name",
    "model = 3": "run.toml line 2: model must be text or a table, got 3",
    "[sampler]\nname = 'bsn'": "run.toml line 3: 'bsn' is not a sampler; did you mean bns?",
    "[sampler]\nname = 'bns'\ncandidates = 'x'": "run.toml line 4: sampler bns: candidates=x",
    "[sampler]\nname = 'bns'\nl2 = 3": "run.toml line 4: sampler bns: l2 is a setting of the prior learned",
    "[sampler]\nname = 'bns'\n[sampler.prior]\nname = 'learned'": "run.toml line 4: sampler.prior must be one value",
    "loss = 'softmax:temperature=hot'": "run.toml line 2: loss softmax: temperature=hot",
    "out = 'x'": "run.toml line 2: out is no key of a run file; name the folder of a run on the command line, --out",
    "prior = 'learned'": "run.toml line 2: prior is no key of a run file; the prior is a setting of the sampler",
    "sampler = 'python:mine.Mine'": "run.toml line 2: the sampler of this run was a Python object, mine.Mine",
    "fingerprint = 'abc'": "not abc: it is not the data of the run",
    "sampler = 'mine.py:Mine'": "run.toml line 2: sampler names mine.py:Mine, whose code would be run",
    "sampler = 'bns:prior=mine.py:flat'": "run.toml line 2: sampler names mine.py:flat",
    "[sampler]\nname = 'bns'\nprior = 'rate+mine.py:flat'": "run.toml line 4: sampler names mine.py:flat",
    "loss = 'mine.py:f'": "run.toml line 2: loss names mine.py:f",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_is_named_with_its_line_and_key_and_runs_nothing(bayesneg, ratings, text):
    (ratings.parent / "mine.py").write_text(MINE)
    (ratings.parent / "run.toml").write_text(f'data = "ratings.csv"\n{text}\n')
    assert WRONG[text] in bayesneg("train", "run.toml").error
    assert sorted(path.name for path in ratings.parent.iterdir()) == ["mine.py", "ratings.csv", "run.toml"]


def test_a_mistake_on_the_command_line_is_not_placed_in_the_file(bayesneg, ratings):
    (ratings.parent / "run.toml").write_text('data = "ratings.csv"\nepochs = 3\n')
    error = bayesneg("train", "run.toml", "--epochs", "-1").error
    assert error.startswith("--epochs must be a whole number")


def test_a_file_that_is_not_there_or_says_no_data_is_an_error(bayesneg, place):
    assert "none.toml: no such file" in bayesneg("train", "none.toml").error
    (place / "run.toml").write_text("epochs = 2\n")
    assert "run.toml: data is missing" in bayesneg("train", "run.toml").error


def test_code_that_is_allowed_is_found_beside_the_file_and_makes_the_run_again(bayesneg, ratings):
    (ratings.parent / "mine.py").write_text(MINE)
    (ratings.parent / "run.toml").write_text('data = "ratings.csv"\nepochs = 2\nsampler = "bns:prior=mine.py:flat"\n')
    assert bayesneg("train", "run.toml", "--allow-code", "--out", "one", "-q").code == 0
    assert (ratings.parent / "ran").exists()
    assert "whose code would be run" in bayesneg("train", "one/run.toml").error
    assert bayesneg("train", "one/run.toml", "--allow-code", "--out", "two", "-q").code == 0
    same(ratings.parent / "one", ratings.parent / "two")


def test_a_custom_sampler_of_the_command_line_is_named_with_its_file(bayesneg, ratings, own_samplers):
    given = ("--sampler", "own.py:Mine:start=3", "--epochs", 2, "--out", "one", "-q")
    assert bayesneg("train", ratings, *given).code == 0
    written = tomllib.loads((ratings.parent / "one" / "run.toml").read_text())["sampler"]
    assert written == {"name": f"{own_samplers}:Mine", "start": 3}
    assert bayesneg("train", "one/run.toml", "--allow-code", "--out", "two", "-q").code == 0
    same(ratings.parent / "one", ratings.parent / "two")


def test_the_split_of_a_run_folder_is_data(bayesneg, finished):
    found = bayesneg("train", finished, "--epochs", 1, "--sampler", "rns", "--json").json
    assert found["data"]["fingerprint"] == bn.load_run(finished).split.fingerprint
    assert "its split is used as it is; drop --test-share" in bayesneg("train", finished, "--test-share", 0.1).error


def test_a_final_run_is_made_again_from_its_folder(bayesneg, ratings):
    final = ("--sampler", "rns", "--set", "dim=8", "--epochs", 3, "--final", "--out", "one", "-q")
    assert bayesneg("train", ratings, *final).code == 0
    place = ratings.parent
    before = bn.load_run(place / "one").record.before_final
    assert before["final"]["ndcg@20"] > 0
    for source, out in (("one", "two"), ("two/run.toml", "three")):
        done = bayesneg("train", source, "--out", out, "-q")
        assert done.code == 0
        assert "metrics were measured before, at epoch" in done.out
        assert (place / out / "weights.safetensors").read_bytes() == (place / "one/weights.safetensors").read_bytes()
        assert bn.load_run(place / out).record.before_final == before
    longer = bayesneg("train", "one", "--seed", 1, "--out", "other", "-q")
    assert "nothing was measured" in longer.out, "another model than the one that was measured"
    record = bn.load_run(place / "other").record
    assert (record.spec["model"]["dim"], record.seed, record.before_final) == (8, 1, {})


def test_every_argument_of_fit_that_decides_the_result_is_a_key():
    """A new argument is either written to the run file or has no part in what is learned."""
    no_part = {"split", "out", "resume", "checkpoint_every", "progress", "observer", "measured_by"}
    keys = set(inspect.signature(train.train).parameters) | set(PARTS)
    assert set(inspect.signature(bn.fit).parameters) - no_part <= keys
    written = {*PARTS, "epochs", "seed", "select", "evaluate_every", "evaluate_users", "patience", "start", "label"}
    assert written == set(inspect.signature(bn.fit).parameters) - no_part
    assert not {"epochs", "seed", "data"} & set(ELSEWHERE)


@pytest.mark.parametrize(
    "values",
    [
        {
            "a": 'quote " backslash \\ newline \n tab \t delete \x7f umlaut ä',
            "b": [1, "x"],
            "c": {"d": 1e-05, "e": True},
        },
        {"odd key": -0.0, "f": float("inf"), "g": 10**20, "h": {}},
    ],
)
def test_what_is_written_is_read(values):
    assert tomllib.loads(toml_text(values, comment="a file")) == values


def test_lines_are_those_of_keys_and_not_of_text():
    text = 'a = """\nb = 1\n"""\n"c d" = 2\n[e . f]\ng.h = 3\n[[i]]\nj = 1\n[[i]]\nj = 2\n'
    lines = key_lines(text)
    assert ("b",) not in lines
    assert lines[("c d",)] == 4
    assert lines[("e", "f", "g", "h")] == 6
    assert (lines[("i",)], lines[("i", "j")]) == (7, 8)


def test_a_start_that_was_never_saved_is_named_with_the_way_out(bayesneg, place):
    split, how = bn.split(bn.synthetic(40, 30, seed=0), seed=0), {"epochs": 1, "progress": False}
    start = bn.fit(bn.MF(dim=4), split, bn.RNS(), **how)
    bn.fit(bn.MF(dim=4), split, bn.RNS(), start=start, out="run", **how)
    error = bayesneg("train", "run/run.toml").error
    assert "the start of this run was a run in memory, which no folder holds; save it with run.save" in error
    assert "run.toml line " in error
    start.save("start")
    assert bayesneg("train", "run/run.toml", "--start", "start").code == 0
