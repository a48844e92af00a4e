"""Sentences on the command line: files keep their names, options are named as they are typed."""

import json

import pytest


@pytest.fixture
def sparse(tmp_path, monkeypatch):
    """Users with 1 to 5 interactions, and users with one."""
    monkeypatch.chdir(tmp_path)
    rows = [(u, (u + 3 * t) % 15, t) for u in range(40) for t in range(1 + u % 5)]
    (tmp_path / "sparse.csv").write_text("user,item,time\n" + "".join(f"u{u},é{i},{t}\n" for u, i, t in rows))
    (tmp_path / "one.csv").write_text("user,item,time\n" + "".join(f"u{u},i{u % 9},{u}\n" for u in range(40)))
    return tmp_path


@pytest.mark.parametrize("name", ["test.csv", "by.csv", "header.csv", "separator.csv", "test x.csv", "header"])
def test_a_file_that_is_called_as_an_argument_keeps_its_name(bayesneg, sparse, name):
    (sparse / name).write_text("user,item\n")
    assert bayesneg("train", name).err == f"error: {name}: no interactions; every row needs a user and an item\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["tune", "synthetic", "--trials", "1"], "error: --trials must be at least 6"),
        (["tune", "synthetic", "--minutes", "0"], "error: --minutes must be a number above 0"),
        (["compare", "synthetic", "--seeds", "0"], "error: --seeds must be at least 1"),
        (["train", "sparse.csv", "--nope"], "see bayesneg train --help"),
        (["nope"], "see bayesneg --help"),
        (
            ["train", "sparse.csv", "--split-by", "last", "--validation", "0.1"],
            "error: --validation 0.1 leaves no validation interactions out of 88; give --validation 0.15, which",
        ),
        (["train", "one.csv", "--split-by", "user"], "with --split-by user, which keeps one training interaction"),
    ],
)
def test_a_message_names_the_option_as_it_is_typed(bayesneg, sparse, arguments, expected):
    found = bayesneg(*arguments)
    assert found.code == 2
    assert expected in found.err
    assert "by=" not in found.err


def test_a_usual_share_that_holds_out_nothing_is_replaced_with_a_note(bayesneg, sparse):
    command = ["train", "sparse.csv", "--split-by", "last", "--model", "popularity", "--baselines", "none", "--json"]
    found = bayesneg(*command, "--out", "run")
    assert found.code == 0
    assert "note: the usual validation share of 0.1 would leave a part of so few interactions empty" in found.err
    assert "--validation 0.15" in found.err
    assert json.loads(found.out)["data"]["n_validation"] > 0
    lists = bayesneg("recommend", "run", "--user", "u4", "--json")
    assert '"é' in lists.out, "as .jsonl has it"


def test_advice_to_split_by_user_is_given_only_where_it_works(bayesneg, sparse):
    found = bayesneg("train", "one.csv", "--sampler", "rns", "--epochs", "2", "-q", "--baselines", "none")
    assert found.code == 0
    assert "no user has two interactions" in found.err
    assert "--split-by" not in found.err
