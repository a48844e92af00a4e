"""KuaiRec: the catalogue is known, and so is the truth about every pair."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bayesneg.data.load import load
from bayesneg.errors import DataError


@pytest.fixture
def kuairec(tmp_path: Path) -> Path:
    (tmp_path / "small_matrix_positives.csv").write_text("user_id,video_id\n14,137\n14,154\n19,137\n")
    (tmp_path / "known_video_ids.txt").write_text("103\n137\n154\n\n")
    return tmp_path


def test_videos_without_positives_are_in_the_catalogue(kuairec):
    data = load(kuairec)
    assert data.item_ids.tolist() == [137, 154, 103]
    assert data.popularity.tolist() == [2, 1, 0]


def test_an_absent_pair_is_a_real_negative(kuairec):
    data = load(kuairec)
    likes = data.truth.likes(np.array([[0], [1]]), np.array([[0, 1, 2]]))
    assert likes.tolist() == [[True, True, False], [True, False, False]]


def test_the_truth_of_a_part_is_that_of_the_whole(kuairec):
    data = load(kuairec)
    part = data.select(np.array([True, False, False]))
    assert part.truth.likes(np.array([0]), np.array([1])).tolist() == [True]


def test_the_original_file_gives_the_same(kuairec, tmp_path):
    original = tmp_path / "original"
    original.mkdir()
    rows = ["14,103,0.5,", "14,137,2.1,1", "14,154,7,2", "19,103,2,3", "19,137,2.01,4", "19,154,0,5"]
    header = "user_id,video_id,watch_ratio,timestamp"
    (original / "small_matrix.csv").write_text("\n".join([header, *rows]))
    data = load(original)
    liked = zip(data.user_ids[data.users].tolist(), data.item_ids[data.indices].tolist(), strict=True)
    assert set(liked) == {(14, 137), (14, 154), (19, 137)}
    assert sorted(data.item_ids.tolist()) == sorted(load(kuairec).item_ids.tolist())
    assert data.truth.likes(data.users, data.indices).all()


def test_without_its_catalogue_it_is_refused(kuairec):
    (kuairec / "known_video_ids.txt").unlink()
    with pytest.raises(DataError, match=r"known_video_ids\.txt: no such file"):
        load(kuairec)


@pytest.mark.real
def test_the_real_counts_are_the_published_ones(real_data):
    if not (real_data / "kuairec").is_dir():
        pytest.skip(f"kuairec is not in {real_data}")
    data = load("kuairec", data_dir=real_data)
    assert (len(data), data.n_users, data.n_items) == (217_175, 1_411, 3_319)
    assert data.truth.likes(data.users, data.indices).all()
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, data.n_users, 5_000), rng.integers(0, data.n_items, 5_000)
    assert data.truth.likes(users, items).mean() == pytest.approx(217_175 / (1_411 * 3_319), abs=0.01)
