"""Adjacency lists: a user and its items on each line."""

from __future__ import annotations

import pytest

from bayesneg.data.load import load
from bayesneg.errors import DataError, InputError


def pairs(data) -> set[tuple]:
    return set(zip(data.user_ids[data.users].tolist(), data.item_ids[data.indices].tolist(), strict=True))


def test_lines_of_different_lengths_are_recognised(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("0 1 2 3 4 5\n1 2\n2 7 \n\n")
    data = load(path)
    assert pairs(data) == {(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (2, 7)}


def test_a_first_line_of_any_length_is_recognised(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(f"0 {' '.join(map(str, range(30_000)))}\n1 2\n")
    assert len(load(path)) == 30_001


def test_a_user_alone_on_a_line_has_no_interactions(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("0 1 2\n1\n2 3\n")
    data = load(path, format="adjacency")
    assert pairs(data) == {(0, 1), (0, 2), (2, 3)}
    assert data.user_ids.tolist() == [0, 2]


def test_a_short_line_of_a_table_is_not_taken_for_a_list(tmp_path):
    path = tmp_path / "ratings.txt"
    path.write_text("1 2 5\n1 3\n")
    with pytest.raises(DataError, match="line 2: too few fields"):
        load(path)


def test_text_identifiers_stay_text(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("ann 01 2 3 4 5\nbob 2\n")
    data = load(path, format="adjacency")
    assert data.user_ids.tolist() == ["ann", "bob"]
    assert data.item_ids.tolist() == ["01", "2", "3", "4", "5"]


def test_the_parts_of_a_folder_come_together(tmp_path):
    (tmp_path / "train.txt").write_text("0 1 2\n1 2\n")
    (tmp_path / "test.txt").write_text("0 3\n1\n")
    data = load(tmp_path, name="both")
    assert pairs(data) == {(0, 1), (0, 2), (1, 2), (0, 3)}
    assert data.name == "both"


def test_min_rating_is_refused(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("0 1 2\n")
    with pytest.raises(InputError, match="has no effect on a file of adjacency lists"):
        load(path, format="adjacency", min_rating=3)


def test_a_line_that_is_no_utf8_is_named(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes(b"0 1 2 3 4 5\n1 caf\xe9\n")
    with pytest.raises(DataError, match="line 2: the text is not UTF-8"):
        load(path, format="adjacency")


def test_lists_without_items_are_an_error(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("0\n1\n")
    with pytest.raises(DataError, match="no interactions"):
        load(path, format="adjacency")


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "n", "n_users", "n_items"),
    [("gowalla", 810_128 + 217_242, 29_858, 40_981), ("yelp2018", 1_237_259 + 324_147, 31_668, 38_048)],
)
def test_the_real_counts_are_the_published_ones(real_data, name, n, n_users, n_items):
    if not (real_data / name).is_dir():
        pytest.skip(f"{name} is not in {real_data}")
    data = load(name, data_dir=real_data)
    assert (len(data), data.n_users, data.n_items, data.n_duplicates) == (n, n_users, n_items, 0)
