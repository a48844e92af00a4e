"""BNS with a refreshed F: nearly the exact choice, by a stated rule, and recorded."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch
from bayesneg.kernels.reference.choices.posterior import LeastRisk, LeastRiskBySummary
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.samplers import bns
from bayesneg.samplers.posterior import refresh
from bayesneg.seeding import stream
from worlds import batch_of, compiled_choice, interactions


@pytest.fixture(scope="module")
def trained():
    split = bn.split(bn.synthetic(300, 900, seed=1), test=0.2, seed=0)
    run = bn.fit(bn.MF(learning_rate=0.05), split, bn.BNS(), epochs=12, progress=False)
    return split.train, run.scorer


def picks(sampler, train, scorer, *, made_on=None):
    """The compiled choices for the same draws, with summaries made on another state of the model where given."""
    batch = batch_of(train, scorer, stream(0, "draws"), size=6000)
    ready = sampler.prepare(train, rng=stream(0, "memory"))
    rule = ready.rule(batch if made_on is None else batch_of(train, made_on, stream(0, "draws"), size=6000))
    return compiled_choice(rule, ready.draws(batch_of(train, scorer, stream(0, "draws"), size=6000)), batch)[0]


@pytest.mark.parametrize("pool", [900, 256, 64])
def test_a_fresh_summary_makes_the_exact_choice_nearly_always(trained, pool):
    exact, dns = picks(bn.BNS(), *trained), picks(bn.DNS(candidates=5), *trained)
    refreshed = picks(bn.BNS(cdf="refreshed", refresh=bn.samplers.Refresh(pool=pool)), *trained)
    assert (refreshed == exact).mean() > 0.985
    assert (refreshed != exact).sum() < 0.4 * (dns != exact).sum()


def test_a_summary_scales_with_the_length_of_the_embedding(trained):
    scorer = trained[1]
    shorter = EmbeddingScorer(scorer.users / 3, scorer.items)
    now, before = (picks(bn.BNS(cdf="refreshed"), *trained, made_on=made_on) for made_on in (scorer, shorter))
    np.testing.assert_array_equal(now, before)


def test_with_a_prior_of_zero_refreshed_bns_is_dns(trained):
    bns_, dns = bn.BNS(prior=bn.priors.Flat(0.0), cdf="refreshed"), bn.DNS(candidates=5)
    np.testing.assert_array_equal(picks(bns_, *trained), picks(dns, *trained))


def test_auto_is_exact_for_a_small_catalogue_and_refreshed_for_a_large_one(monkeypatch):
    monkeypatch.setattr(bns, "EXACT_ITEMS", 40)
    for n_items, kind, named in ((40, LeastRisk, "exact"), (41, LeastRiskBySummary, "refreshed")):
        train = interactions([[0, 1], [2]], n_items)
        ready = bn.BNS(cdf="auto").prepare(train, rng=stream(0, "memory"))
        scorer = EmbeddingScorer(np.ones((2, 3), np.float32), np.ones((n_items, 3), np.float32))
        assert isinstance(ready.rule(batch_of(train, scorer, stream(0, "draws"))), kind)
        assert ready.cdf == named


@pytest.mark.parametrize("wrap", [lambda own: own, lambda own: bn.WarmStart(bn.RNS(), own)], ids=["bns", "warm start"])
def test_the_record_says_which_cdf_auto_is(monkeypatch, wrap):
    split = bn.split(bn.synthetic(40, 60, seed=1), test=0.2, seed=0)
    for most, named in ((60, "exact"), (59, "refreshed")):
        monkeypatch.setattr(bns, "EXACT_ITEMS", most)
        spec = bn.fit(bn.MF(dim=2), split, wrap(bn.BNS(cdf="auto")), epochs=1, progress=False).record.spec["sampler"]
        assert spec.get("then", spec)["cdf"] == named


def test_summaries_are_recomputed_only_where_an_embedding_has_moved(trained):
    train, scorer = trained
    ready = bn.BNS(cdf="refreshed", refresh=bn.samplers.Refresh(moved=0.1)).prepare(train, rng=stream(0, "memory"))
    first = ready.rule(batch_of(train, scorer, stream(0, "draws"))).knots.copy()
    users = scorer.users.copy()
    users[:10] *= 1.05
    users[10:20] *= 1.2
    moved = EmbeddingScorer(users, scorer.items + np.float32(0.01))
    second = ready.rule(batch_of(train, moved, stream(0, "draws"))).knots.copy()
    changed = (first != second).any(axis=1)
    assert changed[10:20].all()
    assert not changed[:10].any()
    assert not changed[20:].any()
    third = ready.rule(batch_of(train, moved, stream(0, "draws"), epoch=2)).knots
    assert (third != second).any(axis=1).sum() > 250  # a new epoch


def test_two_threads_train_with_a_refreshed_f():
    split = bn.split(bn.synthetic(200, 300, seed=1), test=0.2, seed=0)
    one, two = (
        bn.fit(bn.MF(dim=8, learning_rate=0.05, threads=n), split, bn.BNS(cdf="refreshed"), epochs=10, progress=False)
        for n in (1, 2)
    )
    assert two.record.final["ndcg@20"] == pytest.approx(one.record.final["ndcg@20"], abs=0.03)
    assert two.record.epochs[-1]["skipped"] == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bn.BNS(cdf="sampled"), "cdf must be one of exact, refreshed, pool, auto"),
        (lambda: bn.samplers.Refresh(moved=-0.1), "moved must be"),
        (lambda: bn.samplers.Refresh(pool=0), "pool must be a whole number of at least 1"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_rule(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_a_refresh_of_another_type_is_named():
    with pytest.raises(InputError, match="refresh must be a Refresh"):
        bn.BNS(cdf="refreshed", refresh=0.05)


def test_any_number_of_threads_makes_the_same_summaries(monkeypatch):
    monkeypatch.setattr(refresh, "WORTH_A_THREAD", 4)
    train = bn.synthetic(60, 300, seed=0)
    learner = bn.MF(dim=8).start(train, rng=np.random.default_rng(0))
    knots = []
    for threads in (1, 3):
        sampler = bn.BNS(cdf="refreshed").prepare(train, rng=np.random.default_rng(0))
        nothing = np.zeros(60, dtype=np.int64)
        users = np.arange(60, dtype=np.int32)
        batch = Batch(users, train.indices[nothing], nothing, 1, train, learner, np.random.default_rng(0), threads)
        knots.append(sampler.rule(batch).knots.copy())
    assert knots[0].any()
    np.testing.assert_array_equal(*knots)
