"""Wrong input gets one sentence, exit code 2, and nothing is written."""

from __future__ import annotations

import pytest

GOOD = "user,item,rating\n" + "".join(f"u{n % 5},i{n % 7},{n % 5 + 1}\n" for n in range(20))
FILES = {
    "empty file": (b"", (), ["data.csv", "empty"]),
    "no rows": (b"user,item\n", (), ["data.csv", "no interactions"]),
    "no user column": (b"a,b\nx,y\nz,w\n", (), ["'a', 'b'", "--user-column"]),
    "named column missing": (GOOD.encode(), ("--item-column", "film"), ["'film'", "'user', 'item', 'rating'"]),
    "empty id": (b"user,item\nu1,i1\nu2,\n", (), ["data.csv line 3", "item is empty"]),
    "too few fields": (b"user,item,rating\nu1,i1,3\nu2\n", (), ["data.csv line 3", "too few fields"]),
    "not UTF-8": ("user,item\nu1,café\n".encode("latin-1"), (), ["data.csv line 2", "UTF-8"]),
    "rating is no number": (b"user,item,rating\nu1,i1,good\n", ("--min-rating", "3"), ["line 2", "'good'"]),
    "nothing above min rating": (GOOD.encode(), ("--min-rating", "9"), ["no interactions are left", "min_rating"]),
    "one interaction": (b"user,item\nu1,i1\n", (), ["no test interactions"]),
}
OPTIONS = {
    "sampler": (["--sampler", "bsn"], ["'bsn'", "did you mean bns?", "dns", "posterior"]),
    "setting of the sampler": (["--sampler", "dns:candidats=5"], ["'candidats'", "candidates", "top"]),
    "sampler setting without a value": (["--sampler", "dns:5"], ["'5' is not of the form key=value"]),
    "setting of neither": (["--set", "colour=red"], ["'colour'", "learning_rate", "weight"]),
    "setting of another sampler": (["--sampler", "dns", "--set", "weight=2"], ["'weight'", "candidates"]),
    "set without a value": (["--set", "dim"], ["--set: 'dim' is not of the form key=value"]),
    "set twice": (["--set", "dim=3", "--set", "dim=4"], ["dim is given twice"]),
    "set to text": (["--set", "dim=wide"], ["dim=wide", "whole number"]),
    "no candidates": (["--set", "candidates=0"], ["candidates", "at least 1", "0"]),
    "schedule": (["--set", "weight=square/2"], ["weight", "linear/START/RATE/FLOOR", "square/2"]),
    "learning rate": (["--set", "learning_rate=nan"], ["learning_rate must be a number above 0, got nan"]),
    "model": (["--model", "lightgcm"], ["'lightgcm' is not a model", "mf"]),
    "no epochs": (["--epochs", "0"], ["epochs", "at least 1", "0"]),
    "negative epochs": (["--epochs", "-2"], ["epochs", "at least 1", "-2"]),
    "epochs as text": (["--epochs", "many"], ["--epochs", "integer"]),
    "negative seed": (["--seed", "-1"], ["seed", "-1"]),
    "evaluate every": (["--evaluate-every", "0"], ["--evaluate-every", "at least 1"]),
    "select": (["--select", "worst"], ["--select must be best or last, got 'worst'"]),
    "best of nothing": (["--validation", "0"], ["--select best needs validation data"]),
    "test share": (["--test-share", "1.5"], ["share", "1.5"]),
    "split rule": (["--split-by", "luck"], ["interaction, user, last, time", "'luck'"]),
    "time without times": (["--split-by", "time"], ["time"]),
    "group prior without groups": (["--sampler", "bns-4"], ["prior=group needs a user column"]),
    "column without group prior": (["--set", "column=age"], ["prior=group"]),
    "resume without out": (["--resume"], ["--resume needs --out"]),
    "test and test share": (["--test", "data.csv", "--test-share", "0.1"], ["drop --test-share"]),
    "user file without test": (["--user-file", "data.csv"], ["--user-file goes with --test"]),
    "test overlaps training": (["--test", "data.csv"], ["20 of the 20 pairs in data.csv", "unseen"]),
    "unknown option": (["--sample", "bns"], ["--sample", "--help"]),
}

COMMANDS = {
    "the same sampler twice": ("compare data.csv --samplers rns,rns", ["RNS twice", "other settings"]),
    "no sampler": ("compare data.csv --samplers ,", ["no sampler is named", "rns,dns,bns"]),
    "no seeds": ("compare data.csv --samplers rns --seeds 0", ["--seeds", "at least 1", "got 0"]),
    "loss": ("compare data.csv --samplers rns --losses bpr,softmaxx", ["'softmaxx'", "did you mean softmax?"]),
    "temperature": (
        "compare data.csv --samplers rns --losses softmax:temperature=0",
        ["temperature", "above 0", "0.0"],
    ),
    "baseline": ("compare data.csv --samplers rns --baselines eese", ["'eese'", "did you mean ease?"]),
    "no trials": ("tune data.csv --trials 0", ["--trials", "at least 1", "got 0"]),
    "no minutes": ("tune data.csv --minutes -1", ["--minutes", "above 0", "-1.0"]),
    "a search to resume without a folder": ("tune data.csv --resume", ["--resume needs --out"]),
    "another database": ("tune data.csv --storage mysql://x", ["postgresql://", "mysql:"]),
    "share to hide": ("audit data.csv --samplers rns --hide 1.5", ["--hide", "between 0 and 1", "'1.5'"]),
    "no run": ("evaluate nowhere", ["nowhere holds no run", "bayesneg train --out"]),
    "a file in place of a run": ("evaluate data.csv", ["data.csv holds no run"]),
    "one user and all": ("recommend nowhere --user 1 --all-users", ["one of --user", "got --user and --all-users"]),
    "many lists without a file": ("recommend nowhere --all-users", ["--out recs.parquet"]),
    "ending of a file": ("recommend nowhere --all-users --out recs.txt", ["recs.txt", ".parquet, .csv or .jsonl"]),
    "items similar in no run": ("similar nowhere 3", ["nowhere holds no run"]),
    "report of no run": ("report nowhere", ["nowhere holds no run"]),
    "index": ("export nowhere out --index annoy", ["--index annoy", "usearch"]),
    "port": ("serve nowhere --port 99999", ["--port", "from 0 to 65535", "99999"]),
    "nothing to serve": ("serve nowhere", ["no run and no export"]),
    "nothing to prepare": ("data prepare nowhere.csv --out prepared", ["nowhere.csv", "check the path"]),
    "prepared to nowhere": ("data prepare data.csv", ["--out", "--help"]),
    "dataset": ("data get ml-100kk", ["'ml-100kk'", "ml-100k"]),
    "table": ("reproduce table9", ["'table9'", "table2"]),
    "recipe": ("reproduce nowhere.toml", ["nowhere.toml: no such file"]),
    "prior": ("priors data.csv --priors popularityy", ["'popularityy'", "did you mean popularity?"]),
    "run file": ("train nowhere.toml", ["nowhere.toml: no such file"]),
    "tracker": ("train data.csv --track tensorbord:x", ["'tensorbord'", "did you mean tensorboard?"]),
    "start": ("train data.csv --start nowhere", ["nowhere holds no run"]),
    "loss of a training": ("train data.csv --loss hinge", ["'hinge' is not a loss", "softmax"]),
    "custom sampler": ("train data.csv --sampler missing.py:Mine", ["missing.py does not exist", "file.py:Class"]),
    "a size of 20 digits": ("train data.csv --set dim=99999999999999999999", ["dim", "2^63 - 1"]),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_a_wrong_command_gets_a_sentence(bayesneg, place, case):
    command, expected = COMMANDS[case]
    (place / "data.csv").write_text(GOOD)
    error = bayesneg(*command.split()).error
    assert all(part in error for part in expected), error
    assert [path.name for path in place.iterdir()] == ["data.csv"]


def test_an_error_is_on_one_line_whatever_it_quotes(bayesneg, place):
    """``.error`` is one line; the name of a prior is quoted as it was given."""
    (place / "data.csv").write_text(GOOD)
    assert bayesneg("priors", "data.csv", "--priors", "b\nn").error.startswith("prior b\\nn: ")
    assert bayesneg("priors", "data.csv", "--priors", "b\x1b[31mn").error.startswith("prior b\\x1b[31mn: ")


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_used_gets_a_sentence(bayesneg, place, case):
    content, options, expected = FILES[case]
    (place / "data.csv").write_bytes(content)
    error = bayesneg("train", "data.csv", "--epochs", 1, "--out", "run", *options).error
    assert all(part in error for part in expected), error
    assert [path.name for path in place.iterdir()] == ["data.csv"]


@pytest.mark.parametrize("case", OPTIONS)
def test_a_wrong_option_gets_a_sentence(bayesneg, place, case):
    options, expected = OPTIONS[case]
    (place / "data.csv").write_text(GOOD)
    out = [] if case == "resume without out" else ["--out", "run"]
    error = bayesneg("train", "data.csv", "--epochs", 1, *out, *options).error
    assert all(part in error for part in expected), error
    assert [path.name for path in place.iterdir()] == ["data.csv"]


def test_a_missing_file_gets_the_names_of_the_built_in_datasets(bayesneg, place):
    error = bayesneg("train", "nowhere.csv").error
    assert "nowhere.csv" in error
    assert "synthetic, ml-100k" in error


def test_a_missing_argument_or_command_gets_a_sentence(bayesneg, place):
    assert "DATA" in bayesneg("train").error
    assert "'trian'" in bayesneg("trian").error
    assert "--user" in bayesneg("recommend", "run").error
    assert (
        "--device must be one of auto, cpu, cuda, got 'gpu'"
        in bayesneg("recommend", "run", "--user", "1", "--device", "gpu").error
    )
    assert (
        "--device cuda is for processes of torchrun"
        in bayesneg("recommend", "run", "--user", "1", "--device", "cuda").error
    )


def test_a_dataset_that_is_not_there_says_how_to_get_it(bayesneg, place):
    error = bayesneg("train", "ml-100k", "--data-dir", place).error
    assert "bayesneg data get ml-100k" in error


@pytest.mark.parametrize("out", ["/dev/null/run", "data.csv"])
def test_an_out_that_cannot_be_written_gets_a_sentence(bayesneg, place, out):
    (place / "data.csv").write_text(GOOD)
    assert out in bayesneg("train", "data.csv", "--epochs", 1, "--out", out).error
    assert out in bayesneg("compare", "data.csv", "--seeds", 1, "--epochs", 1, "--out", out).error
    assert [path.name for path in place.iterdir()] == ["data.csv"]


@pytest.mark.parametrize(("sampler", "value"), [("TooSure", "1.5"), ("NotANumber", "nan")])
def test_a_prior_that_is_no_probability_stops_the_run_and_leaves_no_folder(
    bayesneg, ratings, own_samplers, sampler, value
):
    error = bayesneg("train", ratings, "--sampler", f"own.py:{sampler}", "--epochs", 1, "--out", "run").error
    assert f"between 0 and 1, got {value}" in error
    assert not (ratings.parent / "run").exists()


def test_an_item_that_does_not_exist_stops_the_run_and_leaves_no_folder(bayesneg, ratings, own_samplers):
    error = bayesneg("train", ratings, "--sampler", "own.py:OutOfRange", "--epochs", 1, "--out", "run").error
    assert "item numbers from 0 to 39" in error
    assert not (ratings.parent / "run").exists()


def test_a_crash_in_the_users_own_code_keeps_its_traceback_and_leaves_no_folder(bayesneg, ratings, own_samplers):
    with pytest.raises(RuntimeError, match="a mistake in my own code"):
        bayesneg("train", ratings, "--sampler", "own.py:Crashing", "--epochs", 1, "--out", "run")
    assert not (ratings.parent / "run").exists()
