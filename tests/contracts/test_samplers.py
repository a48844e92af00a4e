"""What every sampler promises. A new one joins by a line."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.evaluation.picks import PickObserver
from bayesneg.seeding import stream
from worlds import Hardest, batch_of, exact_scorer, interactions, random_interactions

SAMPLERS = {
    "rns": bn.RNS(),
    "pns": bn.PNS(),
    "aobpr": bn.AOBPR(scale=5.0),
    "aobpr by fraction": bn.AOBPR(fraction=0.1),
    "aobpr by factor": bn.AOBPR(scale=5.0, rank="factor"),
    "dns": bn.DNS(),
    "dns of all": bn.DNS(candidates="all"),
    "dns(m,n)": bn.DNS(candidates=6, top=3),
    "srns": bn.SRNS(memory=3, fresh=4),
    "bns": bn.BNS(),
    "bns of all": bn.BNS(candidates="all"),
    "bns with F as a share of the catalogue": bn.BNS(cdf_over="catalogue"),
    "bns with F over all items": bn.BNS(cdf_over="all"),
    "bns with the mixture undone": bn.BNS(likelihood="mixture"),
    "bns with a learned likelihood": bn.BNS(likelihood="empirical"),
    "bns with a learned likelihood after rns": bn.WarmStart(bn.RNS(), bn.BNS(likelihood="empirical"), warmup=1),
    "bns with a self-estimated prior": bn.BNS(prior=bn.priors.SelfEstimated(), likelihood="uninformative"),
    "bns with a schedule": bn.BNS(weight=bn.samplers.LinearDecay()),
    "bns with a function": bn.BNS(prior=lambda users, items: np.full(np.shape(items), 0.1)),
    "bns after rns": bn.WarmStart(bn.RNS(), bn.BNS(), warmup=1),
    "bns with the flat prior": bn.BNS(prior=bn.priors.Flat()),
    "bns with the learned prior": bn.BNS(prior=bn.priors.Learned(folds=2)),
    "bns with neighbours as they are asked for": bn.BNS(prior=bn.priors.Learned(item_model="neighbours", cache=0)),
    "bns with two priors": bn.BNS(
        prior=bn.priors.Combined([bn.priors.Rate(), bn.priors.Scaled(bn.priors.Flat(), 2.0)])
    ),
    "bns with a refreshed F": bn.BNS(cdf="refreshed", refresh=bn.samplers.Refresh(pool=10)),
    "bns with a refreshed F after rns": bn.WarmStart(bn.RNS(), bn.BNS(cdf="refreshed"), warmup=1),
    "posterior": bn.Posterior(),
    "a user's own": Hardest(),
}

MODELS = {
    "mf": bn.MF(dim=4),
    "lightgcn": bn.LightGCN(dim=4, device="cpu"),
    "torch-mf": bn.TorchMF(dim=4, device="cpu"),
}


@pytest.fixture(params=SAMPLERS, ids=str)
def sampler(request):
    return SAMPLERS[request.param]


@pytest.fixture(params=MODELS, ids=str)
def model(request):
    if request.param != "mf":
        pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")
    return MODELS[request.param]


def world(seed: int = 0):
    rng = np.random.default_rng(seed)
    train = random_interactions(rng, 30, 40)
    return train, exact_scorer(rng, 30, 40)


def test_answers_one_item_for_every_pair(sampler):
    train, scorer = world()
    batch = batch_of(train, scorer, stream(0, "draws"))
    negatives = sampler.prepare(train, rng=stream(0, "memory")).sample(batch)
    assert negatives.shape == batch.users.shape
    assert np.issubdtype(negatives.dtype, np.integer)
    assert negatives.max() < train.n_items


def test_never_picks_a_training_positive(sampler):
    for seed in range(3):
        train, scorer = world(seed)
        ready = sampler.prepare(train, rng=stream(seed, "memory"))
        for epoch in (1, 2, 3):
            batch = batch_of(train, scorer, stream(seed, "draws", epoch), epoch=epoch)
            negatives = ready.sample(batch)
            picked = negatives >= 0
            assert not train.contains(batch.users[picked], negatives[picked]).any()
            ready.end_epoch(epoch, scorer)


def test_skips_exactly_the_users_without_a_negative(sampler):
    train = interactions([[0, 1, 2, 3], [0], [1, 2, 3]], 4)  # user 0 has chosen everything
    scorer = exact_scorer(np.random.default_rng(0), 3, 4)
    batch = batch_of(train, scorer, stream(0, "draws"))
    negatives = sampler.prepare(train, rng=stream(0, "memory")).sample(batch)
    assert (negatives[batch.users == 0] == bn.NO_NEGATIVE).all()
    assert (negatives[batch.users != 0] >= 0).all()
    assert (negatives[batch.users == 2] == 0).all()  # the one item left


def test_same_stream_gives_same_negatives_and_another_gives_others(sampler):
    train, scorer = world()

    def sample(seed):
        ready = sampler.prepare(train, rng=stream(seed, "memory"))
        return ready.sample(batch_of(train, scorer, stream(seed, "draws")))

    np.testing.assert_array_equal(sample(0), sample(0))
    if sampler not in (SAMPLERS["a user's own"], SAMPLERS["dns of all"], SAMPLERS["bns of all"]):  # no chance in these
        assert (sample(0) != sample(1)).any()


def test_global_random_state_is_untouched(sampler):
    train, scorer = world()
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    sampler.prepare(train, rng=stream(0, "memory")).sample(batch_of(train, scorer, stream(0, "draws")))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_two_preparations_share_no_state(sampler):
    train, scorer = world()
    first = sampler.prepare(train, rng=stream(0, "memory"))
    first.sample(batch_of(train, scorer, stream(1, "draws")))
    first.end_epoch(1, scorer)
    second = sampler.prepare(train, rng=stream(0, "memory"))
    fresh = sampler.prepare(train, rng=stream(0, "memory"))
    batches = [batch_of(train, scorer, stream(2, "draws")) for _ in range(2)]
    np.testing.assert_array_equal(second.sample(batches[0]), fresh.sample(batches[1]))


def test_state_can_be_saved_and_taken_up(sampler):
    train, scorer = world()
    begun = sampler.prepare(train, rng=stream(0, "memory"))
    begun.sample(batch_of(train, scorer, stream(1, "draws")))
    begun.end_epoch(1, scorer)
    saved = {key: value.copy() for key, value in begun.state_dict().items()}
    taken_up = sampler.prepare(train, rng=stream(9, "memory"))
    taken_up.load_state_dict(saved)
    batches = [batch_of(train, scorer, stream(2, "draws"), epoch=2) for _ in range(2)]
    np.testing.assert_array_equal(begun.sample(batches[0]), taken_up.sample(batches[1]))


def test_works_in_fit_with_every_model(sampler, model):
    split = bn.split(bn.synthetic(40, 50, seed=0), test=0.2, seed=0)
    run = bn.fit(model, split, sampler, epochs=3, progress=False)
    assert [line["epoch"] for line in run.record.epochs] == [1, 2, 3]
    assert np.isfinite(run.evaluate(k=5).mean["ndcg@5"])


def test_an_audit_changes_nothing_but_the_lines(sampler):
    split = bn.split(bn.synthetic(40, 50, seed=0), test=0.2, seed=0)
    plain = bn.fit(bn.MF(dim=4), split, sampler, epochs=3, progress=False)
    observer = PickObserver(split, seed=0, probes=60)
    audited = bn.fit(bn.MF(dim=4), split, sampler, epochs=3, progress=False, observer=observer)
    for before, after in zip(plain.scorer.embeddings(), audited.scorer.embeddings(), strict=True):
        np.testing.assert_array_equal(before, after)
    for before, after in zip(plain.record.epochs, audited.record.epochs, strict=True):
        assert {**before, "seconds": 0} == {key: after[key] for key in before} | {"seconds": 0}
        assert {"head", "middle", "tail", "hardness"} <= set(after)
