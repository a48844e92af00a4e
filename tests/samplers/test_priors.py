"""Priors in worlds whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.samplers.priors.calibration_curves import MIN_POOL, HiddenCurve, IsotonicCurve, LogisticCurve, pooled
from bayesneg.samplers.priors.cross_fitting import folds_of, unobserved_pairs
from bayesneg.samplers.priors.exposure import matched
from bayesneg.samplers.priors.rates import shrinkage
from worlds import interactions, random_interactions


@pytest.fixture(scope="module")
def world():
    return bn.split(bn.synthetic(400, 150, seed=2), test=0.2, seed=0)


def unobserved(split) -> tuple[np.ndarray, np.ndarray]:
    users, items = np.indices((split.train.n_users, split.train.n_items))
    outside = ~split.train.contains(users, items)
    return users[outside], items[outside]


# ---- cross-fitting


def test_every_pair_is_hidden_once(world):
    hidden = np.zeros(len(world.train), dtype=int)
    for seen, held_out in folds_of(world.train, 3, np.random.default_rng(0)):
        assert len(seen) + len(held_out) == len(world.train)
        assert not seen.contains(held_out.users, held_out.indices).any()
        hidden += held_out.contains(world.train.users, world.train.indices)
    assert (hidden == 1).all()


@pytest.mark.parametrize("most", [10**9, 5_000])
def test_sampled_pairs_represent_all_unobserved_pairs(world, most):
    seen, hidden = world.train, world.test
    pairs = unobserved_pairs(seen, hidden, np.random.default_rng(0), most=most)
    assert not seen.contains(pairs.users, pairs.items).any()
    np.testing.assert_array_equal(hidden.contains(pairs.users, pairs.items), pairs.hidden)
    assert pairs.hidden.sum() == len(hidden)
    assert pairs.weights.sum() == pytest.approx(400 * 150 - len(seen))
    assert (np.diff(pairs.users) >= 0).all()


# ---- curves


def test_the_isotonic_curve_is_the_pool_of_adjacent_violators(monkeypatch):
    monkeypatch.setattr("bayesneg.samplers.priors.calibration_curves.MIN_POOL", 1)
    scores = np.array([1.0, 2.0, 3.0, 4.0])
    curve = IsotonicCurve.fitted(scores, np.array([False, True, False, True]), np.array([1.0, 1.0, 3.0, 1.0]))
    np.testing.assert_allclose(curve(scores), [0.0, 0.25, 0.25, 1.0])  # 2 and 3 in the wrong order: (1·1 + 3·0) / 4
    np.testing.assert_allclose(curve(np.array([-9.0, 3.5, 9.0])), [0.0, 0.625, 1.0])


def test_no_single_pair_gives_a_probability_of_one():
    scores, hidden = np.arange(1000.0), np.arange(1000) == 999
    assert IsotonicCurve.fitted(scores, hidden, np.ones(1000))(np.array([1e9]))[0] <= 1 / MIN_POOL


@pytest.mark.parametrize("n_pairs", [1, 31, 33, 63, 64, 1000])
@pytest.mark.parametrize("n_scores", [1, 3, 40, 10**6])
def test_a_pool_has_enough_pairs_and_no_score_is_in_two(n_pairs, n_scores):
    rng = np.random.default_rng(n_pairs)
    scores, weights = rng.integers(0, n_scores, n_pairs).astype(float), rng.random(n_pairs) + 0.5
    means, shares, sums = pooled(scores, np.ones(n_pairs, bool), weights)
    assert (np.diff(means) > 0).all()
    np.testing.assert_allclose(shares, 1.0)
    assert sums.sum() == pytest.approx(weights.sum())
    counts = pooled(scores, np.ones(n_pairs, bool), np.ones(n_pairs))[2]
    assert counts.min() >= min(MIN_POOL, n_pairs)
    assert len(counts) <= len(np.unique(scores))


def test_pairs_of_equal_score_get_one_probability():
    hidden = np.random.default_rng(0).random(1000) < 0.3
    curve = IsotonicCurve.fitted(np.zeros(1000), hidden, np.ones(1000))
    assert curve(np.zeros(1))[0] == pytest.approx(hidden.mean())


def test_both_curves_find_the_truth_behind_the_scores():
    rng = np.random.default_rng(0)
    scores = rng.normal(0.3, 0.2, 200_000)
    truth = 1 / (1 + np.exp(-(2 * np.arcsinh(scores / 0.05) - 6)))
    for kind in (IsotonicCurve, LogisticCurve):
        found = kind.fitted(scores, rng.random(200_000) < truth, np.ones(200_000))(scores)
        assert np.abs(found - truth).mean() < 0.007
    assert found.mean() == pytest.approx(truth.mean(), rel=0.02)


def test_truly_hidden_positives_were_labelled_negative_in_the_folds():
    """Of 100 pairs at a score 10 are the fold's and, at half as many, 5 truly hidden: 5 of 90 once the fold is seen."""
    curve = HiddenCurve(lambda scores: np.where(scores == 6.0, 0.1, 0.9), factor=0.5, scale=2.0)
    np.testing.assert_allclose(curve(np.array([3.0, 4.0])), [5 / 90, 1.0])  # never more than certain


# ---- the learned prior


def test_it_is_calibrated_where_it_was_not_fitted(world):
    """The part of training that outer judging hides was never seen by the inner cross-fitting."""
    found = bn.priors.calibration(bn.priors.Learned(l2=100.0), world.train, bins=5)
    assert found.predicted_rate == pytest.approx(found.base_rate, rel=0.25)
    assert found.skill > bn.priors.calibration(bn.priors.Rate(), world.train).skill > 0.0
    np.testing.assert_allclose(found.mean_predicted, found.observed_rate, atol=0.08)


def test_held_out_pairs_have_higher_probabilities(world):
    users, items = unobserved(world)
    truth = world.test.contains(users, items)
    means = {}
    for name, prior in (("learned", bn.priors.Learned(l2=100.0)), ("rate", bn.priors.Rate())):
        found = prior.fit(world.train).probability(users, items)
        means[name] = found[truth].mean() / found[~truth].mean()
    assert means["learned"] > means["rate"] > 1.0


@pytest.mark.parametrize("curve", ["isotonic", "logistic"])
@pytest.mark.parametrize("hidden", [0.1, 0.25, 0.5])
def test_hidden_sets_the_expected_number_of_hidden_positives(world, hidden, curve):
    users, items = unobserved(world)
    found = bn.priors.Learned(hidden=hidden, l2=100.0, curve=curve).fit(world.train).probability(users, items)
    assert found.sum() == pytest.approx(hidden * len(world.train), rel=0.15)


@pytest.mark.parametrize(
    ("model", "folds"), [("ease", 5), ("ease", 10), ("neighbours", 5), ("neighbours", 10), ("rp3beta", 5), ("gfcf", 5)]
)
def test_given_the_ratio_it_is_calibrated_for_any_number_of_folds(world, model, folds):
    prior = bn.priors.Learned(item_model=model, folds=folds, hidden=0.25, l2=100.0)
    found = bn.priors.calibration(prior, world.train, share=0.2, bins=5)
    assert found.predicted_rate == pytest.approx(found.base_rate, rel=0.15)
    np.testing.assert_allclose(found.mean_predicted, found.observed_rate, rtol=0.3, atol=0.001)


def test_a_held_out_pair_is_never_seen_by_the_vectors_that_score_it(world):
    """The vectors of ALS would score a pair that they were fitted to far too high."""
    prior = bn.priors.Learned(item_model="als", dim=8, regularization=5.0)
    found = bn.priors.calibration(prior, world.train, bins=5)
    assert found.predicted_rate == pytest.approx(found.base_rate, rel=0.25)
    assert found.skill > bn.priors.calibration(bn.priors.Rate(), world.train).skill
    np.testing.assert_allclose(found.mean_predicted, found.observed_rate, atol=0.08)


@pytest.mark.parametrize("model", ["ease", "neighbours"])
def test_the_cache_changes_no_number(world, model):
    users = np.random.default_rng(0).integers(400, size=(90, 1))
    items = np.random.default_rng(1).integers(150, size=(90, 7))
    kept, computed = (
        bn.priors.Learned(item_model=model, cache=cache).fit(world.train).probability(users, items)
        for cache in (256, 0)
    )
    np.testing.assert_array_equal(kept, computed)


def test_rows_are_cached_only_if_all_of_them_fit(world):
    assert bn.priors.Learned(cache=1).fit(world.train).rows is not None  # 400 · 150 · 4 bytes
    assert bn.priors.Learned(cache=1).fit(interactions([[0, 1], [1, 2]] * 300, 500)).rows is None  # 1.2 MB


def test_rows_of_a_low_rank_model_are_not_cached_since_they_differ_from_pairs_in_the_last_bit():
    train = interactions([[0, 1, 8999], [0, 1, 2], [0, 2, 8999]], 9000)
    assert bn.priors.Learned(item_model="ease", folds=2).fit(train).rows is None


def test_the_seeds_of_a_comparison_share_what_was_learned(world):
    prior = bn.priors.Learned(folds=2)
    assert prior.fit(world.train) is prior.fit(world.train)
    other = prior.fit(world.test)
    assert other is not prior.fit(world.train)


def test_ease_of_low_rank_can_be_asked_for():
    train = bn.synthetic(60, 50, seed=0)
    dense, same, narrow = (
        bn.priors.Learned(item_model="ease", solver=solver).fit(train).model for solver in ("auto", "dense", "low-rank")
    )
    assert (dense.kind, same.kind, narrow.kind) == ("dense", "dense", "low-rank")


def test_a_learned_prior_of_other_data_is_refused(world):
    with pytest.raises(InputError, match="fitted to other training data"):
        bn.priors.Learned(folds=2).fit(world.train).fit(world.test)


def test_a_large_catalogue_is_learned_from_neighbours():
    train = interactions([[0, 1, 8999], [0, 1, 2], [0, 2, 8999]] * 20, 9000)
    assert bn.priors.Learned().fit(train).model.kind == "neighbours"
    assert bn.priors.Learned().fit(interactions([[0, 1], [0, 2], [1, 2]] * 20, 9)).model.kind == "dense"


# ---- rates and groups


def test_the_rate_prior_expects_as_many_hidden_positives_as_it_is_told():
    train = interactions([[0, 1], [0], [0, 2], [0]], 4)
    found = bn.priors.Rate(hidden=0.5).fit(train).probability(np.zeros((1, 1), int), np.arange(4))
    np.testing.assert_allclose(found, [[1.0, 0.5 * 1 / 3, 0.5 * 1 / 3, 0.0]])  # of three users one half


def test_the_rate_prior_is_the_share_of_hidden_positives_among_unobserved_pairs():
    """Popular items have few unobserved pairs, among which the hidden positives are many."""
    rng = np.random.default_rng(0)
    likes = rng.random((4000, 6)) < np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.9])
    seen = likes & (rng.random(likes.shape) < 0.8)
    train = interactions([np.flatnonzero(row).tolist() for row in seen], 6)
    found = bn.priors.Rate(hidden=0.25).fit(train).probability(np.zeros(1, int), np.arange(6))
    np.testing.assert_allclose(found, (likes & ~seen).sum(axis=0) / (~seen).sum(axis=0), rtol=0.1)


def grouped(rates: np.ndarray, size: int, rng: np.random.Generator):
    """Groups of ``size`` users who interact with items at the rates (n_groups, n_items)."""
    rows = [np.flatnonzero(rng.random(rates.shape[1]) < rates[g]).tolist() for g in np.repeat(range(len(rates)), size)]
    column = np.repeat([f"g{g}" for g in range(len(rates))], size)
    return interactions(rows, rates.shape[1], user_columns={"job": column})


def test_the_shrinkage_is_found_from_how_much_groups_differ():
    rng = np.random.default_rng(0)
    overall, a = rng.uniform(0.05, 0.5, 400), 15.0
    rates = rng.beta(a * overall, a * (1 - overall), (40, 400))
    sizes = np.full((40, 1), 30)
    counts = rng.binomial(30, rates)
    assert shrinkage(counts, sizes, counts.sum(axis=0) / 1200) == pytest.approx(a, rel=0.1)


@pytest.mark.parametrize("sizes", [[300, 100], [50, 20]])
@pytest.mark.parametrize("a", [3.0, 15.0])
def test_the_shrinkage_is_found_from_two_unequal_groups(a, sizes):
    """The overall rate comes from the same counts, which with few groups is most of what they differ by."""
    rng, sizes = np.random.default_rng(0), np.array(sizes)[:, None]
    overall = rng.uniform(0.05, 0.5, 20_000)
    counts = rng.binomial(sizes, rng.beta(a * overall, a * (1 - overall), (2, 20_000)))
    assert shrinkage(counts, sizes, counts.sum(axis=0) / sizes.sum()) == pytest.approx(a, rel=0.08)


def test_groups_that_do_not_differ_get_the_overall_rate():
    train = grouped(np.tile(np.linspace(0.1, 0.6, 50), (5, 1)), 40, np.random.default_rng(0))
    smooth, plain = (
        prior.fit(train).probability(np.arange(200)[:, None], np.arange(50))
        for prior in (bn.priors.SmoothedGroup("job"), bn.priors.Rate())
    )
    np.testing.assert_allclose(smooth, plain, atol=0.01)


def test_a_small_group_is_shrunk_more_than_a_large_one():
    one, other = [[0]] * 40 + [[1]] * 20, [[0]] * 20 + [[1]] * 40  # two thirds here, one third there
    train = interactions([*one, *other, [1]], 2, user_columns={"job": np.repeat(["a", "b", "c"], [60, 60, 1])})
    odds = (
        bn.priors.SmoothedGroup("job", hidden=0.1).fit(train).probability(np.array([[0], [60], [120]]), np.array([1]))
    )
    found = odds / (0.1 + odds)  # the rate r whose hidden · r / (1 − r) it is
    overall = train.popularity[1] / 121
    assert 1 / 3 < found[0, 0] < overall < found[1, 0] < 2 / 3  # each group is shrunk towards the overall rate
    assert overall < found[2, 0] < 0.7  # the one user of the third decides little: its group's rate is 1


# ---- exposure


def test_rejected_pairs_are_less_probable_and_the_others_have_the_base_prior():
    train = interactions([[0], [1], [0, 1]], 4)
    prior = bn.priors.Exposure(interactions([[1], [], [3]], 4), base=bn.priors.Flat(0.5), seen=0.25).fit(train)
    found = prior.probability(np.arange(3)[:, None], np.arange(4))
    expected = np.full((3, 4), 0.5)
    expected[[0, 2], [1, 3]] = 0.2  # odds of 1, times a quarter
    np.testing.assert_allclose(found, expected)


def test_shown_pairs_are_matched_by_identifier():
    train = bn.Interactions.from_pairs(["a", "b", "b"], [7, 8, 9])
    shown = bn.Interactions.from_pairs(["b", "x", "a", "b"], ["9", "7", "8", "5"])
    found = matched(shown, train)
    pairs = [(train.user_ids[u], train.item_ids[i]) for u, i in zip(found.users, found.indices, strict=True)]
    assert sorted(pairs) == [("a", 8), ("b", 9)]


def test_shown_pairs_of_other_data_are_refused():
    train = bn.Interactions.from_pairs(["a", "b"], [7, 8])
    with pytest.raises(InputError, match="are the identifiers the same"):
        bn.priors.Exposure(bn.Interactions.from_pairs([1, 2], [3, 4])).fit(train)


# ---- combinations


def test_a_combination_on_the_logit_scale_and_of_probabilities():
    parts, where = [bn.priors.Flat(0.5), bn.priors.Flat(0.9)], (np.zeros((1, 1), int), np.zeros((1, 1), int))
    odds = np.sqrt(1 * 9)
    assert bn.priors.Combined(parts).probability(*where)[0, 0] == pytest.approx(odds / (1 + odds))
    assert bn.priors.Combined(parts, scale="probability").probability(*where)[0, 0] == pytest.approx(0.7)
    assert bn.priors.Combined(parts, weights=[3, 1], scale="probability").probability(*where)[0, 0] == pytest.approx(
        0.6
    )


@pytest.mark.parametrize("wrong", [1.5, -0.5, float("nan")])
def test_the_probability_of_a_part_is_checked(world, wrong):
    own = lambda users, items: np.full(np.broadcast_shapes(users.shape, items.shape), wrong)  # noqa: E731
    wrappings = [
        bn.priors.Combined([own, bn.priors.Flat(0.5)]),
        bn.priors.Scaled(own, 2.0),
        bn.priors.Exposure(world.test, base=own),
    ]
    for prior in wrappings:
        with pytest.raises(InputError, match=f"between 0 and 1, got {wrong}"):
            prior.probability(np.zeros((2, 1), int), np.zeros((2, 3), int))


def test_a_part_that_is_a_list_counts_and_weights_must_be_one():
    own = bn.priors.Scaled(lambda users, items: [0.5] * len(users), 3.0)
    np.testing.assert_allclose(own.probability(np.zeros(2, int), np.zeros(2, int)), [0.75, 0.75])
    with pytest.raises(InputError, match="weights must be a list of numbers, one for each prior, got 3"):
        bn.priors.Combined([bn.priors.Flat(), bn.priors.Rate()], weights=3)


def test_one_prior_cannot_overrule_all_others():
    sure = bn.priors.Combined([bn.priors.Flat(0.0), bn.priors.Flat(0.5)]).probability(
        np.zeros(1, int), np.zeros(1, int)
    )
    assert 0.0 < sure[0] < 1e-3


def test_a_scaled_prior_has_other_odds():
    found = bn.priors.Scaled(bn.priors.Flat(0.5), 3.0).probability(np.zeros((2, 1), int), np.zeros((2, 3), int))
    np.testing.assert_allclose(found, np.full((2, 3), 0.75))


def test_a_prior_with_a_part_that_uses_test_labels_says_so(world):
    oracle = bn.priors.Oracle(world.test)
    for prior in (bn.priors.Scaled(oracle), bn.priors.Combined([oracle]), bn.priors.Exposure(world.test, base=oracle)):
        assert prior.uses_test_labels
        assert bn.BNS(prior=prior).uses_test_labels
    assert not bn.priors.Scaled(bn.priors.Learned()).uses_test_labels


class Following(bn.priors.Flat):
    """A custom prior with one hook."""

    follows_training = True

    def end_epoch(self, scorer):
        return


@pytest.mark.parametrize("inner", [bn.priors.SelfEstimated(), Following(0.1)])
def test_a_prior_that_follows_training_cannot_be_a_part_of_another(world, inner):
    for wrap in (
        bn.priors.Scaled,
        lambda prior: bn.priors.Combined([bn.priors.Flat(), prior]),
        lambda prior: bn.priors.Exposure(world.test, base=prior),
    ):
        with pytest.raises(InputError, match=f"{type(inner).__name__} follows the model during training"):
            wrap(inner)


# ---- calibration


def test_the_calibration_of_a_right_and_of_a_wrong_rate(world):
    train = random_interactions(np.random.default_rng(0), 200, 100, most=0.2)
    rate = 0.2 * len(train) / (200 * 100 - 0.8 * len(train))
    right, wrong = (bn.priors.calibration(bn.priors.Flat(p), train) for p in (rate, 5 * rate))
    assert right.predicted_rate == pytest.approx(right.base_rate, rel=0.01)
    assert len(right.mean_predicted) == 1  # one probability, one bin
    assert right.skill == pytest.approx(0.0, abs=0.001)
    assert wrong.skill < -0.1
    assert wrong.ece == pytest.approx(4 * rate, rel=0.05)
    assert right.ece == pytest.approx(0.0, abs=0.001)
    assert wrong.predicted_rate == pytest.approx(5 * wrong.base_rate, rel=0.01)
    expected = -(right.base_rate * np.log(rate) + (1 - right.base_rate) * np.log(1 - rate))
    assert right.log_loss == pytest.approx(expected)
    assert right.log_loss < wrong.log_loss
    assert np.isfinite(bn.priors.calibration(bn.priors.Item(np.zeros(100)), train).log_loss)  # wrong and sure


def test_calibration_of_a_sample_agrees_with_that_of_all_pairs(world, monkeypatch):
    every = bn.priors.calibration(bn.priors.Rate(), world.train)
    monkeypatch.setattr("bayesneg.samplers.priors.cross_fitting.MOST_PAIRS", 20_000)
    sampled = bn.priors.calibration(bn.priors.Rate(), world.train)
    assert sampled.predicted_rate == pytest.approx(every.predicted_rate, rel=0.05)
    assert sampled.base_rate == pytest.approx(every.base_rate, rel=0.01)
    assert sampled.brier == pytest.approx(every.brier, rel=0.05)


def test_calibration_hides_labels_of_training_only(world):
    """A prior that answers with the test labels is not rewarded for them."""
    assert bn.priors.calibration(lambda users, items: world.test.contains(users, items) * 1.0, world.train).skill < 0.0


@pytest.mark.parametrize("wrap", [lambda prior: prior, bn.priors.Scaled], ids=["alone", "scaled"])
def test_the_calibration_of_a_prior_that_uses_test_labels_is_refused(world, wrap):
    with pytest.raises(InputError, match="uses test labels"):
        bn.priors.calibration(wrap(bn.priors.Oracle(world.test)), world.train)


def test_the_calibration_of_a_prior_that_needs_a_model_is_refused(world):
    with pytest.raises(InputError, match="SelfEstimated follows the model during training"):
        bn.priors.calibration(bn.priors.SelfEstimated(), world.train)


def test_calibration_never_shows_the_prior_the_truth(world):
    class Looking(bn.Prior):
        def fit(self, train):
            assert train.truth is None
            return bn.priors.Flat(0.1)

        def probability(self, users, items):
            raise AssertionError("it is fitted first")

    assert world.train.truth is not None
    bn.priors.calibration(Looking(), world.train)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bn.priors.Learned(folds=1), "folds must be a whole number of at least 2"),
        (lambda: bn.priors.Learned(item_model="svd"), "item_model must be one of"),
        (lambda: bn.priors.Learned(curve="step"), "curve must be one of"),
        (lambda: bn.priors.Learned(dim=0), "dim must be a whole number of at least 1"),
        (lambda: bn.priors.Learned(regularization=-1), "regularization must be a number of at least 0"),
        (lambda: bn.priors.Learned(confidence=0), "confidence must be a number above 0"),
        (lambda: bn.priors.Learned(beta=-1), "beta must be a number of at least 0"),
        (lambda: bn.priors.Learned(solver="sparse"), "solver must be one of auto, dense, low-rank"),
        (lambda: bn.priors.Learned(hidden=0), "hidden must be a number above 0"),
        (lambda: bn.priors.Learned().fit(interactions([[0], [1]], 4)), "its 5 folds .* only 2; give more data"),
        (lambda: bn.priors.Learned().probability(np.zeros(1), np.zeros(1)), "call prior.fit"),
        (lambda: bn.priors.Rate(hidden=-1), "hidden must be"),
        (lambda: bn.priors.SmoothedGroup("age").fit(interactions([[0]], 2)), "no user column 'age'"),
        (lambda: bn.priors.Exposure(interactions([[0]], 2), seen=2), "seen must be"),
        (lambda: bn.priors.Combined([]), "at least one prior"),
        (lambda: bn.priors.Combined(bn.priors.Rate()), "priors must be a list"),
        (lambda: bn.priors.Combined([bn.priors.Flat(0.1)], weights=[1, 2]), "one for each of 1 priors"),
        (lambda: bn.priors.Combined([bn.priors.Flat(0.1)], scale="log"), "scale must be"),
        (lambda: bn.priors.Scaled(bn.priors.Flat(0.1), 0), "strength must be"),
        (lambda: bn.priors.calibration(bn.priors.Flat(0.1), interactions([[0, 1]], 3), share=0), "share must be"),
        (lambda: bn.priors.calibration(bn.priors.Flat(0.1), interactions([[0]], 3)), "leaves none to hide"),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_wrong_types_are_named(world):
    with pytest.raises(InputError, match="rejected must be interactions, got str"):
        bn.priors.Exposure("passed-over.csv")
    with pytest.raises(InputError, match="train must be interactions"):
        bn.priors.calibration(bn.priors.Rate(), world)


def test_data_without_unobserved_pairs_has_no_skill():
    everything = interactions([list(range(4))] * 3, 4)
    prior = bn.priors.Learned(curve="logistic", hidden=0.3).fit(everything)
    assert np.isfinite(prior.probability(np.zeros(4, dtype=int), np.arange(4))).all()
    assert np.isnan(bn.priors.calibration(bn.priors.Rate(), everything).skill)


def test_an_oracle_of_other_data_is_refused():
    """Compiled code would read past the end of its labels."""
    with pytest.raises(InputError, match=r"labels has 20 users and 30 items, the training data 40 and 50"):
        bn.priors.Oracle(bn.synthetic(20, 30, seed=0)).fit(bn.synthetic(40, 50, seed=0))
