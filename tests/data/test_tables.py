"""Text tables and Parquet files: what is read, and what is said about a file that cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bayesneg.data.load import load
from bayesneg.errors import DataError, InputError


@pytest.fixture
def table(tmp_path: Path):
    def write(content: str | bytes, name: str = "ratings.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def pairs(data) -> list[tuple]:
    return list(zip(data.user_ids[data.users].tolist(), data.item_ids[data.indices].tolist(), strict=True))


@pytest.mark.parametrize("separator", [",", "\t", ";", "|", "::", " ", "~~", "^"])
def test_any_separator_is_read(table, separator):
    rows = [("user", "item", "rating"), ("1", "10", "5"), ("2", "20", "4")]
    path = table("\n".join(separator.join(row) for row in rows))
    told = None if separator in (",", "\t", ";", "|", "::", " ") else separator
    assert pairs(load(path, separator=told)) == [(1, 10), (2, 20)]


@pytest.mark.parametrize(
    "header",
    [
        "user,item",
        "userId,movieId",
        "User_ID,Product-ID",
        "customer_id,song",
        "visitor,VIDEO_ID",
        "user_id:token,item_id:token",
    ],
)
def test_common_column_names_are_known(table, header):
    assert pairs(load(table(f"{header}\n1,2\n"))) == [(1, 2)]


def test_columns_are_found_at_any_position(table):
    data = load(table("timestamp,movieId,rating,userId\n99,2,5,1\n"))
    assert pairs(data) == [(1, 2)]
    assert data.times.tolist() == [99]


def test_a_first_line_of_data_is_no_header(table):
    data = load(table("196\t242\t3\t881250949\n186\t302\t3\t891717742\n", "u.data"))
    assert pairs(data) == [(196, 242), (186, 302)]
    assert data.times.tolist() == [881250949, 891717742]


def test_a_table_of_text_without_a_header_is_read_with_header_false(table):
    assert pairs(load(table("ann,apple\nbob,pear\n"), header=False)) == [("ann", "apple"), ("bob", "pear")]


def test_columns_can_be_given_by_name_and_by_position(table):
    path = table("who,what\n1,2\n")
    assert pairs(load(path, user_column="who", item_column="WHAT")) == [(1, 2)]
    assert pairs(load(path, user_column=1, item_column=0, header=True)) == [(2, 1)]
    assert pairs(load(table("5,6,7\n"), user_column=2, item_column=0)) == [(7, 5)]


def test_identifiers_come_back_as_given(table):
    data = load(table("user,item\n007,1\n7,2\n+7,3\n"))
    assert data.user_ids.tolist() == ["007", "7", "+7"]
    assert data.item_ids.tolist() == [1, 2, 3]


@pytest.mark.parametrize("odd", ["x", "1.0", "-0", "99999999999999999999", "1e3", " 1"])
def test_one_identifier_that_is_no_canonical_integer_makes_all_text(table, odd):
    assert load(table(f"user,item\n3,1\n{odd},2\n")).user_ids.tolist() == ["3", odd]


def test_negative_identifiers_are_integers(table):
    assert load(table("user,item\n-5,1\n0,2\n")).user_ids.tolist() == [-5, 0]


def test_identifiers_far_apart_are_integers_like_others(table):
    users = [9_223_372_036_854_775_807, -9_223_372_036_854_775_808, 0, 9_223_372_036_854_775_807]
    data = load(table("user,item\n" + "".join(f"{user},{item}\n" for item, user in enumerate(users))))
    assert data.user_ids.tolist() == users[:3]
    assert data.counts.tolist() == [2, 1, 1]


def test_duplicates_collapse_and_are_counted_with_the_latest_time_kept(table):
    data = load(table("user,item,time\n1,2,50\n1,2,70\n1,3,10\n1,2,60\n"))
    assert pairs(data) == [(1, 2), (1, 3)]
    assert data.n_duplicates == 2
    assert data.times.tolist() == [70, 10]


def test_min_rating_keeps_that_rating_and_counts_the_rest(table):
    path = table("user,item,rating\n1,1,5\n1,2,3.5\n2,1,4\n2,2,1\n")
    data = load(path, min_rating=4)
    assert pairs(data) == [(1, 1), (2, 1)]
    assert data.n_below_min_rating == 2
    assert len(load(path)) == 4


def test_dates_become_seconds_in_the_right_order(table):
    dates = ("1970-01-02", "1970-01-01 00:00:01.5", "1970-01-01T02:00:00+02:00", "1970-01-01T00:01:00Z")
    rows = "".join(f"1,{item},{date}\n" for item, date in enumerate(dates))
    assert load(table(f"user,item,date\n{rows}")).times.tolist() == [86400.0, 1.5, 0.0, 60.0]


def test_user_columns_are_kept_when_asked_for(table):
    path = table("user,item,occupation,age\n7,1,writer,30\n8,1,,40\n7,2,writer,30\n")
    data = load(path, user_columns=["occupation", "age"])
    assert data.user_columns["occupation"].tolist() == ["writer", None]
    assert data.user_columns["age"].tolist() == [30, 40]
    assert data.user_columns["age"].dtype == object
    assert load(path).user_columns == {}


def test_bom_crlf_quotes_and_blank_lines_are_accepted(table):
    data = load(table(b'\xef\xbb\xbfuser,item\r\n1,"a,b"\r\n\r\n2,c\r\n   \r\n\r\n'))
    assert pairs(data) == [(1, "a,b"), (2, "c")]


def test_blank_lines_before_the_header_are_accepted(table):
    assert pairs(load(table("\n\nuser,item\n1,2\n"))) == [(1, 2)]


def test_quotes_are_plain_letters_in_a_file_with_tabs(table):
    assert load(table('user\titem\n1\t"Heat" (1995)\n')).item_ids.tolist() == ['"Heat" (1995)']


@pytest.mark.parametrize("separator", ["\t", "|"])
def test_fields_in_quotes_are_read_as_spreadsheets_write_them(table, separator):
    rows = ['"user"\titem\trating', '1\t"the ""big"" sleep"\t"5"', '2\t"Heat"\t4', '3\t5" nail\t4', '4\t"Heroes\t4']
    data = load(table("\n".join(rows).replace("\t", separator) + "\n"), min_rating=5)
    assert pairs(data) == [(1, 'the "big" sleep')]
    data = load(table("\n".join(rows).replace("\t", separator) + "\n"))
    assert pairs(data) == [(1, 'the "big" sleep'), (2, "Heat"), (3, '5" nail'), (4, '"Heroes')]
    wrong = table("\n".join([*rows, '5\t"x"\t"bad"', ""]).replace("\t", separator))
    with pytest.raises(DataError, match=r"line 6: rating 'bad'"):
        load(wrong, min_rating=5)


def test_a_path_with_wildcards_is_one_file(table):
    assert pairs(load(table("user,item\n1,2\n", "a[b]*.csv"))) == [(1, 2)]


def test_an_unused_column_may_hold_any_bytes(table):
    assert pairs(load(table(b"user,title,item\n1,caf\xe9,2\n"))) == [(1, 2)]


def test_ratings_may_be_empty_when_they_are_not_used(table):
    assert pairs(load(table("user,item,rating\n1,2,\n3,4,5\n"))) == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("user,item\n1,2\n3,\n", "line 3: item is empty; every row needs a user and an item"),
        ("user,item\n1,2\n,4\n", "line 3: user is empty"),
        ('user,item\n1,2\n"",4\n', "line 3: user is empty"),
        ("user,item\n1,2\n   ,4\n", "line 3: user is empty"),
        ("user,item\n1,2\n,\n", "line 3: user is empty"),
        ("user,item,rating\n1,2,3\n\n4,5\n", "line 4: too few fields, 2 where the first line has 3"),
        ("user,item\n1,2\n4,5,6\n", "line 3: too many fields, 3 where the first line has 2"),
        ("1::2::3\n4::5\n", "line 2: too few fields"),
        ("1::2::3\n4::5::6::7\n", "line 2: too many fields"),
        (b"user,item\n1,2\n3,caf\xe9\n", "line 3: the text is not UTF-8"),
        ("user,item,rating\n1,2,3\n4,5,good\n", "line 3: rating 'good' is not a number"),
        ("user,item,rating\n1,2,3\n4,5,nan\n", "line 3: rating 'nan' is not a number"),
        ("user,item,time\n1,2,3\n4,5,soon\n", "line 3: time 'soon' is neither a number nor a date"),
        ("user,item,time\n1,2,3\n4,5,\n", "line 3: time '' is neither"),
        ('user,item\n1,2\n3,"x"y\n', "line 3: a quotation mark does not fit"),
        ('user,item\n1,2\n3,"x\n4,5\n', "line 3: a quotation mark does not fit"),
        ("1\n2\n", "line 1: one field only"),
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ("user,item\n", "no interactions; every row needs a user and an item"),
        ("who,what\n1,2\n", "no user column was recognized among 'who', 'what'; name it with user_column"),
        ("user,what\n1,2\n", "no item column was recognized among 'user', 'what'; name it with item_column"),
        (b"\x1f\x8b\x08abc", "compressed"),
        ("user,item\r1,2\r", "lines end with \\r alone"),
        ("user item rating time more\n1 2 3 4 5\n1 2\n", "line 3: too few fields"),
    ],
)
def test_a_bad_file_is_named_with_its_line_and_what_is_wrong(table, content, message):
    path = table(content)
    with pytest.raises(DataError) as caught:
        load(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_line_is_found_far_down_a_file(table):
    rows = "".join(f"{n},{n}\n" for n in range(50_000))
    with pytest.raises(DataError, match="line 50002: item is empty"):
        load(table(f"user,item\n{rows}1,\n2,3\n"))


def test_an_empty_rating_is_an_error_when_ratings_decide(table):
    with pytest.raises(DataError, match="line 3: rating is empty"):
        load(table("user,item,rating\n1,2,3\n4,5,\n"), min_rating=2)


def test_no_rating_above_min_rating_is_an_error_with_the_way_out(table):
    with pytest.raises(DataError, match="no interactions are left, all 2 ratings are below min_rating; lower it"):
        load(table("user,item,rating\n1,2,3\n4,5,1\n"), min_rating=4)


def test_min_rating_without_ratings_is_an_error(table):
    with pytest.raises(InputError, match=r"min_rating: .* no column known as the rating among 'user', 'item'"):
        load(table("user,item\n1,2\n"), min_rating=4)


def test_a_column_that_is_not_there_is_an_error_that_lists_those_that_are(table):
    with pytest.raises(InputError, match=r"item_column: .* has no column 'film'; its columns are 'user', 'item'"):
        load(table("user,item\n1,2\n"), item_column="film")


def test_user_and_item_must_be_different_columns(table):
    with pytest.raises(InputError, match="user_column and item_column are the same"):
        load(table("user,item\n1,2\n"), item_column="user")


def test_times_and_ratings_can_be_left_out(table):
    data = load(table("user,item,rating,date\n1,2,good,soon\n"), rating_column="", time_column="")
    assert pairs(data) == [(1, 2)]
    assert data.times is None


def test_parquet_keeps_the_types_of_its_identifiers(tmp_path):
    path = tmp_path / "ratings.parquet"
    frame = pl.DataFrame({"user_id": ["1", "02"], "when": [1, 2], "item_id": [5, 6], "rating": [5.0, 1.0]})
    frame.write_parquet(path)
    data = load(path, time_column="when")
    assert pairs(data) == [("1", 5), ("02", 6)]
    assert data.times.tolist() == [1, 2]
    assert len(load(path, min_rating=2)) == 1
    assert pairs(load(path, user_column=2, item_column=0)) == [(5, "1"), (6, "02")]


def test_a_parquet_file_that_is_none_is_named(table):
    with pytest.raises(DataError, match=r"ratings\.parquet: this is not a Parquet file"):
        load(table("user,item\n1,2\n", "ratings.parquet"))


def test_random_tables_come_back_as_they_were_written(table):
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 50, 2000), rng.integers(0, 30, 2000)
    data = load(table("user,item\n" + "".join(f"{u},{i}\n" for u, i in zip(users, items, strict=True))))
    expected = set(zip(users.tolist(), items.tolist(), strict=True))
    assert set(pairs(data)) == expected
    assert len(data) == len(expected) == 2000 - data.n_duplicates
    assert data.user_ids.tolist() == list(dict.fromkeys(users.tolist()))


def test_a_blank_line_after_the_header_is_no_row(tmp_path):
    path = tmp_path / "gap.csv"
    path.write_text("\nuser,item\n\n\nu2,i2\nu3,i1\n")
    assert len(load(path)) == 2


def test_a_fault_after_blank_lines_names_its_line(tmp_path):
    path = tmp_path / "gap.csv"
    path.write_text("user,item\n\nu2,i2\n,i1\n")
    with pytest.raises(DataError, match="line 4"):
        load(path)


def test_utf_16_is_not_reported_as_a_missing_column(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_bytes("user,item\na,b\n".encode("utf-16"))
    with pytest.raises(DataError, match="not UTF-8"):
        load(path)
