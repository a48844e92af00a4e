"""``unbias`` of a sampler is the posterior that its choices are made by."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.reference import formulas
from bayesneg.seeding import stream
from worlds import batch_of, exact_scorer, fixed_scorer, interactions, random_interactions

POSTERIOR = {
    "bns": bn.BNS(),
    "bns with F over all items": bn.BNS(cdf_over="all"),
    "bns with a function": bn.BNS(prior=lambda users, items: (items + users) % 7 / 10),
    "bns with a refreshed F": bn.BNS(cdf="refreshed", refresh=bn.samplers.Refresh(pool=10)),
    "posterior": bn.Posterior(prior=lambda users, items: (items + users) % 7 / 10),
    "bns after rns": bn.WarmStart(bn.RNS(), bn.BNS(), warmup=1),
}


def world(sampler):
    rng = np.random.default_rng(3)
    train, scorer = random_interactions(rng, 30, 40, most=0.5), exact_scorer(rng, 30, 40)
    return train, scorer, sampler.prepare(train, rng=stream(0, "memory"))


def test_unbias_by_hand():
    train = interactions([[0], [0, 1]], 4)
    scorer = fixed_scorer(np.array([[9.0, 1.0, 3.0, 2.0], [0.0, 9.0, 1.0, 1.0]]))
    batch = bn.Batch(np.array([0, 1]), np.array([0, 0]), np.array([0, 1]), 1, train, scorer, stream(0, "draws"))
    sampler = bn.BNS(prior=bn.priors.Item(np.array([0.5, 0.1, 0.2, 0.3]))).prepare(train, rng=stream(0, "memory"))
    # user 0: items 1, 2, 3 are unobserved, with F 1/4, 3/4, 2/4; user 1: items 2 and 3 tie, with F 2/3 each
    F = np.array([[0.25, 0.75], [2 / 3, 2 / 3]])
    p = np.array([[0.1, 0.2], [0.2, 0.3]])
    items = np.array([[1, 2], [2, 3]])
    np.testing.assert_allclose(sampler.unbias(batch, items), (1 - F) * (1 - p) / (1 - F - p + 2 * F * p))


@pytest.mark.parametrize("name", POSTERIOR)
def test_the_choice_follows_from_the_posterior(name):
    """The candidate that the rule chooses is the one with the best criterion by the posterior."""
    train, scorer, sampler = world(POSTERIOR[name])
    batches = [batch_of(train, scorer, stream(0, "draws"), epoch=2) for _ in range(2)]
    picks = sampler.sample(batches[0])
    drawn = sampler.draws(batches[1])
    posterior = sampler.unbias(batches[1], np.maximum(drawn.candidates, 0))
    infos = formulas.info(batches[1].score_positives()[:, None], batches[1].score(np.maximum(drawn.candidates, 0)))
    for b, size in enumerate(drawn.sizes):
        own = posterior[b, :size] if name != "posterior" else None
        chosen = np.argmax(posterior[b, :size]) if own is None else np.argmin(formulas.risk(infos[b, :size], own, 5.0))
        assert picks[b] == drawn.candidates[b, chosen]


def test_a_warm_start_has_no_posterior_during_the_warm_up():
    train, scorer, sampler = world(POSTERIOR["bns after rns"])
    items = np.zeros((len(train), 1), dtype=np.int64)
    assert sampler.unbias(batch_of(train, scorer, stream(0, "draws"), epoch=1), items) is None


@pytest.mark.parametrize("sampler", [bn.RNS(), bn.PNS(), bn.DNS(), bn.SRNS(), bn.AOBPR()], ids=repr)
def test_samplers_without_a_posterior_return_none(sampler):
    train, scorer, ready = world(sampler)
    batch = batch_of(train, scorer, stream(0, "draws"))
    assert ready.unbias(batch, np.zeros((len(batch.users), 1), dtype=np.int64)) is None
