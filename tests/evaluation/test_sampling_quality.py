"""TNR and INF by hand, and the expectation of uniform sampling against uniform sampling itself."""

from __future__ import annotations

import doctest
import math
from dataclasses import replace

import numpy as np
import pytest

from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.evaluation import sampling_quality
from bayesneg.evaluation.sampling_quality import SamplingQuality
from bayesneg.interfaces import NO_NEGATIVE, Sampled


class TableTruth:
    """Likes read from a table; remembers the most pairs it was asked about at once."""

    def __init__(self, table):
        self.table = table
        self.most = 0

    def likes(self, users, items):
        answer = self.table[users, items]
        self.most = max(self.most, answer.size)
        return answer


def make_split(train, held_out, truth=None, validation=None):
    """A split from boolean tables (n_users, n_items)."""
    n_users, n_items = train.shape
    every = Interactions.from_numbers(
        *np.nonzero(np.ones_like(train)),
        user_ids=np.arange(n_users),
        item_ids=np.arange(n_items),
        truth=truth,
    )
    part = {name: every.select(table.ravel()) for name, table in {"train": train, "test": held_out}.items()}
    return Split(**part, validation=None if validation is None else every.select(validation.ravel()))


def sampled(users, negatives, info):
    return Sampled(np.array(users, np.int32), np.array(negatives, np.int32), np.array(info, np.float32))


#                       items: 0  1  2  3
TRAIN = np.array([[1, 0, 0, 0], [0, 1, 0, 1]], dtype=bool)
TEST = np.array([[0, 1, 0, 0], [1, 0, 0, 0]], dtype=bool)
LIKES = np.array([[1, 1, 1, 0], [1, 1, 0, 1]], dtype=bool)


@pytest.fixture
def dense():
    """60 users × 40 items: one user has trained on everything, one on nothing; more is liked than held out."""
    rng = np.random.default_rng(3)
    train = rng.random((60, 40)) < rng.uniform(0.05, 0.9, size=(60, 1))
    train[0], train[1] = True, False
    test = ~train & (rng.random((60, 40)) < 0.2)
    likes = train & (rng.random((60, 40)) < 0.9) | test | (rng.random((60, 40)) < 0.2)
    return train, test, likes


def draw_uniformly(train, n_rounds, rng):
    """Every training example draws one unobserved item in each round; NO_NEGATIVE where there is none."""
    users = np.repeat(np.nonzero(train)[0], n_rounds)
    keys = np.where(train[users], -1.0, rng.random((len(users), train.shape[1])))
    items = np.where(train[users].all(axis=1), NO_NEGATIVE, keys.argmax(axis=1))
    return users, items


def test_examples_in_the_docstrings_hold():
    result = doctest.testmod(sampling_quality)
    assert result.attempted >= 5
    assert result.failed == 0


def test_tnr_and_inf_by_hand():
    quality = SamplingQuality(make_split(TRAIN, TEST))
    quality.add(sampled([0, 0, 1], [1, 2, 2], [0.5, 0.25, 0.125]))  # the first is held out: a false negative
    quality.add(sampled([1], [0], [0.75]))  # and so is this
    result = quality.result()
    assert result["tnr"] == 2 / 4
    assert result["inf"] == (-0.5 + 0.25 + 0.125 - 0.75) / 4
    assert result["skipped"] == 0


def test_of_several_negatives_each_counts_by_its_share_of_the_weights():
    """Two examples count alike, though one has three times the weight; a negative of weight 0 does not count."""
    data = Interactions.from_pairs([1, 1, 2, 2], ["a", "b", "a", "c"])
    quality = SamplingQuality(Split(train=data.select(data.indices == 0), test=data.select(data.indices > 0)))
    negatives = np.array([[1, 2], [1, 2], [1, 2]])  # user 1 likes item 1, user 2 item 2
    weights = np.array([[3.0, 1.0], [0.2, 0.6], [0.0, 0.0]])
    info = np.full((3, 2), 0.5)
    quality.add(Sampled(np.array([0, 1, 1]), negatives, info, weights, gradient=np.ones((3, 2))))
    found = quality.result()
    assert found["tnr"] == pytest.approx((0.25 + 0.25) / 2)
    assert found["inf"] == pytest.approx(0.5 * (0.25 - 0.75))
    assert found["skipped"] == 1
    assert quality.skipped == 1


def test_truth_has_more_false_negatives_than_the_held_out_part():
    quality = SamplingQuality(make_split(TRAIN, TEST, TableTruth(LIKES)))
    quality.add(sampled([0, 0, 1, 0], [1, 2, 2, 3], [0.5, 0.25, 0.125, 1.0]))
    result = quality.result()
    assert result["tnr"] == 3 / 4
    assert result["tnr_true"] == 2 / 4
    assert result["inf"] == (-0.5 + 0.25 + 0.125 + 1.0) / 4
    assert result["inf_true"] == (-0.5 - 0.25 + 0.125 + 1.0) / 4


def test_uniform_expectations_by_hand():
    # user 0 has 1 example and 3 unobserved items: 1 held out, 2 liked; user 1 has 2 and 2: 1 held out, 1 liked
    result = SamplingQuality(make_split(TRAIN, TEST, TableTruth(LIKES))).result()
    assert result["tnr_uniform"] == pytest.approx(1 - (1 * 1 / 3 + 2 * 1 / 2) / 3)
    assert result["tnr_uniform_true"] == pytest.approx(1 - (1 * 2 / 3 + 2 * 1 / 2) / 3)


def test_validation_items_are_false_negatives_too():
    validation = np.array([[0, 0, 1, 0], [0, 0, 0, 0]], dtype=bool)
    quality = SamplingQuality(make_split(TRAIN, TEST, validation=validation))
    quality.add(sampled([0, 0, 0], [1, 2, 3], [1, 1, 1]))
    assert quality.result()["tnr"] == pytest.approx(1 / 3)


def test_without_truth_there_is_no_true_rate():
    result = SamplingQuality(make_split(TRAIN, TEST)).result()
    assert set(result) == {"tnr", "inf", "gradient_fn", "tnr_uniform", "skipped"}


def test_skipped_examples_are_counted_and_nothing_else():
    quality = SamplingQuality(make_split(TRAIN, TEST, TableTruth(LIKES)))
    quality.add(sampled([0, 1, 1], [3, NO_NEGATIVE, NO_NEGATIVE], [0.5, np.nan, 0.9]))
    result = quality.result()
    assert result["skipped"] == 2
    assert result["tnr"] == result["tnr_true"] == 1.0
    assert result["inf"] == result["inf_true"] == 0.5


def test_an_epoch_without_picks_has_no_rate():
    quality = SamplingQuality(make_split(TRAIN, TEST))
    quality.add(sampled([0], [NO_NEGATIVE], [0.0]))
    assert math.isnan(quality.result()["tnr"])
    assert math.isnan(quality.result()["inf"])


def test_a_new_epoch_starts_from_nothing():
    quality = SamplingQuality(make_split(TRAIN, TEST))
    quality.add(sampled([0, 1], [1, NO_NEGATIVE], [1.0, 0.0]))
    quality.start_epoch()
    quality.add(sampled([0], [2], [0.5]))
    assert quality.result() == pytest.approx(
        {"tnr": 1.0, "inf": 0.5, "gradient_fn": 0.0, "skipped": 0, "tnr_uniform": 5 / 9}
    )


def test_blocks_do_not_change_the_result(dense):
    train, test, likes = dense
    users, items = draw_uniformly(train, 2, np.random.default_rng(0))
    info = np.random.default_rng(1).random(len(users)).astype(np.float32)
    whole, pieces = (SamplingQuality(make_split(train, test, TableTruth(likes))) for _ in range(2))
    whole.add(Sampled(users, items, info))
    for block in np.array_split(np.arange(len(users)), 7):
        pieces.add(Sampled(users[block], items[block], info[block]))
    assert pieces.result() == pytest.approx(whole.result(), rel=1e-12)


def test_means_are_taken_in_double_precision():
    quality = SamplingQuality(make_split(TRAIN, TEST))
    tiny = np.float32(0.1)
    for _ in range(3):
        quality.add(Sampled(np.zeros(2**20, np.int32), np.full(2**20, 3, np.int32), np.full(2**20, tiny)))
    assert quality.result()["inf"] == pytest.approx(float(tiny), rel=1e-12)


def test_uniform_expectation_is_what_uniform_sampling_shows(dense):
    train, test, likes = dense
    quality = SamplingQuality(make_split(train, test, TableTruth(likes)))
    users, items = draw_uniformly(train, 60, np.random.default_rng(5))
    quality.add(Sampled(users, items, np.ones(len(users), np.float32)))
    result = quality.result()
    error = 4 * 0.5 / math.sqrt(len(users))
    assert result["skipped"] == 60 * 40  # the user who has trained on everything
    assert result["tnr"] == pytest.approx(result["tnr_uniform"], abs=error)
    assert result["tnr_true"] == pytest.approx(result["tnr_uniform_true"], abs=error)
    assert result["tnr_uniform"] - result["tnr_uniform_true"] > 2 * error


def test_sampled_expectation_agrees_with_the_exact_one(dense, monkeypatch):
    train, test, likes = dense
    exact = SamplingQuality(make_split(train, test, TableTruth(likes))).result()["tnr_uniform_true"]
    monkeypatch.setattr(sampling_quality, "MOST_PAIRS", 0)
    monkeypatch.setattr(sampling_quality, "SAMPLE_SIZE", 100_000)
    values = [SamplingQuality(make_split(train, test, TableTruth(likes))).result()["tnr_uniform_true"] for _ in "ab"]
    assert values[0] == values[1] != exact
    assert values[0] == pytest.approx(exact, abs=4 * 0.5 / math.sqrt(100_000))


def test_truth_is_computed_in_chunks(dense, monkeypatch):
    train, test, likes = dense
    exact = SamplingQuality(make_split(train, test, TableTruth(likes))).result()["tnr_uniform_true"]
    monkeypatch.setattr(sampling_quality, "PAIRS_AT_ONCE", 130)
    truth = TableTruth(likes)
    split = make_split(train, test, truth)
    assert SamplingQuality(split).result()["tnr_uniform_true"] == exact
    assert truth.most == 3 * 40


@pytest.mark.parametrize("most_pairs", [0, 10**6])
def test_without_negatives_there_is_no_expectation(most_pairs, monkeypatch):
    monkeypatch.setattr(sampling_quality, "MOST_PAIRS", most_pairs)
    full = np.ones((2, 3), dtype=bool)
    quality = SamplingQuality(make_split(full, ~full, TableTruth(full)))
    assert math.isnan(quality.tnr_uniform)
    assert math.isnan(quality.tnr_uniform_true)


def test_truth_of_the_training_part_is_the_one_used():
    split = make_split(TRAIN, TEST)
    known = replace(split, train=replace(split.train, truth=TableTruth(LIKES)))
    assert "tnr_true" in SamplingQuality(known).result()
