"""MovieLens folders in every layout they come in."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayesneg.data.load import load
from bayesneg.errors import DataError, InputError


@pytest.fixture
def ml_100k(tmp_path: Path) -> Path:
    (tmp_path / "u.data").write_text("196\t242\t3\t881250949\n186\t302\t5\t891717742\n196\t302\t1\t881250950\n")
    (tmp_path / "u.user").write_text("186|39|F|executive|00000\n196|49|M|writer|55105\n9|1|M|none|1\n")
    (tmp_path / "u.item").write_bytes(b"242|Caf\xe9 (1996)|||\n")
    return tmp_path


def test_ml_100k_brings_its_users_in_the_order_of_the_data(ml_100k):
    data = load(ml_100k)
    assert data.user_ids.tolist() == [196, 186]
    assert data.user_columns["occupation"].tolist() == ["writer", "executive"]
    assert data.user_columns["age"].tolist() == [49, 39]
    assert data.user_columns["zip_code"].tolist() == ["55105", "00000"]
    assert data.times.tolist() == [881250949, 881250950, 891717742]


def test_user_columns_can_be_chosen(ml_100k):
    assert list(load(ml_100k, user_columns=["gender"]).user_columns) == ["gender"]
    assert load(ml_100k, user_columns=[]).user_columns == {}
    with pytest.raises(InputError, match="no user column 'income'; its user columns are age, gender"):
        load(ml_100k, user_columns=["income"])


def test_min_rating_works_on_a_folder(ml_100k):
    data = load(ml_100k, min_rating=3)
    assert (len(data), data.n_below_min_rating) == (2, 1)


def test_options_without_effect_on_a_folder_are_refused(ml_100k):
    with pytest.raises(InputError, match=r"separator='.*' has no effect on a MovieLens folder"):
        load(ml_100k, separator=",")


def test_a_broken_line_of_the_user_file_is_named(ml_100k):
    (ml_100k / "u.user").write_text("186|39|F|executive|00000\n196|49\n")
    with pytest.raises(DataError, match=r"u\.user line 2: 2 fields where 5 are expected"):
        load(ml_100k)


def test_ratings_alone_are_enough(ml_100k):
    (ml_100k / "u.user").unlink()
    assert load(ml_100k).user_columns == {}


def test_ml_1m_is_read(tmp_path):
    (tmp_path / "ratings.dat").write_text("1::1193::5::978300760\n2::661::3::978302109\n")
    (tmp_path / "users.dat").write_text("1::F::1::10::48067\n2::M::56::16::70072\n")
    (tmp_path / "movies.dat").write_bytes(b"1193::Caf\xe9::Drama\n")
    data = load(tmp_path)
    assert data.item_ids.tolist() == [1193, 661]
    assert data.times.tolist() == [978300760, 978302109]
    assert data.user_columns["occupation"].tolist() == [10, 16]
    assert data.user_columns["gender"].tolist() == ["F", "M"]


def test_recbole_atomic_files_are_read(tmp_path):
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float\r\n"
    rows = '1m_1\tToy "Story" (1995)\t5\t978300760\r\n1m_2\tHeat (1995)\t2\t978300761\r\n'
    (tmp_path / "ml-1m.inter").write_text(header + rows, newline="")
    (tmp_path / "ml-1m.user").write_text("user_id:token\tage:float\toccupation:float\r\n1m_2\t56\t16\r\n", newline="")
    data = load(tmp_path)
    assert data.item_ids.tolist() == ['Toy "Story" (1995)', "Heat (1995)"]
    assert data.user_columns["occupation"].tolist() == [None, 16]
    assert data.times.tolist() == [978300760, 978300761]


def test_later_movielens_folders_are_read(tmp_path):
    (tmp_path / "ratings.csv").write_text("userId,movieId,rating,timestamp\n1,2,3.5,1147880044\n")
    assert load(tmp_path).times.tolist() == [1147880044]


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "n", "n_users", "n_items", "n_occupations"),
    [("ml-100k", 100_000, 943, 1_682, 21), ("ml-1m", 1_000_209, 6_040, 3_706, 21)],
)
def test_the_real_counts_are_the_published_ones(real_data, name, n, n_users, n_items, n_occupations):
    if not (real_data / name).is_dir():
        pytest.skip(f"{name} is not in {real_data}")
    data = load(name, data_dir=real_data)
    assert (len(data), data.n_users, data.n_items, data.n_duplicates) == (n, n_users, n_items, 0)
    assert len(set(data.user_columns["occupation"])) == n_occupations
    assert data.times is not None
    assert data.name == name
