"""Every built-in sampler keeps the contract that ``bayesneg.testing`` checks, and each check can fail.

A registered sampler joins by its name; variants with other settings are listed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.evaluation.picks import PickObserver
from bayesneg.interfaces import weighted_pairs
from bayesneg.samplers import registry
from bayesneg.seeding import stream
from bayesneg.testing import check_sampler, sampler_checks
from bayesneg.testing.worlds import worlds_of
from worlds import Hardest, batch_of, exact_scorer, interactions


def registered(name: str) -> bn.NegativeSampler:
    kind, preset = registry.samplers()[name]
    settings = dict(preset.settings)
    if settings.get("prior") == "oracle":
        settings["prior"] = bn.priors.Oracle(worlds_of(None)[0].train)
    return kind(**settings)


SAMPLERS = {name: registered(name) for name in registry.samplers()} | {
    "aobpr by fraction": bn.AOBPR(fraction=0.1),
    "dns of all": bn.DNS(candidates="all"),
    "dns(m,n)": bn.DNS(candidates=6, top=3),
    "srns with a small memory": bn.SRNS(memory=3, fresh=4),
    "bns over the catalogue": bn.BNS(cdf_over="catalogue"),
    "bns over all items": bn.BNS(cdf_over="all"),
    "bns with the inverted mixture": bn.BNS(likelihood="mixture"),
    "bns with an empirical likelihood": bn.BNS(likelihood="empirical"),
    "bns with the likelihood of bcl": bn.BNS(likelihood="bcl", prior=bn.priors.Flat(0.1)),
    "bns with an empirical likelihood after rns": bn.WarmStart("rns", bn.BNS(likelihood="empirical"), warmup=1),
    "bns with a self-estimated prior": bn.BNS(prior="self", likelihood="uninformative"),
    "bns with a function": bn.BNS(prior=lambda users, items: np.full(np.shape(items), 0.1)),
    "bns after rns": bn.WarmStart(bn.RNS(), bn.BNS(), warmup=1),
    "bns with neighbours, uncached": bn.BNS(prior=bn.priors.Learned(item_model="neighbours", cache=0)),
    "bns with two priors": bn.BNS(prior=bn.priors.Combined(["rate", bn.priors.Scaled("flat", 2.0)])),
    "bns with a refreshed CDF": bn.BNS(cdf="refreshed", refresh=bn.samplers.Refresh(pool=10)),
    "bns with a refreshed CDF after rns": bn.WarmStart(bn.RNS(), bn.BNS(cdf="refreshed"), warmup=1),
    "dens, the factors alone": bn.samplers.DENS(candidates=8, balance=1.0, warmup=0, negatives=2, pairs_at_once=16),
    "dens after rns": bn.WarmStart(bn.RNS(), bn.samplers.DENS(warmup=0), warmup=1),
    "custom": Hardest(),
}
WITHOUT_CHANCE = ("custom", "dns of all", "optimal", "in-batch", "bcl")


@pytest.fixture(scope="module")
def split():
    return bn.split(bn.synthetic(40, 50, seed=0), test=0.2, seed=0)


@pytest.fixture(params=SAMPLERS, ids=str)
def sampler(request):
    return SAMPLERS[request.param]


def test_a_built_in_sampler_keeps_the_contract(sampler):
    check_sampler(sampler)


def with_labels_of(data, sampler):
    """The sampler itself, or for the oracle one that looks at labels of this data."""
    return replace(sampler, prior=bn.priors.Oracle(data)) if sampler.uses_test_labels else sampler


def test_skips_exactly_the_users_without_a_negative(sampler):
    train = interactions([[0, 1, 2, 3], [0], [1, 2, 3]], 4, user_columns={"group": np.array(["a", "b", "b"])})
    batch = batch_of(train, exact_scorer(np.random.default_rng(0), 3, 4), stream(0, "draws"))
    answer = with_labels_of(train, sampler).prepare(train, rng=stream(0, "memory")).sample(batch)
    if isinstance(answer, bn.Negatives):  # a pool of the batch's positives
        assert not answer.weights[batch.users == 0].any()
        assert (answer.weights[batch.users != 0] > 0).any(axis=1).all()
        return
    negatives = answer
    assert (negatives[batch.users == 0] == bn.NO_NEGATIVE).all()  # user 0 has no unobserved item
    assert (negatives[batch.users != 0] >= 0).all()
    assert (negatives[batch.users == 2] == 0).all()  # the one unobserved item


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name not in WITHOUT_CHANCE])
def test_another_seed_gives_other_negatives(name):
    world = worlds_of(None)[0]
    prepared = SAMPLERS[name].prepare(world.train, rng=stream(0, "memory"))
    one, two = (weighted_pairs(prepared.sample(world.batch(seed)), len(world.batch(seed).users)) for seed in (0, 1))
    assert (one[0] != two[0]).any()


def test_an_observer_changes_nothing_but_the_lines(sampler, split):
    sampler = with_labels_of(split.test, sampler)
    observer = PickObserver(split, seed=0, probes=60)
    for_torch = getattr(sampler, "is_shared", False) or getattr(sampler, "makes_vectors", False)
    model = bn.TorchMF(dim=4, device="cpu") if for_torch else bn.MF(dim=4)
    plain, audited = (
        bn.fit(model, split, sampler, epochs=2, progress=False, observer=each) for each in (None, observer)
    )
    for before, after in zip(plain.scorer.embeddings(), audited.scorer.embeddings(), strict=True):
        np.testing.assert_array_equal(before, after)
    for before, after in zip(plain.record.epochs, audited.record.epochs, strict=True):
        assert {**before, "seconds": 0} == {key: after[key] for key in before} | {"seconds": 0}
        assert {"head", "middle", "tail", "hardness"} <= set(after)


# ---- the checks can fail


class Broken(Hardest):
    """A correct sampler whose ``sample`` is passed through ``spoil``."""

    def __init__(self, spoil):
        self.spoil = spoil

    def sample(self, batch):
        return self.spoil(super().sample(batch), batch)


def spoiled(negatives, places, value):
    negatives = negatives.copy()
    negatives[places] = value
    return negatives


def written_to(array, negatives):
    array += 1
    return negatives


class Counting(Hardest):
    """Draws differently each time it is asked, and keeps the count where the test says."""

    calls = 0

    def sample(self, batch):
        Counting.calls += 1
        return spoiled(super().sample(batch), slice(-1 - Counting.calls % 7, None), bn.NO_NEGATIVE)


@dataclass
class Remembering(Hardest):
    """Skips as many pairs as epochs have ended; ``state_dict`` is missing, or the memory is that of the class."""

    fresh: bool = True
    ended: list = field(default_factory=list)

    def prepare(self, train, *, rng):
        return replace(self, ended=[]) if self.fresh else self

    def sample(self, batch):
        return spoiled(super().sample(batch), batch.positions < 50 * len(self.ended), bn.NO_NEGATIVE)

    def end_epoch(self, epoch, scorer):
        self.ended.append(epoch)


class Listing(Remembering):
    def state_dict(self):
        return {"ended": self.ended}


class Believing(Hardest):
    def __init__(self, unbias):
        self.value = unbias

    def unbias(self, batch, items):
        return self.value(items)


class Presuming(Hardest):
    def prior_probability(self, batch, items):
        return np.full(items.shape, -0.1)


class OnlyPrepared(Hardest):
    """Fails on the split that fit makes, and nowhere else."""

    def sample(self, batch):
        if len(batch.users) == 1:
            return np.array([batch.train.n_items])
        return super().sample(batch)


def drawn_globally(negatives, batch):
    random.random()
    return negatives


def drawn_by_numpy(negatives, batch):
    np.random.random()  # noqa: NPY002
    return negatives


FAILING = {
    "a list": (Broken(lambda n, b: n.tolist()), "must return a NumPy array"),
    "a matrix": (Broken(lambda n, b: n[:, None]), r"returned shape \(\d+, 1\) .*; return one item per pair"),
    "floats": (Broken(lambda n, b: n.astype(float)), "returned float64; return item numbers of an integer type"),
    "unknown items": (Broken(lambda n, b: spoiled(n, 0, 40)), r"returned the item \[40\]; items go from 0 to 39"),
    "unknown marks": (Broken(lambda n, b: spoiled(n, 0, -2)), r"returned the item \[-2\].* skips a pair"),
    "nothing": (Broken(lambda n, b: spoiled(n, slice(None), -1)), "skipped every pair; return a negative"),
    "a positive": (Broken(lambda n, b: spoiled(n, -1, b.positives[-1])), "returned 1 training items in epoch 1; exc"),
    "unseeded": (Counting(), "gave other negatives for the same seed; draw from batch.rng"),
    "python's random": (Broken(drawn_globally), "draws from global random state; draw from batch.rng"),
    "numpy's random": (Broken(drawn_by_numpy), "draws from global random state; draw from batch.rng"),
    "writes to the batch": (Broken(lambda n, b: written_to(b.users, n)), "changed the arrays of the batch; copy"),
    "writes to the model": (Broken(lambda n, b: written_to(b.scorer.users, n)), "changed the embeddings of the mod"),
    "one memory for all fits": (Remembering(fresh=False), "remembers a fit in the next one; put state into the obj"),
    "no state_dict": (Remembering(), "samples differently after a checkpoint; return all state from state_dict"),
    "a state of lists": (Listing(), r"state_dict must map names to NumPy arrays; \['ended'\]"),
    "unbias of another shape": (
        Believing(lambda items: np.ones(len(items))),
        "unbias returned shape .* one value each",
    ),
    "a prior below 0": (
        Presuming(),
        r"prior_probability returned values outside \[0, 1\]; return probabilities of false",
    ),
    "unbias above 1": (Believing(lambda items: np.full(items.shape, 1.1)), r"unbias returned values outside \[0, 1\]"),
    "fails in fit": (OnlyPrepared(), "OnlyPrepared in fit with MF: "),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_broken_sampler_is_told_what_is_wrong(case):
    broken, sentence = FAILING[case]
    with pytest.raises(AssertionError, match=sentence):
        check_sampler(broken)


def test_a_run_that_resumes_differently_is_found():
    with pytest.raises(AssertionError, match="a resumed run differs from an uninterrupted one"):
        sampler_checks.works_in_fit(Remembering(), worlds_of(None))


def test_a_sampler_for_particular_data_is_checked_on_it(split):
    prior = bn.priors.Item(np.full(split.train.n_items, 0.1))
    check_sampler(bn.BNS(prior=prior), train=split.train)
    with pytest.raises(AssertionError, match="the prior has 50 items, the data 40"):
        check_sampler(bn.BNS(prior=prior))


def test_what_is_no_sampler_is_refused_with_a_sentence():
    for given in (bn.RNS, "rns"):
        with pytest.raises(AssertionError, match=r"check_sampler takes a sampler such as MySampler\(\)"):
            check_sampler(given)


def test_an_exception_of_a_sampler_says_in_which_check():
    class Failing(bn.NegativeSampler):
        def sample(self, batch):
            raise KeyError("lost")

    with pytest.raises(AssertionError, match="Failing, in the check answers_one_item_per_pair, raised KeyError"):
        check_sampler(Failing())
