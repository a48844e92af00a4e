"""One definition, two executions: the compiled kernels pick what the reference picks, on the same draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import bayesneg as bn
from bayesneg.kernels.numba import binning, early_stop, scoring, sgd
from bayesneg.kernels.numba.choices.base import Example
from bayesneg.kernels.reference import formulas
from bayesneg.kernels.reference.choices.base import Draws, choose_batch
from bayesneg.kernels.reference.choices.posterior import LeastRisk, choose_least_risk
from bayesneg.kernels.reference.formulas import UNOBSERVED, AsCounted, OfMixture
from bayesneg.models import mf
from bayesneg.models.mf import MFLearner
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.samplers.posterior.likelihoods import tabled
from bayesneg.seeding import stream
from rule_samplers import SAMPLERS as COUNTED
from rule_samplers import SUMMARISED, Bent
from worlds import batch_of, compiled_choice, exact_scorer, random_interactions

SAMPLERS = {**COUNTED, **SUMMARISED}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("scale", [1.0, 1e4, 0.0], ids=["plain", "huge", "all tied"])
@pytest.mark.parametrize("most", [0.3, 1.0], ids=["sparse", "dense"])
def test_compiled_kernel_picks_what_the_reference_picks(name, scale, most):
    for seed in range(2):
        rng = np.random.default_rng([seed, 7])
        train = random_interactions(rng, 12, 30, most=most)
        scorer = exact_scorer(rng, 12, 30, scale=scale)
        one, two = (SAMPLERS[name].prepare(train, rng=stream(seed, "memory")) for _ in range(2))
        for epoch in (1, 2, 3):
            batch = batch_of(train, scorer, stream(seed, "draws", epoch), size=120, epoch=epoch)
            drawn = one.draws(batch)
            expected = one_by_one(one.rule(batch), drawn, batch)
            actual, infos = compiled_choice(two.rule(batch), drawn, batch)
            np.testing.assert_array_equal(actual, expected)
            picked = expected >= 0
            gaps = scorer.score(batch.users, np.stack([batch.positives, np.maximum(expected, 0)], axis=1))
            np.testing.assert_allclose(
                infos[picked], formulas.info(gaps[:, 0], gaps[:, 1])[picked], rtol=1e-6, atol=1e-37
            )
            one.end_epoch(epoch, scorer)
            two.end_epoch(epoch, scorer)


def one_by_one(rule, drawn, batch):
    """The reference, asked for one example at a time, as per-example training asks."""
    chosen = []
    for b in range(len(batch.users)):
        part = slice(b, b + 1)
        single = replace(
            batch, users=batch.users[part], positives=batch.positives[part], positions=batch.positions[part]
        )
        chosen.append(choose_batch(rule, Draws(*(array[part] for array in drawn)), single)[0])
    return np.array(chosen)


class Plainly(bn.NegativeSampler):
    """A built-in sampler with its compiled face hidden."""

    def __init__(self, inner):
        self.inner = inner

    def prepare(self, train, *, rng):
        return Plainly(self.inner.prepare(train, rng=rng))

    def sample(self, batch):
        return self.inner.sample(batch)

    def end_epoch(self, epoch, scorer):
        self.inner.end_epoch(epoch, scorer)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("update", ["sequential", "simultaneous"])
def test_training_compiled_ends_in_the_same_factors_as_training_by_the_reference(name, update, monkeypatch):
    monkeypatch.setattr(mf, "BLOCK", 1)  # so that both draw example by example
    train = random_interactions(np.random.default_rng(3), 10, 25, most=0.4)
    ends = []
    for sampler in (SAMPLERS[name], Plainly(SAMPLERS[name])):
        learner = bn.MF(dim=5, update=update, learning_rate=0.05).start(train, rng=stream(0, "init"))
        ready = sampler.prepare(train, rng=stream(0, "memory"))
        picked = []
        for epoch in (1, 2):
            order = stream(0, "order").permutation(len(train))
            rng = stream(0, "sampler", epoch)
            picked += [block.negatives for block in learner.train_epoch(ready, epoch=epoch, order=order, rng=rng)]
            ready.end_epoch(epoch, learner)
        ends.append((np.concatenate(picked), learner.users, learner.items))
    for compiled, plain in zip(*ends, strict=True):
        np.testing.assert_array_equal(compiled, plain)


def test_step_follows_the_gradient_written_out_by_hand():
    w, h_i, h_j = (np.array(v, np.float32) for v in ([1.0, 2.0], [0.5, 0.0], [0.0, 1.0]))
    gradient = 1.0 / (1.0 + np.exp(0.5 - 2.0))
    new_w = w + 0.1 * (gradient * (h_i - h_j) - 0.2 * w)
    for simultaneous, along in ((False, new_w), (True, w)):
        own = [v.copy() for v in (w, h_i, h_j)]
        config = sgd.SGDConfig(0.1, 0.2, simultaneous, ensemble_size=1)
        assert sgd.step(*own, config) == pytest.approx(gradient, rel=1e-6)
        np.testing.assert_allclose(own[0], new_w, rtol=1e-6)
        np.testing.assert_allclose(own[1], h_i + 0.1 * (gradient * along - 0.2 * h_i), rtol=1e-6)
        np.testing.assert_allclose(own[2], h_j + 0.1 * (-gradient * along - 0.2 * h_j), rtol=1e-6)


@pytest.mark.parametrize("update", ["sequential", "simultaneous"])
@pytest.mark.parametrize("name", ["rns", "bns"])
def test_every_model_of_an_ensemble_learns_as_one_alone_that_is_given_the_same_negatives(name, update):
    train = random_interactions(np.random.default_rng(3), 10, 25, most=0.4)
    model = bn.MF(dim=4, ensemble_size=3, update=update, learning_rate=0.05)
    learner = model.start(train, rng=stream(0, "init"))
    order, size = np.random.default_rng(1).permutation(len(train)), np.sqrt(3)
    alone = [
        MFLearner(replace(model, ensemble_size=1), train, *(size * vectors[:, own] for vectors in learner.embeddings()))
        for own in (slice(0, 4), slice(4, 8), slice(8, 12))
    ]
    ready = SAMPLERS[name].prepare(train, rng=stream(0, "memory"))
    picked = [block.negatives for block in learner.train_epoch(ready, epoch=1, order=order, rng=stream(0, "sampler"))]
    for one in alone:
        list(one.train_epoch(Given(np.concatenate(picked)), epoch=1, order=order, rng=stream(0, "sampler")))
    for which, together in enumerate(learner.embeddings()):
        apart = np.hstack([one.embeddings()[which] for one in alone])
        np.testing.assert_allclose(size * together, apart, rtol=1e-4, atol=1e-7)
    users, items = np.arange(10), np.tile(np.arange(25), (10, 1))
    mean = np.mean([one.score(users, items) for one in alone], axis=0)
    np.testing.assert_allclose(learner.score(users, items), mean, rtol=1e-4, atol=1e-7)


class Given(bn.NegativeSampler):
    """Answers with what is written down, example after example."""

    def __init__(self, negatives):
        self.left = iter(negatives)

    def sample(self, batch):
        return np.array([next(self.left) for _ in batch.users])


@pytest.mark.parametrize("n_items", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("dim", [1, 15, 16, 17, 32, 33])
def test_tiles_score_every_item_as_the_matrix_product_does(n_items, dim):
    rng = np.random.default_rng(0)
    train = random_interactions(rng, 20, n_items)
    w, items = rng.normal(size=dim).astype(np.float32), rng.normal(size=(n_items, dim)).astype(np.float32)
    layout = scoring.tile_layout(train.users, train.indices, n_items)
    tiled = scoring.tile_items(np.zeros_like(items), layout)
    for item in range(n_items):
        scoring.update_tile(tiled, item, items[item])
    np.testing.assert_array_equal(tiled.values, scoring.tile_items(items, layout).values)
    x = np.empty(-(-n_items // scoring.TILE) * scoring.TILE, np.float32)
    for tile in range(len(x) // scoring.TILE):
        scoring.score_tile(w, tiled.values, tile, x[tile * scoring.TILE : (tile + 1) * scoring.TILE])
    np.testing.assert_allclose(x[layout.slots], items @ w, rtol=1e-4, atol=1e-5)
    assert (np.diff(train.popularity[layout.items]) <= 0).all()


@pytest.fixture(scope="module")
def trained():
    """A split, and real-valued factors of a trained model, where the shortcut works."""
    split = bn.split(bn.synthetic(150, 400, seed=2), test=0.2, seed=0)
    return split, bn.fit(bn.MF(dim=16, learning_rate=0.05), split, bn.RNS(), epochs=20, progress=False).scorer


def test_the_early_proof_never_changes_the_choice_and_mostly_succeeds(trained):
    """Against the reference, which has no shortcut."""
    split, scorer = trained
    proved = []
    readings = [(over, "paper") for over in ("unobserved", "catalogue", "all")]
    for over, likelihood in [*readings, ("unobserved", "mixture"), ("catalogue", "mixture"), ("unobserved", Bent())]:
        for weight in (5.0, 0.1):
            for prior in (bn.priors.Popularity(), bn.priors.Flat(0.02), bn.priors.Flat(0.3)):
                sampler = bn.BNS(weight=weight, prior=prior, cdf_over=over, likelihood=likelihood)
                sampler = sampler.prepare(split.train, rng=stream(0, "memory"))
                batch = batch_of(split.train, scorer, stream(0, "draws"), size=1500)
                drawn, rule = sampler.draws(batch), sampler.rule(batch)
                compiled = compiled_choice(rule, drawn, batch)[0]
                np.testing.assert_array_equal(compiled, choose_batch(rule, drawn, batch))
                proved.append(early_proofs(rule, drawn, batch) / 1500)
    assert proved[0] > 0.6  # the paper's weight, prior and F
    assert min(proved[18], proved[30]) > 0.6  # the same with the mixture undone, and with a table


@pytest.mark.parametrize("seed", range(20))
def test_the_early_proof_holds_under_any_likelihood(trained, seed):
    """Random tables with level stretches and steps, random mixtures; priors from nothing to certainty."""
    split, scorer = trained
    rng = np.random.default_rng(seed)
    values = np.sort(rng.random(12).round(int(rng.integers(1, 4)))) * rng.choice([0.5, 0.999, 1.0])
    table = tabled(np.concatenate(([0.0], np.sort(1.0 - rng.random(11) ** 3))), values)
    powers = rng.random(400) * rng.choice([0.1, 1.0, 9.0])
    sampler = bn.BNS(prior=bn.priors.Item(10.0**-powers), weight=float(rng.choice([0.0, 0.3, 5.0, 50.0])))
    ready = sampler.prepare(split.train, rng=stream(0, "memory"))
    batch = batch_of(split.train, scorer, stream(seed, "draws"), size=400)
    drawn = ready.draws(batch)
    for likelihood in (table, OfMixture(float(rng.choice([0.0, 1e-4, rng.random(), 1.0])))):
        rule = ready.rule(batch)._replace(likelihood=likelihood)
        np.testing.assert_array_equal(compiled_choice(rule, drawn, batch)[0], choose_batch(rule, drawn, batch))


@pytest.mark.parametrize("candidates", [17, 60, "all"])
@pytest.mark.parametrize("weight", [0.0, 0.5, 5.0])
def test_bins_never_change_the_choice_among_many(candidates, weight):
    """Factors of a trained model; priors that leave the choice to scores, and priors that contradict them."""
    split = bn.split(bn.synthetic(60, 300, seed=3), test=0.2, seed=0)
    scorer = bn.fit(bn.MF(dim=16, learning_rate=0.05), split, bn.RNS(), epochs=20, progress=False).scorer
    noise = np.random.default_rng(0).random((60, 300))
    beliefs = (
        ("unobserved", "paper", bn.priors.Popularity()),
        ("all", "mixture", bn.priors.Flat(0.3)),
        ("catalogue", "paper", bn.priors.Oracle(split.test)),
        ("unobserved", "mixture", lambda users, items: noise[users, items]),
    )
    for over, likelihood, prior in beliefs:
        sampler = bn.BNS(candidates=candidates, weight=weight, prior=prior, cdf_over=over, likelihood=likelihood)
        sampler = sampler.prepare(split.train, rng=stream(0, "memory"))
        batch = batch_of(split.train, scorer, stream(0, "draws"), size=400)
        drawn, rule = sampler.draws(batch), sampler.rule(batch)
        np.testing.assert_array_equal(compiled_choice(rule, drawn, batch)[0], choose_batch(rule, drawn, batch))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1.0, 1.0, -2.5, 1e4, -1e4, 1e-30]), min_size=1, max_size=80), st.integers(0, 10**6)
)
def test_bins_never_change_the_choice_where_scores_tie_or_lie_far_apart(values, seed):
    rng = np.random.default_rng(seed)
    x = np.array(values, np.float32) + np.float32(seed % 2) * rng.normal(size=len(values)).astype(np.float32)
    places = rng.permutation(len(x))[: 1 + seed % len(x)]
    p = rng.choice([0.0, 1e-9, 0.04, 0.64, 1.0], len(places))
    observed = np.setdiff1d(rng.choice(len(x), len(x) // 3), places)
    x[observed] = np.nan
    n = len(x) - len(observed)
    counts = (x[None, :] <= x[places][:, None]).sum(axis=1)
    for likelihood in (AsCounted(), OfMixture(0.02), Bent().form()):
        rule = LeastRisk(5.0, UNOBSERVED, likelihood)
        true_negative = formulas.counted_unbias(likelihood, counts, n, p)
        wanted = choose_least_risk(x[places], np.float32(0.5), true_negative, 5.0)
        assert among_many(x, places, np.float32(0.5), n, p, rule) == wanted


@njit
def among_many(x, places, x_positive, n, p, rule):
    return binning.choose_among_many(x, places, x_positive, n, p, rule)


def early_proofs(rule, drawn, batch) -> int:
    train, vectors = batch.train, batch.scorer.embeddings()
    tiled = scoring.tile_items(vectors.items, scoring.tile_layout(train.users, train.indices, train.n_items))
    factors = scoring.Factors(vectors.users, vectors.items, tiled)
    x = np.empty(train.n_items + scoring.TILE, np.float32)
    found = 0
    for b, (user, positive) in enumerate(zip(batch.users, batch.positives, strict=True)):
        example = Example(b, user, positive, train.indptr[user], train.indptr[user + 1], True)
        promising = early_stop.most_promising(drawn.candidates[b], drawn.priors[b], rule, example, factors, x)
        found += early_stop.sweep(promising, rule.over, example, factors, x)
    return found


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=60), st.integers(1, 40), st.integers(0, 10**6))
def test_counts_are_exact_with_ties_infinities_and_absent_scores(values, m, seed):
    rng = np.random.default_rng(seed)
    x = np.array(values, np.float32)
    x[rng.random(len(x)) < 0.1] = np.inf
    x[rng.random(len(x)) < 0.1] = -np.inf
    candidates = rng.choice(x, m)
    x[rng.random(len(x)) < 0.2] = np.nan
    counts = np.empty(m, np.int64)
    early_stop.count_at_most(x, candidates, counts)
    assert counts.tolist() == [(x <= value).sum() for value in candidates]


def test_embedding_scorer_scores_pairs_and_rows_alike():
    scorer = EmbeddingScorer(np.array([[1, 2]], np.float32), np.array([[3, 4], [5, 6]], np.float32))
    assert scorer.score(np.array([0]), np.array([[1, 0]])).tolist() == [[17, 11]]
    assert scorer.score_all(np.array([0])).tolist() == [[11, 17]]
