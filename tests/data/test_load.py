"""Where load looks, and what it says when there is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayesneg.data.catalogue import BUILT_IN, built_in, data_folder, where
from bayesneg.data.load import load
from bayesneg.errors import DataError, InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ml-100k").mkdir()
    (tmp_path / "ml-100k" / "u.data").write_text("1\t2\t3\t4\n")
    return tmp_path


def test_the_argument_overrides_the_variable_and_the_variable_the_home(monkeypatch, tmp_path):
    monkeypatch.delenv("BAYESNEG_DATA", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".local/share/bayesneg"
    monkeypatch.setenv("XDG_DATA_HOME", "/xdg")
    assert data_folder() == Path("/xdg/bayesneg")
    monkeypatch.setenv("BAYESNEG_DATA", "/env")
    assert data_folder() == Path("/env")
    assert data_folder("/arg") == Path("/arg")


def test_a_built_in_name_is_looked_for_in_the_data_folder(folder, monkeypatch):
    assert len(load("ml-100k", data_dir=folder)) == 1
    monkeypatch.setenv("BAYESNEG_DATA", str(folder))
    assert load("ml-100k").name == "ml-100k"
    assert where("ml-100k") == folder / "ml-100k"
    assert where("ml-1m") is None


def test_an_absent_dataset_says_how_to_get_it(tmp_path):
    with pytest.raises(DataError, match=r"ml-1m is not in .*; run: bayesneg data get ml-1m$"):
        load("ml-1m", data_dir=tmp_path)
    with pytest.raises(DataError, match=r"kuairec is not in .*; get KuaiRec from its authors .*CC BY-SA 4\.0"):
        load("kuairec", data_dir=tmp_path)


@pytest.mark.parametrize("source", ["ml-100", "no/such.csv", Path("no/such.csv"), "x" * 5000])
def test_an_unknown_source_lists_the_built_in_datasets(source):
    with pytest.raises(DataError) as caught:
        load(source)
    assert str(source) in str(caught.value)
    assert all(name in str(caught.value) for name in BUILT_IN)


def test_a_folder_of_unknown_layout_is_refused(tmp_path):
    with pytest.raises(DataError, match="the layout of this folder is unknown"):
        load(tmp_path)


def test_the_synthetic_world_is_built_in():
    data = load("synthetic")
    assert data.name == "synthetic"
    assert data.truth is not None


def test_a_name_can_be_given(tmp_path):
    path = tmp_path / "shop.csv"
    path.write_text("user,item\n1,2\n")
    assert load(path).name == "shop"
    assert load(str(path), name="mine").name == "mine"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "format must be 'table', 'parquet' or 'adjacency', got 'xml'"),
        ({"separator": ""}, "separator must be one or more characters of a line, got ''"),
        ({"min_rating": float("nan")}, "min_rating must be a number"),
        ({"user_columns": "age"}, "user_columns must be a list of names, got 'age'"),
    ],
)
def test_an_option_out_of_range_is_named(tmp_path, options, message):
    path = tmp_path / "shop.csv"
    path.write_text("user,item\n1,2\n")
    with pytest.raises(InputError, match=message):
        load(path, **options)


def test_a_backslash_t_is_a_tab(tmp_path):
    path = tmp_path / "shop.txt"
    path.write_text("user\titem\n1\ta b\n")
    assert load(path, separator="\\t").item_ids.tolist() == ["a b"]


def test_every_dataset_states_its_terms():
    assert all(dataset.terms for dataset in BUILT_IN.values())
    assert "research" in built_in("ml-100k").terms
    with pytest.raises(InputError, match="'netflix' is no built-in dataset; these are synthetic, ml-100k"):
        built_in("netflix")
