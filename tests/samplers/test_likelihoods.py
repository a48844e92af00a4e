"""The step from the counted share to F: estimates from held-out pairs, which are never trained on."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.kernels.reference import formulas
from bayesneg.samplers.candidates import evenly_spread
from bayesneg.samplers.posterior.held_out import HeldOutPairs, Ranks
from bayesneg.samplers.posterior.likelihoods import false_share, rising_density, tabled
from bayesneg.samplers.posterior.unbias import posterior_unbias
from bayesneg.seeding import stream
from worlds import batch_of, exact_scorer, interactions, random_interactions


def world(seed=0, n_users=40, n_items=50):
    rng = np.random.default_rng(seed)
    return random_interactions(rng, n_users, n_items, most=0.6), exact_scorer(rng, n_users, n_items)


# ---- held-out pairs


def test_the_ranks_of_held_out_pairs_are_those_of_a_plain_loop():
    train, scorer = world()
    held_out = HeldOutPairs.drawn(train, 0.3, stream(0, "held out"))
    above, n = held_out.ranks(scorer)
    for place, k in enumerate(np.flatnonzero(held_out.mask)):
        user, item = train.users[k], train.indices[k]
        x = scorer.score_all(train.users[k : k + 1])[0]
        unobserved = [x[other] for other in range(train.n_items) if other not in train.row(user)]
        assert above[place] == sum(value > x[item] for value in unobserved)
        assert n[place] == len(unobserved) + 1


def test_held_out_pairs_are_a_share_of_the_pairs_of_users_with_enough_items():
    train, _ = world()
    held = HeldOutPairs.drawn(train, 0.3, stream(0, "held out")).mask
    eligible = train.counts[train.users] >= 5
    assert held.sum() == round(0.3 * eligible.sum())
    assert not held[~eligible].any()


@pytest.mark.parametrize("warm", [False, True], ids=["from the start", "after rns"])
def test_held_out_pairs_are_never_trained_on(warm):
    train, _ = world()
    sampler = bn.BNS(likelihood=bn.likelihoods.Empirical(held_out=0.2))
    ready = (bn.WarmStart(bn.RNS(), sampler, warmup=1) if warm else sampler).prepare(train, rng=stream(0, "memory"))
    held = (ready.then if warm else ready).likelihood.learned.held_out.mask
    learner = bn.MF(dim=4).start(train, rng=stream(0, "init"))
    order = np.random.default_rng(0).permutation(len(train))
    for epoch in (1, 2):
        blocks = list(learner.train_epoch(ready, epoch=epoch, order=order, rng=stream(0, "sampler", epoch)))
        picked = np.concatenate([block.negatives for block in blocks])
        full = train.counts[train.users[order]] == train.n_items
        np.testing.assert_array_equal(picked < 0, held[order] | full)
        ready.end_epoch(epoch, learner)


# ---- the learned table


def ranks_of(density, *, n_pairs=20_000, n=400, seed=0):
    """Ranks whose M has a density given by the inverse of its CDF, in lists of n items."""
    M = density(np.random.default_rng(seed).random(n_pairs))
    return Ranks(np.minimum(((1 - M) * n).astype(np.int64), n - 1), np.full(n_pairs, n))


def test_uniform_ranks_give_a_density_of_one():
    at, h = rising_density(ranks_of(lambda u: u), 400)
    np.testing.assert_allclose(h, 1.0, atol=0.2)  # 50 pairs in the top bin
    assert at[0] == 0.0


def test_the_density_of_held_out_pairs_is_estimated_up_to_the_top():
    """h = 10·M^9, whose CDF is M^10."""
    at, h = rising_density(ranks_of(lambda u: u**0.1), 400)
    assert (np.diff(h) >= 0).all()
    assert at.max() > 0.99
    upper = at > 0.3
    np.testing.assert_allclose(h[upper], 10 * at[upper] ** 9, rtol=0.15, atol=0.1)


def test_the_density_is_non_decreasing_for_any_ranks():
    _, h = rising_density(ranks_of(lambda u: 1 - u**0.3), 400)  # most at the bottom
    assert (np.diff(h) >= 0).all()


def test_few_held_out_pairs_are_uninformative():
    at, h = rising_density(ranks_of(lambda u: u**0.1, n_pairs=20), 400)
    np.testing.assert_allclose(h, 1.0)
    assert len(at) == 2


def test_with_a_constant_prior_unbias_is_the_share_of_true_negatives_at_that_rank():
    """A world in which a tenth of the unobserved items are false negatives with the density 3·M² over the list."""
    theta = 0.1
    at, h = rising_density(ranks_of(lambda u: u ** (1 / 3)), 400)
    r = h * (1 - theta) / (1 - theta * h)
    M = np.linspace(0.2, 0.99, 50)
    found = formulas.unbias(formulas.base_cdf(tabled(at, r / (1 + r)), M), theta)
    np.testing.assert_allclose(found, 1 - theta * 3 * M**2, atol=0.02)


def test_the_table_follows_the_model_and_survives_a_checkpoint(tmp_path):
    split = bn.split(bn.synthetic(150, 200, seed=1), test=0.2, seed=0)
    sampler, model = bn.BNS(likelihood=bn.likelihoods.Empirical(held_out=0.2), prior=bn.priors.Flat(0.05)), bn.MF(dim=8)
    straight = bn.fit(model, split, sampler, epochs=4, progress=False)
    bn.fit(model, split, sampler, epochs=2, out=tmp_path / "run", progress=False)
    resumed = bn.fit(model, split, sampler, epochs=4, out=tmp_path / "run", resume=True, progress=False)
    np.testing.assert_array_equal(straight.scorer.users, resumed.scorer.users)
    np.testing.assert_array_equal(straight.scorer.items, resumed.scorer.items)


def test_in_the_first_epoch_only_the_prior_is_informative():
    train, scorer = world()
    ready = bn.BNS(likelihood="empirical", prior=bn.priors.Flat(0.3)).prepare(train, rng=stream(0, "memory"))
    batch = batch_of(train, scorer, stream(0, "draws"), size=20)
    drawn, rule = ready.draws(batch), ready.rule(batch)
    found = posterior_unbias(rule, batch, np.maximum(drawn.candidates, 0), drawn.priors)
    np.testing.assert_allclose(found, 0.7)


# ---- θ, and settings


def test_unobserved_pairs_are_all_listed_or_evenly_spread():
    train, _ = world()
    listed = [(u, i) for u in range(train.n_users) for i in range(train.n_items) if i not in train.row(u)]
    users, items = evenly_spread(train, 10**6)
    assert list(zip(users.tolist(), items.tolist(), strict=True)) == listed
    users, items = evenly_spread(train, 100)
    places = [listed.index(pair) for pair in zip(users.tolist(), items.tolist(), strict=True)]
    assert np.ptp(np.diff(places)) <= 1


def test_the_false_share_is_the_mean_of_the_prior_over_unobserved_pairs():
    train, _ = world()
    prior = bn.priors.Item(np.linspace(0.0, 0.5, train.n_items))
    pairs = [
        prior.probabilities[i] for u in range(train.n_users) for i in range(train.n_items) if i not in train.row(u)
    ]
    assert false_share(None, train, prior) == pytest.approx(np.mean(pairs))
    assert false_share(0.07, train, prior) == 0.07
    ready = bn.BNS(likelihood="mixture", prior=prior).prepare(train, rng=stream(0, "memory"))
    assert ready.likelihood.form().share == pytest.approx(np.mean(pairs))


def test_a_world_without_unobserved_pairs_has_no_false_share():
    assert false_share(None, interactions([[0, 1], [0, 1]], 2), bn.priors.Item(np.array([0.5, 0.5]))) == 0.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bn.BNS(likelihood="logistic"), "likelihood must be one of bcl, empirical, mixture, paper, uninf"),
        (lambda: bn.BNS(likelihood=["paper"]), r"likelihood must be one of .*, got \['paper'\]"),
        (lambda: bn.likelihoods.Mixture(1.5), "false_share must be"),
        (lambda: bn.likelihoods.Empirical(false_share=1.0), "false_share must be below 1"),
        (lambda: bn.likelihoods.Empirical(held_out=0.9), "held_out must be"),
        (lambda: bn.likelihoods.Empirical(held_out=0.0), "held_out must be"),
        (lambda: bn.BNS(likelihood="empirical", cdf_over="all"), "leave cdf_over at 'unobserved'"),
        (lambda: bn.likelihoods.BCL(auc=0.4), "auc must be a number of at least 0.5 and at most 1, got 0.4"),
        (lambda: bn.likelihoods.BCL(false_share=1), "false_share must be below 1"),
        (lambda: bn.BNS(likelihood="bcl", cdf_over="all"), "leave cdf_over at 'unobserved'"),
    ],
)
def test_wrong_settings_are_named(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_with_too_few_pairs_to_hold_out_scores_are_uninformative():
    train, scorer = interactions([[0, 1], [2, 3]], 6), exact_scorer(np.random.default_rng(0), 2, 6)
    ready = bn.BNS(likelihood="empirical").prepare(train, rng=stream(0, "memory"))
    ready.end_epoch(1, scorer)
    np.testing.assert_array_equal(formulas.base_cdf(ready.form(), np.linspace(0, 1, 9)), 0.5)


# ---- the likelihood of BCL


@pytest.mark.parametrize("auc", [0.5, 0.7, 0.95, 1.0])
def test_the_posterior_of_bcl_is_the_one_of_its_paper(auc):
    M, rate = np.linspace(0.001, 0.999, 400), 0.1
    negative, positive = (auc + (1 - 2 * auc) * M) * (1 - rate), ((1 - auc) - (1 - 2 * auc) * M) * rate
    found = formulas.unbias(formulas.base_cdf(bn.likelihoods.BCL(auc).form(), M), rate)
    np.testing.assert_allclose(found, negative / (negative + positive), rtol=1e-12)


def test_with_a_perfect_auc_bcl_is_the_likelihood_of_the_bns_paper_to_the_bit():
    M = np.arange(1, 1000) / 1000
    np.testing.assert_array_equal(formulas.base_cdf(bn.likelihoods.BCL(1.0).form(), M), M)


def test_the_densities_of_bcl_mix_those_of_the_two_orders_of_a_pair():
    """Of two draws from f the higher is the false negative with probability α: what the formula of F assumes."""
    auc, n = 0.8, 400_000
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.random((n, 2)), axis=1)
    in_order = rng.random(n) < auc
    false, true = np.where(in_order, pairs[:, 1], pairs[:, 0]), np.where(in_order, pairs[:, 0], pairs[:, 1])
    counts = [np.histogram(each, 20, (0, 1))[0] for each in (false, true)]
    F = formulas.base_cdf(bn.likelihoods.BCL(auc).form(), (np.arange(20) + 0.5) / 20)
    np.testing.assert_allclose(counts[0] / (counts[0] + counts[1]), F, atol=0.01)


def test_the_auc_is_measured_on_held_out_pairs_against_true_negatives():
    train, scorer = world()
    likelihood = bn.likelihoods.BCL(held_out=0.3, false_share=0.2)
    ready = bn.BNS(likelihood=likelihood).prepare(train, rng=stream(0, "memory"))
    scorer.users[:], scorer.items[:] = np.abs(scorer.users), np.sort(np.abs(scorer.items), axis=0)  # ranks by number
    held = ready.likelihood.measured.held_out.mask
    np.testing.assert_array_equal(ready.form().values[:2], 0.5)
    wins = []
    for k in np.flatnonzero(held):
        x = scorer.score_all(train.users[k : k + 1])[0]
        free = np.setdiff1d(np.arange(train.n_items), train.row(train.users[k]))
        wins.append(1 - np.mean(x[free] > x[train.indices[k]]))
    # against a share θ of false negatives a positive wins half of the time
    expected = np.clip((np.mean(wins) - 0.2 / 2) / 0.8, 0.5, 1.0)
    ready.end_epoch(1, scorer)
    assert 0.5 < expected < 1
    assert ready.likelihood.measured.auc == pytest.approx(expected)
    np.testing.assert_allclose(ready.form().values[:2], [1 - expected, expected])


def test_a_given_auc_holds_nothing_out():
    train, _ = world()
    ready = bn.BNS(likelihood=bn.likelihoods.BCL(0.8)).prepare(train, rng=stream(0, "memory"))
    assert not ready.holds_out
    assert ready.state_dict() == {}


def test_the_weights_of_bcl_with_the_tilt_of_hcl_are_its_importance_weights():
    """ω_k ∝ P(true negative | s_k) · exp(β s_k/τ), normalised over the negatives of an example."""
    rng, tau, beta = np.random.default_rng(0), 0.5, 0.7
    s_i, s = rng.uniform(-1, 1, 3), rng.uniform(-1, 1, (3, 8))
    ranks = np.argsort(np.argsort(s, axis=1), axis=1) + 1
    weights = formulas.counted_unbias(bn.likelihoods.BCL(0.85).form(), ranks, 8, 0.1)
    tilted = weights * np.exp(beta * s / tau)
    importance = 8 * tilted / tilted.sum(axis=1, keepdims=True)
    expected = -s_i / tau + np.log(np.exp(s_i / tau) + (importance * np.exp(s / tau)).sum(axis=1))
    loss = bn.losses.HCL(temperature=tau, positive_rate=0.0, hardness=beta)
    np.testing.assert_allclose(loss.evaluate(bn.losses.Scores(s_i, s, weights)).value, expected)
