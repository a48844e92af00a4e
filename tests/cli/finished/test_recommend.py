"""``bayesneg recommend`` for many users and new ones, and ``bayesneg similar``."""

from __future__ import annotations

import json

import polars as pl
import pytest

import bayesneg as bn


@pytest.fixture
def titles(place):
    rows = [f"i{item},Title {item}" for item in range(1, 40)]  # i0 is missing
    (place / "titles.csv").write_text("\n".join(["item,title", *rows, ""]))
    return "titles.csv"


@pytest.mark.parametrize("name", ["recs.parquet", "recs.csv", "recs.jsonl"])
def test_recommendations_of_all_users_go_to_a_file(bayesneg, finished, place, name):
    done = bayesneg("recommend", finished, "--all-users", "-k", 4, "--out", name)
    run = bn.load_run(finished)
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "jsonl": pl.read_ndjson}[name.split(".")[1]]
    expected = run.recommend_all(k=4)
    assert (
        read(place / name)
        .select("user", "rank", "item")
        .equals(expected.select("user", pl.col("rank").cast(read(place / name)["rank"].dtype), "item"))
    )
    n_users = run.split.train.n_users
    assert done.out == f"{n_users} users, {4 * n_users} rows: {name}\n"


def test_users_of_a_file_with_titles_and_without_some_items(bayesneg, finished, place, titles):
    (place / "users.txt").write_text("u7\nu2\n")
    (place / "bad.txt").write_text("i3\nno such item\n")
    done = bayesneg(
        "recommend", finished, "--users", "users.txt", "--exclude", "bad.txt", "-k", 40, "--out", "r.csv",
        "--item-data", titles, "--json",
    )  # fmt: skip
    rows = pl.read_csv(place / "r.csv")
    assert done.json["n_users"] == 2
    assert rows["user"].unique(maintain_order=True).to_list() == ["u7", "u2"]
    assert "i3" not in rows["item"].to_list()
    assert "i0" in rows["item"].to_list()
    assert rows["title"].to_list() == [None if item == "i0" else f"Title {item[1:]}" for item in rows["item"]]
    assert "1 item of bad.txt is not in the data" in done.err
    assert "1 item of the run has no row in titles.csv (i0): their cells are empty" in done.err
    assert "some users have fewer than 40 items left" in done.err


def test_users_without_a_training_interaction_are_counted(bayesneg, place):
    rows = [(f"u{user}", f"i{item}") for user in range(20) for item in range(user % 5, 10)]
    train, test = place / "train.csv", place / "test.csv"
    train.write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in rows))
    test.write_text("user,item\nnew,i3\nother,i4\nu1,i0\n")
    made = bayesneg("train", train, "--test", test, "--model", "ease", "--select", "last", "--out", "some")
    assert made.code == 0, made.err
    done = bayesneg("recommend", "some", "--all-users", "--include-seen", "-k", 2, "--out", "all.csv", "--json")
    assert done.json["n_cold_users"] == 2
    assert "2 users have no training interaction: the most popular items" in done.err


def test_only_the_items_of_a_file(bayesneg, finished, place):
    (place / "only.csv").write_text("id,price\ni1,3\ni2,4\ni3,5\n")
    shared = ("recommend", finished, "--only", "only.csv", "--include-seen", "-k", 40, "--json")
    found = bayesneg(*shared, "--user", "u7").json
    assert sorted(line["item"] for line in found["items"]) == ["i1", "i2", "i3"]
    assert found["excluded"] == {}


def test_a_file_of_recommendations_is_replaced_only_by_force(bayesneg, finished, place):
    (place / "recs.csv").write_text("mine")
    error = bayesneg("recommend", finished, "--all-users", "--out", "recs.csv").error
    assert "--out recs.csv exists; name another file, or replace it with --force" in error
    assert (place / "recs.csv").read_text() == "mine"
    assert bayesneg("recommend", finished, "--all-users", "--out", "recs.csv", "--force").code == 0
    assert (place / "recs.csv").read_text().startswith("user,rank,item,score\n")


def test_a_new_user_is_given_by_its_items(bayesneg, finished, place, titles):
    found = bayesneg("recommend", finished, "--items", "i3, i5,i9", "-k", 4, "--json", "--item-data", titles).json
    assert (found["items_of_user"], found["unknown"]) == (["i3", "i5", "i9"], [])
    expected = bn.load_run(finished).fold_in(["i3", "i5", "i9"]).recommend(k=4)
    assert [(line["item"], line["score"]) for line in found["items"]] == expected
    assert {"title", "item", "score"} == set(found["items"][0])
    shown = bayesneg("recommend", finished, "--items", "i3,zzz", "--skip-unknown", "-k", 4)
    assert "for a new user with i3" in shown.out
    assert "not in the data and left out: zzz" in shown.err


def test_an_item_with_a_comma_is_quoted(bayesneg, place):
    rows = [f'u{n % 5},"Heat, {n % 9}"' for n in range(40)]
    (place / "data.csv").write_text("\n".join(["user,item", *rows, ""]))
    assert bayesneg("train", "data.csv", "--model", "ease", "--select", "last", "--out", "run").code == 0
    found = bayesneg("recommend", "run", "--items", '"Heat, 1", "Heat, 2"', "-k", 1, "--json").json
    assert found["items_of_user"] == ["Heat, 1", "Heat, 2"]
    error = bayesneg("recommend", "run", "--items", "Heat, 1").error
    assert """an item with a comma is in double quotes: --items '"Heat, """ in error
    assert "are not closed" in bayesneg("recommend", "run", "--items", '"Heat, 1').error


def test_an_item_with_several_rows_of_data_is_noted(bayesneg, finished, place, titles):
    with (place / titles).open("a") as file:
        file.write("i3,Another\ni3,Third\n")
    done = bayesneg("recommend", finished, "--user", "u1", "--item-data", titles)
    assert "1 item has several rows in titles.csv (the first: i3): the first row of each is shown" in done.err


def test_similar_items_are_shown_with_their_titles(bayesneg, finished, place, titles):
    found = bayesneg("similar", finished, "i3", "-k", 3, "--item-data", titles, "--json").json
    assert found["item"] == "i3"
    assert [(line["item"], line["similarity"]) for line in found["items"]] == bn.load_run(finished).similar("i3", 3)
    shown = bayesneg("similar", finished, "i3", "-k", 3, "--item-data", titles)
    assert "similar to item i3 (Title 3)" in shown.out
    assert found["items"][0]["title"] in shown.out


def test_json_has_users_and_items_in_the_type_of_the_data(bayesneg, place):
    rows = [f"{n % 5},{n % 9}" for n in range(40)]
    (place / "data.csv").write_text("\n".join(["user,item", *rows, ""]))
    assert bayesneg("train", "data.csv", "--model", "ease", "--select", "last", "--out", "run").code == 0
    one = bayesneg("recommend", "run", "--user", "3", "-k", 1, "--include-seen", "--json").json
    assert (one["user"], type(one["items"][0]["item"])) == (3, int)
    new = bayesneg("recommend", "run", "--items", "3", "-k", 1, "--json").json
    assert new["items_of_user"] == [3]
    assert bayesneg("similar", "run", "3", "-k", 1, "--json").json["item"] == 3
    assert bayesneg("recommend", "run", "--all-users", "--include-seen", "-k", 1, "--out", "r.jsonl").code == 0
    line = json.loads((place / "r.jsonl").read_text().splitlines()[0])
    assert (type(line["user"]), type(line["item"])) == (int, int)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["recommend", "RUN"], "give one of --user ID, --users FILE, --all-users and --items IDS, got none"),
        (["recommend", "RUN", "--user", "u1", "--all-users"], "got --user and --all-users"),
        (["recommend", "RUN", "--all-users"], "go to a file; name it with --out recs.parquet"),
        (["recommend", "RUN", "--all-users", "--out", "x.xlsx"], "must end in .parquet, .csv or .jsonl"),
        (["recommend", "RUN", "--all-users", "--out", "nowhere/x.csv"], "must be a file in an existing folder"),
        (["recommend", "RUN", "--all-users", "--out", "x.csv", "-k", "41"], "k must be at most the number of items 40"),
        (["recommend", "RUN", "--users", "no.txt", "--out", "x.csv"], "no.txt: no such file"),
        (["recommend", "RUN", "--user", "u1", "--force"], "--force goes with --out"),
        (["recommend", "RUN", "--items", ""], "items must name at least one item, got none"),
        (["recommend", "RUN", "--items", "i77"], "item 'i77' is not in the data; the nearest items are i7"),
        (["recommend", "RUN", "--items", "i1,i77"], "correct them, or leave them out with --skip-unknown"),
        (["recommend", "RUN", "--items", "i1", "--out", "x.csv"], "--out is for users of the data"),
        (["recommend", "RUN", "--items", "i1", "--include-held-out"], "a new user (--items) has no held-out part"),
        (["recommend", "RUN", "--user", "u1", "--item-columns", "title"], "--item-columns goes with --item-data"),
        (["recommend", "RUN", "--user", "u1", "--item-data", "no.csv"], "no.csv: no such file"),
        (["similar", "RUN", "i77"], "item 'i77' is not in the data; the nearest items are i7"),
        (["similar", "RUN", "i7", "-k", "0"], "k must be at least 1"),
        (["similar", "RUN"], "ITEM"),
    ],
)
def test_a_wrong_argument_gets_a_sentence_and_nothing_is_written(bayesneg, finished, place, arguments, expected):
    given = [str(finished) if argument == "RUN" else argument for argument in arguments]
    assert expected in bayesneg(*given).error
    assert list(place.iterdir()) == []


def test_a_report_shows_what_a_few_users_would_get_with_titles(bayesneg, finished, place, titles):
    assert bayesneg("report", finished, "-o", "plain.html").code == 0
    assert "Example recommendations" not in (place / "plain.html").read_text()
    assert bayesneg("report", finished, "-o", "page.html", "--item-data", titles).code == 0
    page = (place / "page.html").read_text()
    assert page.count("Recommendations for user") == 3
    run = bn.load_run(finished)
    user = page.split("Recommendations for user ")[1].split('"')[0]
    best = run.recommend(user, k=10, include_held_out=True)
    section = page.split(f"Recommendations for user {user}")[1].split("</table>")[0]
    assert all((f"Title {item[1:]}" if item != "i0" else "i0") in section for item, _ in best)
    held_out = run.split.train.item_ids[run.split.held_out.row(run.split.train.user_number(user))]
    assert section.count("held out</span>") == sum(item in held_out for item, _ in best)


def test_a_report_of_records_has_no_models_to_ask(finished, place, titles):
    with pytest.raises(bn.BayesnegError, match="records have no model; give runs"):
        bn.write_report(bn.load_run(finished).record, "page.html", item_data=titles)
    assert not (place / "page.html").exists()
