"""BNS at its limits, where another sampler or a plain loop says what it must pick."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.models import mf
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.seeding import stream
from worlds import batch_of, compiled_choice, exact_scorer, fixed_scorer, interactions, random_interactions


@pytest.fixture(scope="module")
def trained():
    split = bn.split(bn.synthetic(200, 300, seed=1), test=0.2, seed=0)
    run = bn.fit(bn.MF(dim=8, learning_rate=0.05), split, bn.RNS(), epochs=15, progress=False)
    return split.train, run.scorer


def compiled(sampler, train, scorer, *, size=3000):
    batch = batch_of(train, scorer, stream(0, "draws"), size=size)
    ready = sampler.prepare(train, rng=stream(0, "memory"))
    return batch, compiled_choice(ready.rule(batch), ready.draws(batch), batch)[0]


def plain_argmin(user, positive, train, scores, popularity, weight):
    """The optimal sampler h* as a person would write it: every unobserved item, one after another."""
    observed = set(train.row(user).tolist())
    unobserved = [item for item in range(train.n_items) if item not in observed]
    best, least = None, None
    for item in unobserved:
        count = sum(1 for other in unobserved if scores[other] <= scores[item])
        F = count / (len(unobserved) + 1)
        p = popularity[item] / len(train)
        unbias = (1 - F) * (1 - p) / (1 - F - p + 2 * F * p)
        info = 1 - 1 / (1 + np.exp(float(scores[item]) - float(scores[positive])))
        risk = info * (1 - (1 + weight) * unbias)
        if least is None or risk < least:
            best, least = item, risk
    return best


@pytest.mark.parametrize("weight", [0.1, 5.0])
def test_with_all_candidates_bns_picks_the_argmin_that_a_plain_loop_finds(weight):
    rng = np.random.default_rng(2)
    train = random_interactions(rng, 20, 60, most=0.5)
    scorer = exact_scorer(rng, 20, 60)
    batch, negatives = compiled(bn.BNS(candidates="all", weight=weight), train, scorer, size=150)
    for user, positive, negative in zip(batch.users, batch.positives, negatives, strict=True):
        scores = scorer.score_all(np.array([user]))[0]
        expected = plain_argmin(user, positive, train, scores, train.popularity, weight)
        if expected != negative:  # equal only to rounding: then the risks must be equal, and the item number lower
            pytest.fail(f"user {user}: {negative} instead of {expected}")


def test_with_one_candidate_bns_is_rns(trained):
    np.testing.assert_array_equal(compiled(bn.BNS(candidates=1), *trained)[1], compiled(bn.RNS(), *trained)[1])


def test_with_one_candidate_bns_trains_the_same_model_as_rns(monkeypatch):
    split = bn.split(bn.synthetic(100, 120, seed=1), test=0.2, seed=0)
    bns, rns = (bn.fit(bn.MF(), split, s, epochs=3, progress=False) for s in (bn.BNS(candidates=1), bn.RNS()))
    np.testing.assert_array_equal(bns.scorer.users, rns.scorer.users)


def test_with_a_prior_of_zero_bns_is_dns(trained):
    bns, dns = bn.BNS(prior=bn.priors.Flat(0.0)), bn.DNS(candidates=5)
    np.testing.assert_array_equal(compiled(bns, *trained)[1], compiled(dns, *trained)[1])


def test_with_the_flat_prior_and_a_large_weight_bns_picks_as_dns_does(trained):
    bns, dns = (compiled(s, *trained)[1] for s in (bn.BNS(prior=bn.priors.Flat(), weight=1e6), bn.DNS(candidates=5)))
    assert (bns == dns).mean() > 0.95


def test_the_oracle_avoids_what_it_knows_to_be_a_false_negative(trained):
    split = bn.split(bn.synthetic(200, 300, seed=1), test=0.2, seed=0)
    oracle = bn.BNS(prior=bn.priors.Oracle(split.held_out, positive=1.0, negative=0.0))
    batch, negatives = compiled(oracle, split.train, trained[1])
    plain = compiled(bn.BNS(), split.train, trained[1])[1]
    assert split.held_out.contains(batch.users, plain).mean() > 0.02
    assert split.held_out.contains(batch.users, negatives).mean() < 0.002  # only where all five are false


def test_the_schedule_is_called_at_every_epoch():
    asked = []

    def weight(epoch):
        asked.append(epoch)
        return 5.0

    split = bn.split(bn.synthetic(50, 60, seed=1), test=0.2, seed=0)
    bn.fit(bn.MF(dim=2), split, bn.BNS(weight=weight), epochs=3, progress=False)
    assert {1, 2, 3} <= set(asked)


def test_warm_start_is_rns_first_and_bns_then(trained):
    sampler = bn.WarmStart(bn.RNS(), bn.BNS(), warmup=2).prepare(trained[0], rng=stream(0, "memory"))
    batches = [batch_of(*trained, stream(0, "draws"), size=1, epoch=epoch) for epoch in (1, 2, 3)]
    kinds = [type(sampler.rule(batch)).__name__ for batch in batches]
    assert kinds == ["TakeFirst", "TakeFirst", "LeastRisk"]


def test_prior_functions_get_dense_numbers_that_match(trained):
    train, scorer = trained
    seen = []

    def prior(users, items):
        seen.append((users.shape, items.shape))
        return np.full(items.shape, 0.01)

    compiled(bn.BNS(prior=prior), train, scorer, size=10)
    assert seen == [((10, 5), (10, 5))]


@pytest.mark.parametrize("wrong", [np.nan, -0.1, 1.1, np.inf])
def test_values_outside_0_and_1_are_refused_as_a_prior(trained, wrong):
    sampler = bn.BNS(prior=lambda users, items: np.full(items.shape, wrong))
    with pytest.raises(InputError, match="prior must be a probability between 0 and 1"):
        compiled(sampler, *trained, size=10)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bn.BNS(candidates=0), "candidates must be a whole number of at least 1"),
        (lambda: bn.BNS(candidates=2.5), "candidates must be a whole number"),
        (lambda: bn.BNS(weight=-1), "weight must be"),
        (lambda: bn.BNS(weight=np.nan), "weight must be"),
        (lambda: bn.BNS(cdf_over="some"), "cdf_over must be"),
        (lambda: bn.BNS(prior=3), "prior must be"),
        (lambda: bn.BNS(prior=bn.priors.Flat(1.5)), "between 0 and 1"),
        (lambda: bn.DNS(candidates=2, top=3), "top must be between 1 and candidates"),
        (lambda: bn.AOBPR(scale=0), "scale must be"),
        (lambda: bn.AOBPR(fraction=2), "fraction must be"),
        (lambda: bn.AOBPR(rank="best"), "rank must be"),
        (lambda: bn.PNS(power=np.nan), "power must be"),
        (lambda: bn.SRNS(memory=0), "memory must be a whole number of at least 1"),
        (lambda: bn.SRNS(memory=2.5), "memory must be a whole number"),
        (lambda: bn.AOBPR(scale="5"), "scale must be a number above 0"),
        (lambda: bn.BNS(weight="heavy"), "weight must be a number, linear, or"),
        (lambda: bn.BNS(weight="linear/1/2"), "weight must be a number, linear, or"),
        (lambda: bn.BNS(prior="best"), "prior must be one of flat, group, .*, got 'best'"),
        (lambda: bn.BNS(prior="oracle"), "the prior 'oracle' needs settings; give an object, bn.priors.Oracle"),
        (lambda: bn.DNS(candidates=3, top=1.5), "top must be a whole number"),
        (lambda: bn.WarmStart(bn.RNS(), bn.BNS(), warmup=2.5), "warmup must be a whole number"),
        (lambda: bn.priors.Item(np.full((2, 2), 0.1)), "one probability per item"),
        (lambda: bn.SRNS(temperature=0), "temperature must be"),
        (lambda: bn.WarmStart(bn.RNS(), bn.BNS(), warmup=-1), "warmup must be"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_rule(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_the_group_prior_depends_on_the_user_s_group():
    columns = {"job": np.array(["a", "a", "b", "b"], dtype=object)}
    train = interactions([[0, 1], [0], [1], [2]], 3, user_columns=columns)
    prior = bn.priors.Group("job").fit(train)
    # item 0: counts a=2, b=0, mean 1, max 2; pop/N = 2/5
    assert prior.probability(np.array([0]), np.array([0])) == pytest.approx(2 / 5 * (1 + (2 - 1) / 2))
    assert prior.probability(np.array([2]), np.array([0])) == pytest.approx(2 / 5 * (1 + (0 - 1) / 2))
    # item 1: counts a=1, b=1, mean 1, max 1; item 2: a=0, b=1, mean ½, max 1; pop/N = 1/5
    assert prior.probability(np.array([0]), np.array([1])) == pytest.approx(2 / 5)
    assert prior.probability(np.array([3]), np.array([2])) == pytest.approx(1 / 5 * (1 + (1 - 0.5) / 1))
    with pytest.raises(InputError, match=r"no user column 'town'.*it has: job"):
        bn.priors.Group("town").fit(train)


def test_popularity_prior_is_the_share_of_training_interactions():
    train = interactions([[0, 1], [0], [1], [2]], 4)
    prior = bn.priors.Popularity().fit(train)
    np.testing.assert_allclose(prior.probability(np.array([0]), np.arange(4)), [2 / 5, 2 / 5, 1 / 5, 0])


def test_oracle_prior_is_the_squared_distance_of_the_label():
    labels = interactions([[2], [0]], 3)
    prior = bn.priors.Oracle(labels)
    np.testing.assert_allclose(
        prior.probability(np.array([[0], [1]]), np.arange(3)), [[0.04, 0.04, 0.64], [0.64, 0.04, 0.04]]
    )
    assert bn.BNS(prior=prior).uses_test_labels
    assert not bn.BNS().uses_test_labels


def test_blocks_do_not_change_what_bns_of_all_picks(monkeypatch):
    """All candidates, no chance: a block of one example and one of many must train the same factors."""
    split = bn.split(bn.synthetic(60, 80, seed=1), test=0.2, seed=0)
    ends = []
    for block in (1, 1000):
        monkeypatch.setattr(mf, "BLOCK", block)
        ends.append(bn.fit(bn.MF(dim=4), split, bn.BNS(candidates="all"), epochs=1, progress=False).scorer.users)
    np.testing.assert_array_equal(*ends)


def test_a_group_prior_refuses_a_column_with_too_many_values():
    columns = {"name": np.array([f"n{user}" for user in range(1200)], dtype=object)}
    train = interactions([[0]] * 1200, 3, user_columns=columns)
    with pytest.raises(InputError, match="1,200 different values"):
        bn.priors.Group("name").fit(train)


def test_the_items_that_f_counts_can_change_the_choice():
    """Two candidates; as a share of all items F of the harder one falls below the observed high scorers: it is taken.

    Where the observed items score low instead, they push it up again if they are counted.
    """
    train = interactions([[0, 1, 2, 3]], 6)  # unobserved: item 4 (score 3) and item 5 (score 2)

    def picked(observed_scores):
        scorer = fixed_scorer(np.array([[*observed_scores, 3.0, 2.0]]))
        batch = replace(batch_of(train, scorer, stream(0, "draws"), size=1), positives=np.array([0], np.int32))
        for over in ("unobserved", "catalogue", "all"):
            sampler = bn.BNS(candidates="all", prior=bn.priors.Flat(0.4), weight=1.0, cdf_over=over)
            ready = sampler.prepare(train, rng=stream(0, "memory"))
            yield compiled_choice(ready.rule(batch), ready.draws(batch), batch)[0][0]

    # unobserved: F = 2/3, 1/3 → unbias 3/7, 3/4; catalogue and all: F = 2/7, 1/7 → unbias 15/19, 9/10
    assert list(picked([9.0, 8.0, 7.0, 6.0])) == [5, 4, 4]
    # all: F = 5/7, 4/7 → unbias 3/8, 9/17
    assert list(picked([9.0, 1.0, 1.0, 1.0])) == [5, 4, 5]


@pytest.mark.parametrize(("epoch", "alpha"), [(1, 0.0), (26, 2.5), (51, 5.0), (80, 5.0)])
def test_srns_increases_the_weight_of_the_variance_over_the_warm_up(trained, epoch, alpha):
    ready = bn.SRNS().prepare(trained[0], rng=stream(0, "memory"))
    assert ready.rule(batch_of(*trained, stream(0, "draws"), size=1, epoch=epoch)).variance_weight == alpha


def test_srns_keeps_the_embeddings_of_the_last_five_epochs(trained):
    train, scorer = trained
    ready = bn.SRNS().prepare(train, rng=stream(0, "memory"))
    batch = batch_of(*trained, stream(0, "draws"), size=1)
    for epoch in range(1, 8):
        ready.end_epoch(epoch, EmbeddingScorer(np.full_like(scorer.users, epoch), scorer.items))
        rule = ready.rule(batch)
        assert rule.n_past == min(epoch, 5)
        assert sorted(rule.past_users[: rule.n_past, 0, 0].tolist()) == list(range(max(1, epoch - 4), epoch + 1))


def test_the_variance_changes_the_training_of_srns():
    split = bn.split(bn.synthetic(100, 150, seed=1), test=0.2, seed=0)
    with_variance, without = (
        bn.fit(bn.MF(dim=4, learning_rate=0.05), split, sampler, epochs=4, progress=False).scorer.users
        for sampler in (bn.SRNS(), bn.SRNS(alpha=0.0))
    )
    assert not np.array_equal(with_variance, without)


def test_aobpr_by_factor_sorts_its_lists_again_after_a_period(trained):
    train, scorer = trained
    ready = bn.AOBPR(rank="factor").prepare(train, rng=stream(0, "memory"))
    batch = batch_of(train, scorer, stream(0, "draws"), size=10)
    rule = ready.rule(batch)
    assert rule.period == int(train.n_items * np.log(train.n_items))
    turned = EmbeddingScorer(scorer.users, -scorer.items)
    for clock, sorted_again in ((rule.period - 5, True), (rule.period + 5, False)):
        rule.orders[:] = np.argsort(-scorer.items.T, axis=1)
        rule.clock[0] = clock
        compiled_choice(rule, ready.draws(batch), batch_of(train, turned, stream(0, "draws"), size=10))
        assert np.array_equal(rule.orders[0], np.argsort(scorer.items[:, 0], kind="stable")) == sorted_again


class Careless:
    """A custom candidate draw that returns what it is told to."""

    def __init__(self, item, size=1):
        self.item, self.size = item, size

    def draw(self, users, size, *, train, rng):
        items = np.full((len(users), size), self.item)
        return items, np.full(len(users), self.size)


@pytest.mark.parametrize("sampler", [bn.RNS, bn.DNS, bn.BNS], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (Careless(10**9), "items from 0 to"),
        (Careless(-5), "items from 0 to"),
        (Careless(0, size=99), "sizes from 0 to"),
        (Careless(0.5), "whole numbers"),
    ],
)
def test_a_wrong_custom_draw_never_reaches_compiled_code(trained, sampler, draw, words):
    with pytest.raises(InputError, match=words):
        compiled(sampler(draw=draw), *trained, size=10)


def test_a_draw_of_training_positives_is_refused():
    train = interactions([[0], [0, 1]], 4)
    batch = batch_of(train, exact_scorer(np.random.default_rng(0), 2, 4), stream(0, "draws"))
    with pytest.raises(InputError, match="draw gave a training item"):
        bn.RNS(draw=Careless(0)).draws(batch)
