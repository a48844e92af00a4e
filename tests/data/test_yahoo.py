"""Yahoo!-R3 on generated files of its format, since its owner forbids copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bayesneg.data.load import load
from bayesneg.data.readers.yahoo import TEST_FILE, TRAIN_FILE
from bayesneg.errors import DataError


def rows_of(pairs: set[tuple[int, int]]) -> str:
    return "".join(f"{user}\t{item}\t{1 + (user + item) % 5}\n" for user, item in sorted(pairs))


@pytest.fixture(scope="module")
def yahoo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[tuple[int, int]], set[tuple[int, int]]]:
    """15,400 users in the first file; other songs for the first 5,400 in the second."""
    rng = np.random.default_rng(0)
    train = {(user, int(item)) for user in range(1, 15_401) for item in rng.choice(500, 3, replace=False) + 1}
    test = {(user, int(item)) for user in range(1, 5_401) for item in rng.choice(500, 2, replace=False) + 501}
    folder = tmp_path_factory.mktemp("data") / "yahoo-r3"
    folder.mkdir()
    (folder / TRAIN_FILE).write_text(rows_of(train))
    (folder / TEST_FILE).write_text(rows_of(test))
    return folder, train, test


def test_the_first_5400_users_of_both_files_are_kept(yahoo):
    folder, train, test = yahoo
    data = load("yahoo-r3", data_dir=folder.parent)
    expected = {pair for pair in train if pair[0] <= 5_400} | test
    got = set(zip(data.user_ids[data.users].tolist(), data.item_ids[data.indices].tolist(), strict=True))
    assert got == expected
    assert (data.n_users, data.n_items, len(data)) == (5_400, 1_000, 5_400 * 5)
    assert data.times is None


def test_min_rating_counts_among_the_kept_users_only(yahoo):
    folder, train, test = yahoo
    kept = [pair for pair in (*train, *test) if pair[0] <= 5_400]
    n_below = sum(1 + (user + item) % 5 < 4 for user, item in kept)
    data = load(folder, min_rating=4)
    assert (len(data), data.n_below_min_rating) == (len(kept) - n_below, n_below)


def test_both_files_are_needed(tmp_path):
    (tmp_path / TRAIN_FILE).write_text("1\t1\t5\n")
    with pytest.raises(DataError, match=rf"{TEST_FILE}: no such file; Yahoo!-R3 needs both"):
        load(tmp_path)


def test_users_that_are_no_numbers_are_an_error(tmp_path):
    (tmp_path / TRAIN_FILE).write_text("ann\t1\t5\n")
    (tmp_path / TEST_FILE).write_text("1\t1\t5\n")
    with pytest.raises(DataError, match="users of Yahoo!-R3 are numbers"):
        load(tmp_path)


def test_a_missing_dataset_names_its_owner_and_folder(tmp_path):
    with pytest.raises(DataError) as caught:
        load("yahoo-r3", data_dir=tmp_path)
    assert str(tmp_path / "yahoo-r3") in str(caught.value)
    assert "Webscope" in str(caught.value)
    assert "signed agreement" in str(caught.value)
