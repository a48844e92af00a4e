"""Frames of other libraries and sparse matrices."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from bayesneg.data.load import load
from bayesneg.errors import DataError, InputError

COLUMNS = {"user_id": ["ann", "bob", "ann"], "item_id": [7, 7, 9], "rating": [5.0, 1.0, 4.0], "ts": [3, 2, 1]}


def pairs(data) -> list[tuple]:
    return list(zip(data.user_ids[data.users].tolist(), data.item_ids[data.indices].tolist(), strict=True))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_frames_of_every_library_give_the_same_data(make):
    data = load(make(COLUMNS))
    assert pairs(data) == [("ann", 7), ("ann", 9), ("bob", 7)]
    assert data.times.tolist() == [3, 1, 2]
    kept = load(make(COLUMNS), min_rating=4)
    assert (pairs(kept), kept.n_below_min_rating) == ([("ann", 7), ("ann", 9)], 1)


def test_text_in_a_frame_stays_text():
    assert load(pd.DataFrame({"user": ["1", "2"], "item": [1, 2]})).user_ids.tolist() == ["1", "2"]


def test_integers_that_pandas_made_floats_are_integers_again():
    assert load(pd.DataFrame({"user": [1.0, 2.0], "item": [1, 2]})).user_ids.tolist() == [1, 2]


def test_mixed_identifiers_become_text():
    assert load(pd.DataFrame({"user": [1, "x"], "item": [1, 2]})).user_ids.tolist() == ["1", "x"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_dates_become_seconds(make):
    columns = {"user": [1, 2], "item": [1, 2], "date": [datetime(1970, 1, 2), datetime(1970, 1, 1, 0, 0, 1)]}
    assert load(make(columns)).times.tolist() == [86400.0, 1.0]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("column", [["ann", None], [1, None], ["ann", "  "]])
def test_an_empty_identifier_is_named_by_its_row(make, column):
    with pytest.raises(DataError, match="the frame row 2: item is empty"):
        load(make({"user": [1, 2], "item": column}))


def test_a_rating_that_is_no_number_is_named_by_its_row():
    with pytest.raises(DataError, match="row 2: rating 'good' is not a number"):
        load(pl.DataFrame({"user": [1, 2], "item": [1, 2], "rating": ["5", "good"]}), min_rating=2)


def test_an_invalid_time_is_named_by_its_row():
    with pytest.raises(DataError, match="row 2: time 'soon' is neither"):
        load(pl.DataFrame({"user": [1, 2], "item": [1, 2], "time": ["5", "soon"]}))


def test_unknown_columns_are_listed():
    with pytest.raises(DataError, match="the frame: no item column was recognized among 'user', 'thing'"):
        load(pl.DataFrame({"user": [1], "thing": [2]}))


def test_of_several_rows_of_a_user_the_first_value_counts():
    rows = {"user": ["a", "a", "a", "b", "b", "c"], "item": [1, 2, 3, 1, 2, 1]}
    frame = pl.DataFrame(
        {**rows, "team": [None, "x", "x", "y", "z", None], "age": [np.nan, None, 3.0, 4.0, 5.0, np.nan]}
    )
    found = load(frame, user_columns=["team", "age"]).user_columns
    assert found["team"].tolist() == ["x", "y", None]
    assert found["age"].tolist() == [3.0, 4.0, None]


def test_user_columns_come_from_frames_too():
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 2], "job": ["writer", None]})
    assert load(frame, user_columns=["job"]).user_columns["job"].tolist() == ["writer", None]


def test_an_empty_frame_is_an_error():
    with pytest.raises(DataError, match="no rows"):
        load(pl.DataFrame({"user": [], "item": []}))


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_array])
def test_a_sparse_matrix_keeps_its_shape_and_numbers(make):
    dense = np.array([[0, 2, 0, 0], [0, 0, 0, 0], [5, 0, 1, 0]])
    data = load(make(dense))
    assert (data.n_users, data.n_items) == (3, 4)
    assert pairs(data) == [(0, 1), (2, 0), (2, 2)]
    assert data.counts.tolist() == [1, 0, 2]
    kept = load(make(dense), min_rating=2)
    assert (pairs(kept), kept.n_below_min_rating) == ([(0, 1), (2, 0)], 1)


def test_stored_zeros_are_no_interactions():
    matrix = sparse.csr_array(([1.0, 0.0], ([0, 1], [0, 1])), shape=(2, 2))
    assert pairs(load(matrix)) == [(0, 0)]


def test_a_matrix_without_values_is_an_error():
    with pytest.raises(DataError, match="matrix: no interactions"):
        load(sparse.csr_array((3, 3)))


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(DataError, match="the frame: "):
        load(pd.DataFrame([[1, 2, 3]], columns=["user", "item", "item"]))


def test_anything_else_is_refused_with_what_is_accepted():
    with pytest.raises(InputError, match=r"source must be a built-in name, a path, a frame .* got int"):
        load(3)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_pandas_times_of_any_unit_are_seconds(unit):
    stamps = pd.to_datetime(["1970-01-01 00:00:05", "1970-01-01 00:00:01"]).astype(f"datetime64[{unit}]")
    data = load(pd.DataFrame({"user": [1, 2], "item": [1, 2], "time": stamps}))
    assert data.times.tolist() == [5.0, 1.0]
