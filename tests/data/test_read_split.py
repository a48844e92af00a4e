"""Splits that come as two files."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from bayesneg.data.load import read_split
from bayesneg.errors import DataError, InputError


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("user,item,rating\n5,50,1\n6,60,5\n5,60,4\n5,60,4\n")
    test.write_text("user,item,rating\n6,50,5\n7,70,3\n")
    return train, test


def pairs(data) -> list[tuple]:
    return list(zip(data.user_ids[data.users].tolist(), data.item_ids[data.indices].tolist(), strict=True))


def test_both_parts_share_one_set_of_identifiers(files):
    split = read_split(*files)
    assert pairs(split.train) == [(5, 50), (5, 60), (6, 60)]
    assert pairs(split.test) == [(6, 50), (7, 70)]
    assert split.train.user_ids is split.test.user_ids
    assert split.train.item_ids is split.test.item_ids
    assert split.train.user_ids.tolist() == [5, 6, 7]
    assert (split.how, split.validation, split.train.n_duplicates) == ("given", None, 1)


def test_integers_in_one_file_and_text_in_the_other_are_the_same_users(files):
    train, test = files
    test.write_text("user,item\n6,50\nann,50\n")
    split = read_split(train, test)
    assert pairs(split.test) == [("6", 50), ("ann", 50)]
    assert split.train.user_ids.tolist() == ["5", "6", "ann"]


def test_min_rating_holds_for_both_parts(files):
    split = read_split(*files, min_rating=4)
    assert (pairs(split.train), split.train.n_below_min_rating) == ([(6, 60), (5, 60)], 1)
    assert (pairs(split.test), split.test.n_below_min_rating) == ([(6, 50)], 1)


def test_a_pair_in_both_parts_is_an_error_unless_dropped(files):
    train, test = files
    test.write_text("user,item\n5,50\n6,50\n")
    with pytest.raises(DataError, match=r'1 of the 2 pairs in .*test\.csv are in .*train\.csv too; .*overlap="drop"'):
        read_split(train, test)
    assert pairs(read_split(train, test, overlap="drop").test) == [(6, 50)]
    test.write_text("user,item\n5,50\n")
    with pytest.raises(DataError, match="no pair is left"):
        read_split(train, test, overlap="drop")


def test_a_user_file_has_features_of_the_users_of_both_parts(files, tmp_path):
    about = tmp_path / "users.csv"
    about.write_text('user,age,occupation\n7,30,writer\n5,20,"vice, police"\n99,1,none\n')
    split = read_split(*files, user_file=about)
    for part in (split.train, split.test):
        assert part.user_columns["occupation"].tolist() == ["vice, police", None, "writer"]
        assert part.user_columns["age"].tolist() == [20, None, 30]
    assert list(read_split(*files, user_file=about, user_columns=["age"]).train.user_columns) == ["age"]


def test_frames_are_parts_too():
    train = pl.DataFrame({"user": ["a"], "item": ["x"], "time": [3]})
    test = pl.DataFrame({"user": ["a"], "item": ["y"], "time": [4]})
    split = read_split(train, test)
    assert (pairs(split.train), pairs(split.test)) == ([("a", "x")], [("a", "y")])
    assert (split.train.times.tolist(), split.test.times.tolist()) == ([3], [4])


def test_adjacency_lists_are_parts_too(tmp_path):
    (tmp_path / "train.txt").write_text("0 1 2 3 4 5\n1 2\n")
    (tmp_path / "test.txt").write_text("0 6\n1\n")
    split = read_split(tmp_path / "train.txt", tmp_path / "test.txt", format="adjacency")
    assert (len(split.train), pairs(split.test)) == (6, [(0, 6)])


def test_validation_is_carved_from_training_only(tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("user,item\n" + "".join(f"{user},{item}\n" for user in range(10) for item in range(10)))
    test.write_text("user,item\n" + "".join(f"{user},{item}\n" for user in range(10) for item in range(10, 12)))
    split = read_split(train, test, validation=0.2, seed=1)
    assert split.validation is not None
    assert len(split.validation) == 20
    assert sorted(pairs(split.train) + pairs(split.validation)) == sorted(pairs(read_split(train, test).train))
    assert pairs(split.test) == pairs(read_split(train, test).test)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"overlap": "keep"}, "overlap must be 'raise' or 'drop'"), ({"validation": 1.0}, "validation must be a share")],
)
def test_an_option_out_of_range_is_named(files, options, message):
    with pytest.raises(InputError, match=message):
        read_split(*files, **options)


@pytest.mark.parametrize("which", [0, 1])
def test_a_part_that_is_not_there_or_empty_is_named(files, which):
    files[which].write_text("user,item\n")
    with pytest.raises(DataError, match=files[which].name):
        read_split(*files)
    files[which].unlink()
    with pytest.raises(DataError, match=rf"{files[which].name}: no such file"):
        read_split(*files)


@pytest.mark.real
def test_the_split_of_the_papers_authors_has_the_published_counts(real_data):
    folder = real_data / "bns-100k-split"
    if not folder.is_dir():
        pytest.skip(f"bns-100k-split is not in {real_data}")
    split = read_split(folder / "100k_train.csv", folder / "100k_test.csv", user_file=folder / "mapping_users.csv")
    assert (len(split.train), len(split.test)) == (80_000, 20_000)
    assert (split.train.n_users, split.train.n_items) == (943, 1_682)
    assert len(set(split.train.user_columns["occupation"])) == 21
