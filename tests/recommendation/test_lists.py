"""Recommendations for many users are those of each user, whatever else is asked for."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import bayesneg as bn
from bayesneg.linear.scoring import products
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.recommendation import bulk, lists
from bayesneg.recommendation.lists import item_lists
from bayesneg.recommendation.table_files import write_frames

from .conftest import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_many_users_get_what_each_gets_alone(run_of, world, name):
    run = run_of(name)
    found = run.recommend_all(k=7)
    assert found.columns == ["user", "rank", "item", "score"]
    for user in world.train.user_ids[:25].tolist():
        rows = found.filter(pl.col("user") == user)
        assert rows["rank"].to_list() == list(range(1, len(rows) + 1))
        alone = run.recommend(user, k=7)
        assert list(zip(rows["item"], rows["score"], strict=True)) == [
            (item, np.float32(score)) for item, score in alone
        ]


def crowded(n_users: int, n_items: int, seed: int) -> EmbeddingScorer:
    """Items so close together that scores differ in the last bits, and many are equal."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(4, 48))
    items = base[rng.integers(4, size=n_items)] * (1 + rng.normal(size=(n_items, 1)) * 1e-7)
    return EmbeddingScorer(rng.normal(size=(n_users, 48)).astype(np.float32), items.astype(np.float32))


@pytest.mark.parametrize("n_items", [90, 400])
def test_scores_that_differ_in_the_last_bit_rank_the_same_for_one_user_and_for_many(n_items):
    scorer = crowded(70, n_items, seed=n_items)
    users = np.arange(70)
    together = item_lists(scorer, None, users, 20)
    alone = [item_lists(scorer, None, users[place : place + 1], 20) for place in users]
    assert np.array_equal(together.items, np.concatenate([each.items for each in alone]))
    assert np.array_equal(together.scores, np.concatenate([each.scores for each in alone]))
    pairs = np.stack(
        [products(scorer.users, scorer.items, np.full(n_items, user), np.arange(n_items)) for user in users]
    )
    assert np.array_equal(together.items, np.argsort(-pairs, axis=1, kind="stable")[:, :20])
    assert np.abs(pairs - scorer.users @ scorer.items.T).max() < 1e-4


def test_lists_are_those_of_a_full_sort(run_of, world):
    run = run_of("mf")
    users = np.arange(world.train.n_users)
    found = item_lists(run.scorer, world.known, users, 30)
    scores = run.scorer.users.astype(np.float64) @ run.scorer.items.T
    for user in users:
        scores[user, world.known.row(user)] = -np.inf
        assert found.items[user].tolist() == np.argsort(-scores[user], kind="stable")[:30].tolist()


@pytest.mark.parametrize("name", ["mf", "ease", "ease of low rank", "popularity"])
def test_only_some_items_are_the_full_list_without_the_others(run_of, world, name):
    run = run_of(name)
    wanted = world.train.item_ids[[5, 90, 17, 40, 3, 66]].tolist()
    whole = run.recommend_all(k=world.train.n_items)
    expected = whole.filter(pl.col("item").is_in(wanted)).select("user", "item", "score")
    assert run.recommend_all(k=6, only=wanted).select("user", "item", "score").equals(expected)
    without = run.recommend_all(k=world.train.n_items, exclude=wanted)
    assert without.select("user", "item").equals(whole.filter(~pl.col("item").is_in(wanted)).select("user", "item"))


def test_what_was_seen_is_left_out_unless_asked_for(run_of, world):
    run, user = run_of("mf"), world.train.user_ids[0]
    n = world.train.n_items
    lengths = [len(run.recommend(user, k=n, **how)) for how in ({}, {"include_held_out": True}, {"include_seen": True})]
    assert lengths == [n - len(world.known.row(0)), n - len(world.train.row(0)), n]


def test_chunks_are_the_frame_in_order(run_of, monkeypatch):
    run = run_of("mf")
    whole = run.recommend_all(k=4)
    monkeypatch.setattr(bulk, "ROWS", 40)
    monkeypatch.setattr(bulk, "users_at_a_time", lambda n_items: 9)
    monkeypatch.setattr(lists, "users_at_a_time", lambda n_items: 4)
    parts = list(run.recommend_in_chunks(k=4))
    assert len(parts) > 10
    assert max(map(len, parts)) <= 40
    assert pl.concat(parts).equals(whole)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_a_file_of_chunks_holds_all_rows_and_nothing_is_left_beside_it(run_of, tmp_path, ending):
    whole = run_of("mf").recommend_all(k=4)
    target = tmp_path / f"recs{ending}"
    n_rows = write_frames((whole[start : start + 100] for start in range(0, len(whole), 100)), target)
    read = {".parquet": pl.read_parquet, ".csv": pl.read_csv, ".jsonl": pl.read_ndjson}[ending](target)
    assert n_rows == len(whole)
    assert read.select("user", "item").equals(whole.select("user", "item"), null_equal=False)
    assert np.allclose(read["score"], whole["score"], rtol=1e-6)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path):
    target = tmp_path / "recs.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(target)

    def failing():
        yield pl.DataFrame({"a": [2]})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_frames(failing(), target)
    assert pl.read_parquet(target)["a"].to_list() == [1]
    assert len(list(tmp_path.iterdir())) == 1


def test_some_users_in_their_order_each_once(run_of, world):
    ids = world.train.user_ids[[9, 2, 9, 30]].tolist()
    found = run_of("mf").recommend_all(k=2, users=ids)
    assert found["user"].to_list() == [each for each in dict.fromkeys(ids) for _ in range(2)]


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"k": 2.0}, "k must be a whole number, got 2.0"),
        ({"k": 121}, "k must be at most the number of items 120, got 121"),
        ({"users": []}, "users must name at least one user, got none"),
        ({"users": "u1"}, "users must be several identifiers of users"),
        ({"users": [0, 777]}, "user 777 is not in the data; the nearest users are 149, 148, 147; correct them, or"),
        ({"users": [777, 778]}, "none of its 2 users is in the data"),
        ({"users": [1.5]}, r"user must be one identifier, a whole number or a text, got 1.5 \(float\)"),
        ({"users": [True]}, r"got True \(bool\)"),
        ({"only": [777]}, "only: item 777 is not in the data"),
        ({"exclude": "i1"}, "exclude must be several identifiers"),
        ({"exclude": range(120)}, "exclude leaves no item to recommend"),
    ],
)
def test_a_wrong_argument_gets_a_sentence(run_of, how, sentence):
    with pytest.raises(bn.BayesnegError, match=sentence):
        run_of("mf").recommend_all(**{"k": 3, **how})


def test_unknown_users_are_skipped_where_asked(run_of):
    found = run_of("mf").recommend_all(k=2, users=[0, 777], unknown="skip")
    assert found["user"].unique().to_list() == [0]
