"""The paper's theory, checked by integration, by sampling and by trying everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import bayesneg as bn
from bayesneg.kernels.reference import formulas
from bayesneg.reproduction import theory
from worlds import batch_of, compiled_choice, exact_scorer, random_interactions

BASES = theory.bases()
N = 20_000


@pytest.fixture(params=BASES, ids=str)
def base(request):
    return BASES[request.param]


@pytest.mark.parametrize("density", [theory.true_negative_density, theory.false_negative_density])
def test_the_densities_integrate_to_one_and_are_nowhere_negative(base, density):
    low, high = base.support()
    total, error = integrate.quad(lambda x: density(base, x), low, high)
    assert total == pytest.approx(1.0, abs=10 * error + 1e-9)
    assert (density(base, np.linspace(*base.ppf([1e-6, 1 - 1e-6]), 1000)) >= 0).all()


def test_sampled_pairs_in_order_follow_the_densities(base):
    """Kolmogorov–Smirnov against what the densities integrate to, step by step."""
    lower, higher = np.sort(base.rvs((N, 2), random_state=np.random.default_rng(0)), axis=1).T
    x = np.linspace(*base.ppf([1e-7, 1 - 1e-7]), 20_001)
    for sampled, density in ((lower, theory.true_negative_density), (higher, theory.false_negative_density)):
        integral = integrate.cumulative_trapezoid(density(base, x), x, initial=0)
        assert stats.kstest(sampled, lambda at, F=integral: np.interp(at, x, F)).pvalue > 0.01
    assert stats.kstest(lower, base.cdf).pvalue < 1e-6  # the test can tell them from the base itself
    for density, cdf in (
        (theory.true_negative_density, lambda x: 1 - (1 - base.cdf(x)) ** 2),
        (theory.false_negative_density, lambda x: base.cdf(x) ** 2),
    ):
        ends = base.ppf([0.2, 0.9])
        assert integrate.quad(lambda x, g=density: g(base, x), *ends)[0] == pytest.approx(
            np.diff(cdf(ends))[0], rel=1e-6
        )


@pytest.mark.parametrize("theta", [0.001, 0.01, 0.2, 0.5, 0.9])
def test_under_the_mixture_unbias_is_right_on_average_and_under_uniform_F_it_is_not(theta):
    assert theory.mean_unbias_under_mixture(theta) == pytest.approx(1 - theta, abs=1e-9)
    by_quadrature, _ = integrate.quad(lambda F: formulas.unbias(F, theta), 0, 1)
    assert theory.mean_unbias_under_uniform(theta) == pytest.approx(by_quadrature, abs=1e-9)
    if theta != 0.5:  # where the mixture is uniform
        assert abs(theory.mean_unbias_under_uniform(theta) - (1 - theta)) > 1e-3


@pytest.mark.parametrize("theta", [1e-9, 0.4999, 0.5 + 1e-9, 0.50026, 1 - 1e-9])
def test_the_closed_form_holds_up_to_its_limits_and_where_its_terms_cancel(theta):
    by_quadrature, _ = integrate.quad(lambda F: formulas.unbias(F, theta), 0, 1, points=[1e-6, 1 - 1e-6])
    assert theory.mean_unbias_under_uniform(theta) == pytest.approx(by_quadrature, abs=1e-8)
    assert (theory.mean_unbias_under_uniform(0.0), theory.mean_unbias_under_uniform(1.0)) == (1.0, 0.0)


def test_the_mean_under_the_mixture_by_sampling():
    theta, rng = 0.1, np.random.default_rng(0)
    pairs = np.sort(rng.random((N, 2)), axis=1)
    is_false = rng.random(N) < theta
    F = np.where(is_false, pairs[:, 1], pairs[:, 0])
    values = formulas.unbias(F, theta)
    assert values.mean() == pytest.approx(1 - theta, abs=4 * values.std() / np.sqrt(N))
    assert abs(theory.mean_unbias_under_uniform(theta) - (1 - theta)) > 20 * values.std() / np.sqrt(N)


inside = st.floats(0.001, 0.999)


@given(inside, inside, st.floats(1e-4, 0.5))
def test_unbias_falls_in_F_and_in_the_prior_and_is_a_probability(F, p, step):
    here = formulas.unbias(F, p)
    assert 0 <= here <= 1
    assert formulas.unbias(min(F + step, 1.0), p) < here
    assert formulas.unbias(F, min(p + step, 1.0)) < here


def risks_by_definition(scores, positive, row, priors, weight):
    """R(l|i) = P(fn|l)·info − P(tn|l)·λ·info of every unobserved item, straight from the definition."""
    free = np.setdiff1d(np.arange(len(scores)), row)
    found = {}
    for item in free:
        F = np.count_nonzero(scores[free] <= scores[item]) / (len(free) + 1)
        tn, fn = (1 - F) * (1 - priors[item]), F * priors[item]
        p_tn = tn / (tn + fn)
        info = 1 - 1 / (1 + np.exp(-(float(scores[positive]) - float(scores[item]))))
        found[int(item)] = (1 - p_tn) * info - p_tn * weight * info
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_risk_minimising_choice_equals_exhaustive_search(seed):
    """Of the reference, and of compiled code."""
    rng = np.random.default_rng(seed)
    train, scorer = random_interactions(rng, 6, 25, most=0.5), exact_scorer(rng, 6, 25)
    batch = batch_of(train, scorer, rng=rng)
    sampler = bn.BNS(candidates="all", weight=2.0).prepare(train, rng=rng)
    compiled, _ = compiled_choice(sampler.rule(batch), sampler.draws(batch), batch)
    for risks, *chosen in zip(batch_risks(batch), sampler.sample(batch), compiled, strict=True):
        for item in chosen:
            assert risks[int(item)] == pytest.approx(min(risks.values()), abs=1e-12)


@pytest.mark.parametrize(
    "rival", [bn.RNS(), bn.DNS(), bn.Posterior(), bn.BNS(weight=2.0)], ids=lambda one: type(one).__name__
)
def test_no_sampler_has_a_lower_empirical_risk_than_the_one_of_least_conditional_risk(rival):
    rng = np.random.default_rng(3)
    train, scorer = random_interactions(rng, 6, 25, most=0.5), exact_scorer(rng, 6, 25)
    batch = batch_of(train, scorer, rng=rng)
    risks = batch_risks(batch)

    def empirical(sampler):
        chosen = sampler.prepare(train, rng=rng).sample(batch)
        return np.mean([own[int(item)] for own, item in zip(risks, chosen, strict=True)])

    assert empirical(bn.BNS(candidates="all", weight=2.0)) < empirical(rival)


def batch_risks(batch):
    priors = batch.train.popularity / len(batch.train)
    return [
        risks_by_definition(batch.scorer.score_all(np.array([user]))[0], positive, batch.train.row(user), priors, 2.0)
        for user, positive in zip(batch.users, batch.positives, strict=True)
    ]
