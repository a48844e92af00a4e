"""Files of identifiers and tables of items."""

from __future__ import annotations

import polars as pl
import pytest

import bayesneg as bn
from bayesneg.data.interactions import Interactions
from bayesneg.recommendation.item_data import read_item_data
from bayesneg.recommendation.small_tables import read_ids

DATA = Interactions.from_pairs([1, 1, 2], [10, 20, 30])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("one per line.txt", "10\n\n20\n"),
        ("with a heading.txt", "item_id\n10\n20\n"),
        ("table.csv", 'title,item\n"Heat, 1995",10\nAlien,20\n'),
        ("table.tsv", "movieId\ttitle\n10\tHeat\n20\tThe Alien\n"),
        ("colons.dat", "item::title\n10::Heat\n20::Alien\n"),
        ("lines.jsonl", '{"item": 10}\n{"item": 20}\n'),
        ("titled.txt", "\ufeffid\r\n10\r\n20\r\n"),
    ],
)
def test_identifiers_are_read_from_any_usual_file(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    assert [int(each) for each in read_ids(path, "item")] == [10, 20]


def test_identifiers_are_read_from_parquet(tmp_path):
    pl.DataFrame({"x": [1, 2], "user": ["a", "b"]}).write_parquet(tmp_path / "u.parquet")
    assert read_ids(tmp_path / "u.parquet", "user") == ["a", "b"]


def test_identifiers_of_text_may_hold_blanks(tmp_path):
    (tmp_path / "names.txt").write_text("The Alien\nBlade Runner\n")
    assert read_ids(tmp_path / "names.txt", "item") == ["The Alien", "Blade Runner"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the file is empty; it must name items"),
        ("item\n", "holds no item; give one identifier per line"),
        ("a,b\n1,2\n", "no column known as the item among 'a', 'b'; call it item"),
        ("item,item\n1,2\n", "two columns of one name"),
        ("item,b\n1\n", "line 2: 1 fields where 2 are expected"),
    ],
)
def test_a_file_without_identifiers_is_an_error(tmp_path, text, sentence):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(bn.BayesnegError, match=sentence):
        read_ids(tmp_path / "x.csv", "item", option="--only")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("x.parquet", "nothing of the kind", "cannot be read as its name says"),
        ("x.jsonl", '{"item": 10}\nnothing', "x.jsonl line 2, column 1: this is not JSON, expecting value; each line"),
        ("x.jsonl", '\n{"item": 10', 'line 2, column 12: .* each line must be one object, such as {"item": "i1"}'),
        ("x.jsonl", "[10, 20]", r"line 1 holds \[10, 20\]; each line must be one object"),
        ("x.jsonl", '{"item": ' + "[" * 100_000 + "]" * 100_000 + "}", "line 1: lists or objects are nested too deep"),
        ("x.jsonl", '{"item": 10}\n{"item": {"id": 20}}', "line 2: 'item' must be an identifier, .* got {'id': 20}"),
        ("x.jsonl", "{}\n{}", "holds no item; each line must be one object"),
        ("x.json", '[{"item": 10}]', "a file of JSON is not read; write one object on each line"),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    with pytest.raises(bn.BayesnegError, match=sentence):
        read_ids(tmp_path / name, "item")


def test_nested_identifiers_of_parquet_are_an_error(tmp_path):
    pl.DataFrame({"item": [[1], [2]]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(bn.BayesnegError, match=r"'item' must be an identifier, text or a whole number, got \[1\]"):
        read_ids(tmp_path / "x.parquet", "item")


def test_json_lines_have_one_type_for_each_column_and_text_of_what_is_nested(tmp_path):
    lines = [
        '{"item": 10, "year": 1995, "mixed": 1, "tags": ["a", {"b": 1}], "large": 99999999999999999999}',
        '{"item": 20, "price": 2, "mixed": "x", "large": 1}',
        '{"item": 30, "price": 2.5, "kept": true}',
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(lines), encoding="utf-8-sig")
    found = read_item_data(tmp_path / "x.jsonl", DATA).table.to_dict(as_series=False)
    assert found == {
        "year": [1995, None, None],
        "mixed": ["1", "x", None],
        "tags": ['["a", {"b": 1}]', None, None],
        "large": ["99999999999999999999", "1", None],
        "price": [None, 2.0, 2.5],
        "kept": [None, None, True],
    }


def test_nested_columns_of_parquet_are_text(tmp_path):
    pl.DataFrame({"item": [10, 20], "tags": [["a"], None]}).write_parquet(tmp_path / "x.parquet")
    assert read_item_data(tmp_path / "x.parquet", DATA).table["tags"].to_list() == ['["a"]', None, None]


def test_columns_of_items_are_aligned_and_may_be_missing(tmp_path):
    (tmp_path / "items.csv").write_text("item,title,score\n30,Heat,5\n99,Gone,1\n10,Alien,4\n30,Again,3\n")
    found = read_item_data(tmp_path / "items.csv", DATA)
    assert found.columns == ["title", "score"]
    assert found.table["title"].to_list() == ["Alien", None, "Heat"]
    assert (found.missing, found.n_unknown, found.repeated) == ([20], 1, [30])
    assert (found.row(0), found.row(1)) == (["Alien", "4"], ["", ""])
    frame = pl.DataFrame({"user": [1, 2], "rank": [1, 1], "item": [20, 30], "score": [0.5, 0.25]})
    beside = found.beside(frame)
    assert beside.columns == ["user", "rank", "item", "score", "title", "item_score"]
    assert beside["title"].to_list() == [None, "Heat"]


@pytest.mark.parametrize(
    ("text", "columns", "sentence"),
    [
        ("name,title\n10,Heat\n", None, "no column known as the item among 'name', 'title'"),
        ("item,title\n11,Heat\n", None, "column 'item' names no item of the run; it holds '11', items of the run look"),
        ("item,title\n10,Heat\n", ["titel"], "has no column 'titel' beside its items; it has title"),
    ],
)
def test_a_table_that_describes_no_items_is_an_error(tmp_path, text, columns, sentence):
    (tmp_path / "items.csv").write_text(text)
    with pytest.raises(bn.BayesnegError, match=sentence):
        read_item_data(tmp_path / "items.csv", DATA, columns=columns)


def test_the_items_of_movielens_need_no_heading(tmp_path):
    line = "10|Misérables, Les (1995)|01-Jan-1995||http://x|0|1\n30|Heat (1995)|01-Jan-1995||http://x|0|1\n"
    (tmp_path / "u.item").write_bytes(line.encode("latin-1"))
    found = read_item_data(tmp_path / "u.item", DATA, columns=["title"])
    assert found.row(0) == ["Misérables, Les (1995)"]
