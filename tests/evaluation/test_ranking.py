"""Full-catalogue ranking against a naive version that sorts everything, and at its edges."""

from __future__ import annotations

import json
import math
import weakref

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import bayesneg as bn
from bayesneg.cli.show import show_run
from bayesneg.data import lookup
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.evaluation import ranking
from bayesneg.evaluation._auc import count_ordered_pairs
from bayesneg.evaluation._topk import top_k
from bayesneg.evaluation.ranking import evaluate
from bayesneg.recommendation.lists import item_lists


class TableScorer:
    """Scores read from a table; remembers the largest block it was asked for."""

    def __init__(self, table):
        self.table = np.asarray(table, dtype=np.float32)
        self.n_users, self.n_items = self.table.shape
        self.largest = 0

    def score_all(self, users):
        self.largest = max(self.largest, len(users))
        return self.table[users]


def interactions(rows, n_items):
    """Interactions of users 0, 1, … named "u0", "u1", …, from a list of item lists; may be empty."""
    counts = [len(set(row)) for row in rows]
    return Interactions(
        indptr=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        indices=np.array([item for row in rows for item in sorted(set(row))], dtype=np.int32),
        user_ids=np.array([f"u{number}" for number in range(len(rows))], dtype=object),
        item_ids=np.arange(n_items) + 100,
    )


def split_of(train, test, n_items, validation=None):
    parts = [interactions(rows, n_items) for rows in (train, test, validation or [[] for _ in train])]
    shared = parts[0]
    train, test, validation_part = (
        Interactions(part.indptr, part.indices, shared.user_ids, shared.item_ids) for part in parts
    )
    return Split(train, test, None if validation is None else validation_part)


def naive_order(scores, masked):
    """All unmasked items by sorting (−score, item), nan as −∞."""
    clean = [-math.inf if math.isnan(score) else score for score in map(float, scores)]
    return [item for _, item in sorted((-score, item) for item, score in enumerate(clean)) if item not in masked]


def naive_auc(scores, masked, tests):
    clean = [-math.inf if math.isnan(score) else score for score in map(float, scores)]
    negatives = [item for item in range(len(clean)) if item not in masked and item not in tests]
    wins = [
        1.0 if clean[test] > clean[negative] else 0.5 if clean[test] == clean[negative] else 0.0
        for test in tests
        for negative in negatives
    ]
    return sum(wins) / len(wins) if wins else math.nan


SCORES = st.one_of(
    st.integers(-2, 2).map(float),  # many ties
    st.floats(width=32, allow_nan=True, allow_infinity=True),
)


@st.composite
def worlds(draw):
    n_users, n_items = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    table = [[draw(SCORES) for _ in range(n_items)] for _ in range(n_users)]
    roles = [[draw(st.sampled_from(["train", "test", "validation", "none"])) for _ in range(n_items)] for _ in table]
    parts = {
        part: [[item for item, role in enumerate(row) if role == part] for row in roles]
        for part in ("train", "test", "validation")
    }
    return np.array(table, dtype=np.float32), parts


@settings(max_examples=200, deadline=None)
@given(worlds(), st.data())
def test_top_k_is_the_head_of_the_full_sort(world, data):
    table, parts = world
    k = data.draw(st.integers(1, table.shape[1]))
    masked = interactions(parts["train"], table.shape[1])
    items = top_k(table, np.arange(len(table)), masked.indptr, masked.indices, k)
    for user, row in enumerate(items.tolist()):
        order = naive_order(table[user], parts["train"][user])
        assert row == (order + [-1] * k)[:k]


@pytest.mark.filterwarnings("ignore:some scores of the model are no numbers")
@settings(max_examples=200, deadline=None)
@given(worlds())
def test_auc_agrees_with_comparing_every_pair(world):
    table, parts = world
    users = [user for user, tests in enumerate(parts["test"]) if tests]
    assume(users)
    split = split_of(parts["train"], parts["test"], table.shape[1])
    got = evaluate(TableScorer(table), split, metrics="auc").values["auc"]
    expected = [naive_auc(table[user], parts["train"][user], parts["test"][user]) for user in users]
    assert got == pytest.approx(expected, nan_ok=True)


@pytest.mark.filterwarnings("ignore:some scores of the model are no numbers")
@settings(max_examples=100, deadline=None)
@given(worlds(), st.data())
def test_evaluate_agrees_with_a_naive_version(world, data):
    table, parts = world
    n_items = table.shape[1]
    k = data.draw(st.integers(1, n_items))
    part = data.draw(st.sampled_from(["test", "validation"]))
    users = [user for user, tests in enumerate(parts[part]) if tests]
    assume(users)
    assume(any(parts["train"]) or any(parts["validation"]))  # a union of nothing is refused by the data room
    split = split_of(parts["train"], parts["test"], n_items, parts["validation"])
    report = evaluate(TableScorer(table), split, k=k, part=part)
    popularity = np.bincount([item for row in parts["train"] for item in row], minlength=n_items)
    precision, ndcg, popular, reached = [], [], [], set()
    for user in users:
        masked = parts["train"][user] + (parts["validation"][user] if part == "test" else [])
        top = naive_order(table[user], masked)[:k]
        tests = parts[part][user]
        gains = [1 / math.log2(rank + 2) for rank, item in enumerate(top) if item in tests]
        precision.append(len(gains) / k)
        ndcg.append(sum(gains) / sum(1 / math.log2(rank + 2) for rank in range(min(k, len(tests)))))
        popular.append(np.mean(popularity[top]))
        reached |= set(top)
    assert report.values[f"precision@{k}"] == pytest.approx(precision)
    assert report.values[f"ndcg@{k}"] == pytest.approx(ndcg)
    assert report.values[f"popularity@{k}"] == pytest.approx(popular)
    assert report.mean[f"ndcg@{k}"] == pytest.approx(np.mean(ndcg))
    assert report.mean[f"coverage@{k}"] == pytest.approx(len(reached) / n_items)
    assert report.user_ids.tolist() == [f"u{user}" for user in users]


@pytest.fixture(scope="module")
def larger():
    """A world of 150 users × 300 items with many ties in the scores and lists of all lengths."""
    rng = np.random.default_rng(1)
    table = rng.integers(0, 40, size=(150, 300)) / 8
    role = rng.choice(4, p=[0.2, 0.1, 0.1, 0.6], size=table.shape)
    role[:5, :] = np.where(role[:5] == 1, 3, role[:5])  # five users without test items
    role[5:8, :] = np.where(role[5:8] == 0, 3, role[5:8])  # three without training items
    train, test, validation = ([np.flatnonzero(row == part).tolist() for row in role] for part in (0, 1, 2))
    return table, split_of(train, test, table.shape[1], validation)


def test_every_chunk_gives_the_same_report(larger):
    table, split = larger
    whole = evaluate(TableScorer(table), split)
    for chunk in (1, 2, 7, 144, 145, 10_000):
        part = evaluate(TableScorer(table), split, chunk=chunk)
        assert part.mean == whole.mean
        assert part.per_user.equals(whole.per_user)


def test_chunk_bounds_the_block_of_scores(larger):
    table, split = larger
    scorer = TableScorer(table)
    evaluate(scorer, split, chunk=13)
    assert scorer.largest == 13


@pytest.mark.parametrize(
    ("cached", "least", "most", "users"),
    [
        (50_000, 1, 60_000, 50_000 // 1200),  # as many as the cache holds
        (50_000, 45, 60_000, 45),  # at least so many
        (50_000, 64, 60_000, 60_000 // 1200),  # but never above the bound
        (0, 64, 100, 1),  # and one in any case
    ],
)
def test_chunks_of_scores_suit_the_cache_and_stay_below_the_memory_bound(
    larger, monkeypatch, cached, least, most, users
):
    table, split = larger  # 300 items, 1200 bytes a user
    scorer = TableScorer(table)
    monkeypatch.setattr(ranking, "CACHED_BYTES", cached)
    monkeypatch.setattr(ranking, "LEAST_USERS", least)
    monkeypatch.setattr(ranking, "MOST_BYTES", most)
    evaluate(scorer, split)
    assert scorer.largest == users


def test_one_chunk_of_scores_is_held_at_a_time(larger):
    table, split = larger
    given = []

    class Watched(TableScorer):
        def score_all(self, users):
            assert not any(reference() is not None for reference in given)
            scores = super().score_all(users)
            given.append(weakref.ref(scores))
            return scores

    evaluate(Watched(table), split, chunk=40)
    item_lists(Watched(table), split.seen, np.arange(150), 5)
    assert len(given) > 4


def test_the_memory_bound_is_at_most_64_megabytes():
    assert ranking.MOST_BYTES <= 64 * 2**20


def test_every_batch_of_lists_gives_the_same_report(larger, monkeypatch):
    table, split = larger
    whole = evaluate(TableScorer(table), split)
    for places in (1, 40, 1000):
        monkeypatch.setattr(ranking, "BATCH_SIZE", places)
        part = evaluate(TableScorer(table), split)
        assert part.mean == pytest.approx(whole.mean)
        for key, values in whole.values.items():
            assert part.values[key] == pytest.approx(values, nan_ok=True)


def test_ranking_leaves_the_scores_as_they_are(larger):
    table, split = larger
    scores = np.array(table, dtype=np.float32)[split.test.counts > 0]
    users = np.flatnonzero(split.test.counts)
    before = scores.copy()
    masked = split.seen.indptr, split.seen.indices
    top_k(scores, users, *masked, 20)
    count_ordered_pairs(scores, users, *masked, split.test.indptr, split.test.indices)
    assert np.array_equal(scores, before)


def test_large_lists_agree_with_a_full_sort(larger):
    table, split = larger
    items, _ = item_lists(TableScorer(table), split.seen, np.arange(150), 300)
    for user in range(150):
        order = naive_order(table[user], set(split.seen.row(user).tolist()))
        assert items[user, : len(order)].tolist() == order
        assert (items[user, len(order) :] == -1).all()


def test_large_auc_agrees_with_comparing_every_pair(larger):
    table, split = larger
    report = evaluate(TableScorer(table), split, metrics="auc")
    users = np.flatnonzero(split.test.counts)
    expected = [
        naive_auc(table[user], set(split.seen.row(user).tolist()), split.test.row(user).tolist()) for user in users[:30]
    ]
    assert report.values["auc"][:30] == pytest.approx(expected)


def test_users_without_test_items_are_left_out(larger):
    table, split = larger
    report = evaluate(TableScorer(table), split)
    assert report.n_users == 145
    assert report.per_user["user"].to_list() == [f"u{user}" for user in range(5, 150)]


def test_users_without_training_items_are_counted_and_evaluated(larger):
    table, split = larger
    report = evaluate(TableScorer(table), split)
    assert report.n_users_without_training == 3
    assert {"u5", "u6", "u7"} <= set(report.per_user["user"])


def test_equal_scores_rank_by_item_number():
    items, scores = item_lists(TableScorer([[1, 2, 2, 1, 2]]), interactions([[]], 5), np.array([0]), 4)
    assert items.tolist() == [[1, 2, 4, 0]]
    assert scores.tolist() == [[2, 2, 2, 1]]


def test_a_score_that_is_nan_ranks_with_minus_infinity():
    table = [[np.nan, -np.inf, 0, np.nan, np.inf]]
    with pytest.warns(UserWarning, match="no numbers .NaN. and rank last"):
        items, scores = item_lists(TableScorer(table), interactions([[]], 5), np.array([0]), 5)
    assert items.tolist() == [[4, 2, 0, 1, 3]]
    assert np.isnan(scores[0, 2])
    with pytest.warns(UserWarning, match="no numbers .NaN. and rank last"):
        found = evaluate(TableScorer(table), split_of([[]], [[4]], 5), k=1, metrics="hit")
    assert found.mean["hit@1"] == 1


def test_items_that_were_seen_are_not_recommended():
    items, _ = item_lists(
        TableScorer([[5, 4, 3, 2], [5, 4, 3, 2]]), interactions([[0, 2], [1]], 4), np.array([1, 0]), 2
    )
    assert items.tolist() == [[0, 2], [1, 3]]


def test_a_user_who_saw_everything_gets_an_empty_list():
    items, scores = item_lists(TableScorer([[1, 2]]), interactions([[0, 1]], 2), np.array([0]), 2)
    assert items.tolist() == [[-1, -1]]
    assert np.isnan(scores).all()


def test_no_users_get_no_recommendations():
    items, scores = item_lists(TableScorer([[1, 2]]), interactions([[0]], 2), np.array([], dtype=int), 2)
    assert items.shape == scores.shape == (0, 2)


def test_one_user_and_one_item_are_enough():
    report = evaluate(TableScorer([[0.0]]), split_of([[]], [[0]], 1), k=1)
    assert report.mean["precision@1"] == report.mean["ndcg@1"] == report.mean["coverage@1"] == 1.0
    assert math.isnan(report.mean["auc"])  # there is no negative to compare with
    assert all(math.isnan(end) for end in report.interval("ndcg@1"))
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["mean"]["auc"] is None


def test_validation_is_masked_at_test_time_and_test_items_compete_at_validation_time():
    split = split_of(train=[[0]], test=[[2]], n_items=4, validation=[[1]])
    scorer = TableScorer([[9, 8, 7, 6]])
    assert evaluate(scorer, split, k=1).mean["precision@1"] == 1.0
    assert evaluate(scorer, split, k=1, part="validation").mean["precision@1"] == 1.0
    worse = TableScorer([[9, 7, 8, 6]])  # the test item outranks the validation item
    assert evaluate(worse, split, k=1, part="validation").mean["precision@1"] == 0.0


def test_keys_are_named_metric_at_k(larger):
    table, split = larger
    report = evaluate(TableScorer(table), split, k=(20, 5), metrics=("auc", "ndcg", "coverage"))
    assert list(report.mean) == ["ndcg@5", "ndcg@20", "coverage@5", "coverage@20", "auc"]
    assert report.per_user.columns == ["user", "ndcg@5", "ndcg@20", "auc"]
    assert report.mean["ndcg@20"] == pytest.approx(report.per_user["ndcg@20"].mean())


def test_a_subset_of_metrics_has_the_values_of_all(larger):
    table, split = larger
    every = evaluate(TableScorer(table), split)
    assert evaluate(TableScorer(table), split, k=20, metrics="ndcg").mean == {"ndcg@20": every.mean["ndcg@20"]}
    assert evaluate(TableScorer(table), split, metrics="auc").mean == {"auc": every.mean["auc"]}


def test_interval_is_a_t_interval_over_users():
    split = split_of([[], [], []], [[0], [0], [1]], 3)
    report = evaluate(TableScorer([[3, 2, 1]] * 3), split, k=1)  # precision 1, 1, 0
    low, high = report.interval("precision@1")
    assert (low, high) == pytest.approx((2 / 3 - 4.302653 / 3, 2 / 3 + 4.302653 / 3), abs=1e-5)
    narrow = report.interval("precision@1", level=0.5)
    assert low < narrow[0] < narrow[1] < high


def test_coverage_has_no_interval(larger):
    table, split = larger
    report = evaluate(TableScorer(table), split)
    with pytest.raises(InputError, match="coverage@20 has no interval"):
        report.interval("coverage@20")
    with pytest.raises(InputError, match="'ndcg@50' was not evaluated; this report has precision@5"):
        report.interval("ndcg@50")


def test_a_report_becomes_json_and_a_table(larger):
    table, split = larger
    report = evaluate(TableScorer(table), split, k=(5, 20))
    record = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert record["part"] == "test"
    assert record["n_users"] == 145
    assert record["mean"] == report.mean
    assert record["interval"]["map@20"] == list(report.interval("map@20"))
    lines = str(report).splitlines()
    assert lines[0] == "test: 145 users"
    assert lines[1].split() == ["@5", "@20"]
    assert f"{report.mean['recall@20']:.4f}" in str(report)
    assert repr(report) == str(report)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"k": (5, 301)}, "k must be at most the number of items 300, got 301"),
        ({"k": ()}, "k must name at least one list length"),
        ({"k": 2.5}, "k must be a whole number or several, got 2.5"),
        ({"k": True}, "k must be a whole number or several, got True"),
        ({"metrics": ("ndcg", "f1")}, "metrics must be of precision, recall, ndcg, .* got 'f1'"),
        ({"metrics": "ndcg@20"}, "list lengths go in k"),
        ({"metrics": ()}, "got none"),
        ({"part": "train"}, "part must be 'test' or 'validation', got 'train'"),
        ({"chunk": 0}, "chunk must be at least 1, got 0"),
    ],
)
def test_wrong_options_are_named(larger, options, message):
    table, split = larger
    with pytest.raises(InputError, match=message):
        evaluate(TableScorer(table), split, **options)


def test_auc_alone_ignores_k():
    assert evaluate(TableScorer([[1, 0]]), split_of([[]], [[0]], 2), metrics="auc").mean == {"auc": 1.0}


def test_a_split_without_validation_cannot_be_validated():
    with pytest.raises(InputError, match="this split has none"):
        evaluate(TableScorer([[1, 0]]), split_of([[]], [[0]], 2), k=1, part="validation")


def test_an_empty_part_cannot_be_evaluated():
    with pytest.raises(InputError, match="the test part is empty"):
        evaluate(TableScorer([[1, 0]]), split_of([[0]], [[]], 2), k=1)


def test_a_scorer_of_other_data_is_refused():
    with pytest.raises(InputError, match="scores 1 users and 3 items, the data has 1 and 2"):
        evaluate(TableScorer([[1, 0, 2]]), split_of([[]], [[0]], 2), k=1)


def test_a_test_item_that_is_masked_is_excluded_once():
    both = interactions([[0]], 3)
    scores, users = np.array([[1, 0, 2]], dtype=np.float32), np.arange(1)
    pairs = both.indptr, both.indices
    assert top_k(scores, users, *pairs, 2).tolist() == [[2, 1]]
    ordered, n_negatives = count_ordered_pairs(scores, users, *pairs, *pairs)
    assert ordered.tolist() == [1.0]
    assert n_negatives.tolist() == [2]


def test_pairs_are_counted_only_where_the_auc_is_asked_for(larger, monkeypatch):
    table, split = larger
    monkeypatch.setattr(ranking, "count_ordered_pairs", None)
    others = [metric for metric in ranking.METRICS if metric != "auc"]
    assert evaluate(TableScorer(table), split, metrics=others).mean["ndcg@20"] > 0


@given(st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=4))
@settings(deadline=None)
def test_label_kernels_agree_with_sets(rows):
    data = interactions([sorted(row) for row in rows], 12)
    users, items = np.repeat(np.arange(len(rows)), 13), np.tile(np.arange(-1, 12), len(rows))
    found = lookup.contains(data.indptr, data.indices, users, items)
    assert found.tolist() == [item in rows[user] for user, item in zip(users, items, strict=True)]


def test_of_very_many_users_a_sample_is_evaluated_and_said(monkeypatch, capsys):
    split = bn.split(bn.synthetic(60, 40, seed=0), test=0.3, seed=0)
    everyone = bn.fit(bn.baselines.MostPopular(), split, progress=False)
    n = len(everyone.evaluate().user_ids)
    monkeypatch.setattr("bayesneg.evaluation.ranking.MOST_SCORES", 10 * 40)
    run = bn.fit(bn.baselines.MostPopular(), split, progress=False)
    report = run.evaluate()
    assert (report.n_users, report.n_users_not_evaluated) == (10, n - 10)
    assert str(report).endswith(f"drawn at random of {n} users")
    assert f"drawn at random of {n} users" in report._repr_html_()
    assert run.record.data["n_users_not_evaluated"] == n - 10
    assert report.values["ndcg@5"].tolist() == bn.evaluate(run.scorer, split, k=5, sample=10).values["ndcg@5"].tolist()
    assert bn.evaluate(run.scorer, split, k=5, sample=n).n_users_not_evaluated == 0
    show_run(run.record)
    assert f"{n - 10} users with test interactions were not evaluated" in capsys.readouterr().err
