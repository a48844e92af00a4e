"""Every equation of the paper, worked out by hand.

One user, six unobserved items with scores 1, 2, 3, 4, 5, 6 and a positive with score 4; the candidates are the
items with scores 6 and 3.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayesneg.kernels.reference import formulas
from bayesneg.kernels.reference.choices import ahns, aobpr, posterior, resampled, srns, take


def as_published(counts, p):
    """Unbias of candidates with these counts among the six."""
    return formulas.counted_unbias(formulas.AsCounted(), np.array(counts), 6, np.array(p))


def test_info_is_one_minus_sigmoid_of_the_gap():
    assert formulas.info(4.0, 4.0) == 0.5
    assert formulas.info(4.0, 3.0) == pytest.approx(1 - 1 / (1 + math.exp(-1.0)))  # 0.268941…
    assert formulas.info(4.0, 6.0) == pytest.approx(0.880797, abs=1e-6)


def test_counted_cdf_divides_by_one_more_than_the_population():
    assert formulas.counted_cdf(6, 6) == pytest.approx(6 / 7)  # the highest of six
    assert formulas.counted_cdf(3, 6) == pytest.approx(3 / 7)


def test_the_list_that_f_counts_and_the_list_it_is_a_share_of():
    # a user with 3 of 10 items: 7 are unobserved
    sizes = [formulas.list_sizes(over, 10, 3) for over in (formulas.UNOBSERVED, formulas.CATALOGUE, formulas.ALL)]
    assert sizes == [(7, 7), (7, 10), (10, 10)]


def test_unbias_is_the_normalised_posterior():
    # F = 6/7, p = 1/10: (1/7 · 9/10) / (1/7 · 9/10 + 6/7 · 1/10) = 9 / (9 + 6) = 3/5
    assert formulas.unbias(6 / 7, 0.1) == pytest.approx(0.6)
    # F = 3/7, p = 1/10: (4 · 9) / (4 · 9 + 3 · 1) = 36/39
    assert formulas.unbias(3 / 7, 0.1) == pytest.approx(36 / 39)


def test_unbias_is_the_paper_s_fraction():
    F, p = np.meshgrid(np.linspace(0.01, 0.99, 50), np.linspace(0.01, 0.99, 50))
    np.testing.assert_allclose(formulas.unbias(F, p), (1 - F) * (1 - p) / (1 - F - p + 2 * F * p), rtol=1e-12)


@pytest.mark.parametrize("share", [0.0, 1e-9, 0.01, 0.4999999999, 0.5, 0.5000000001, 0.9, 1.0])
def test_the_mixture_is_undone_to_the_last_digits(share):
    F = np.concatenate((np.linspace(0.001, 0.999, 500), 1.0 - np.geomspace(1e-6, 1e-3, 50)))
    counted = (1 - share) * (2 * F - F * F) + share * F * F
    np.testing.assert_allclose(formulas.base_cdf(formulas.OfMixture(share), counted), F, rtol=1e-9)


def test_the_mixture_of_halves_is_the_paper_s_own_and_a_small_share_makes_the_top_less_suspect():
    M = np.arange(1, 1000) / 1000
    np.testing.assert_array_equal(formulas.base_cdf(formulas.OfMixture(0.5), M), M)  # to the bit
    assert formulas.base_cdf(formulas.OfMixture(0.0), 0.999) == pytest.approx(1 - math.sqrt(0.001))  # .968, not .999


def test_under_the_mixture_the_mean_of_unbias_is_the_share_of_true_negatives():
    """The paper's lemma, which the counted share breaks: with F evenly spread the mean is .963, not .99."""
    M = (np.arange(10**6) + 0.5) / 10**6
    assert formulas.unbias(formulas.base_cdf(formulas.OfMixture(0.01), M), 0.01).mean() == pytest.approx(0.99, abs=1e-6)
    assert formulas.unbias(M, 0.01).mean() == pytest.approx(0.963, abs=1e-3)


def test_a_table_is_read_along_straight_lines():
    # points (0, .2), (.5, .2), (.8, .5); the last holds on
    table = formulas.Tabled(
        np.array([0.0, 0.5, 0.8, 2.0]), np.array([0.2, 0.2, 0.5, 0.5]), np.array([0.0, 1.0, 0.0, 0.0])
    )
    found = formulas.base_cdf(table, np.array([0.0, 0.3, 0.5, 0.6, 0.8, 0.99]))
    np.testing.assert_allclose(found, [0.2, 0.2, 0.2, 0.3, 0.5, 0.5])


def test_unbias_is_a_probability_that_falls_in_F_and_in_the_prior():
    F, p = np.meshgrid(np.linspace(0.01, 0.99, 50), np.linspace(0.01, 0.99, 50))
    values = formulas.unbias(F, p)
    assert ((values >= 0) & (values <= 1)).all()
    assert (np.diff(values, axis=0) < 0).all()
    assert (np.diff(values, axis=1) < 0).all()


def test_unbias_at_the_ends_of_the_prior():
    assert formulas.unbias(0.5, 0.0) == 1.0
    assert formulas.unbias(0.5, 1.0) == 0.0


def test_risk_weighs_gain_against_loss():
    # R = P(fn)·info − λ·P(tn)·info = 0.4·0.88 − 5·0.6·0.88
    assert formulas.risk(0.88, 0.6, 5.0) == pytest.approx(0.4 * 0.88 - 5 * 0.6 * 0.88)


def test_least_risk_prefers_the_safe_item_where_the_prior_warns_and_the_hard_one_where_it_does_not():
    x = np.array([6.0, 3.0])
    # p = 1/10: risks 0.880797·(1 − 6·0.6) = −2.2901 and 0.268941·(1 − 6·36/39) = −1.2206
    assert posterior.choose_least_risk(x, 4.0, as_published([6, 3], [0.1, 0.1]), 5.0) == 0
    # p = 1/2 on the first: unbias 1/7, risk 0.880797·(1 − 6/7) = +0.1258
    assert posterior.choose_least_risk(x, 4.0, as_published([6, 3], [0.5, 0.1]), 5.0) == 1


def test_a_small_weight_flees_false_negatives_and_a_large_one_seeks_hard_items():
    x, true_negative = np.array([6.0, 3.0]), as_published([6, 3], [0.25, 0.25])
    # unbias 1/3 and 4/5 by hand: (1·3)/(1·3 + 6·1) and (4·3)/(4·3 + 3·1)
    # λ = 0.1: 0.8808·(1 − 1.1/3) = 0.5578 against 0.2689·(1 − 0.88) = 0.0323
    assert posterior.choose_least_risk(x, 4.0, true_negative, 0.1) == 1
    # λ = 15: 0.8808·(1 − 16/3) = −3.817 against 0.2689·(1 − 12.8) = −3.174
    assert posterior.choose_least_risk(x, 4.0, true_negative, 15.0) == 0


def test_posterior_criterion_takes_the_surest_true_negative():
    assert posterior.choose_most_unbiased(as_published([6, 3], [0.1, 0.1])) == 1
    assert posterior.choose_most_unbiased(as_published([6, 3], [0.01, 0.9])) == 0


def test_lowest_position_wins_a_tie():
    tied, true_negative = np.array([2.0, 2.0, 2.0]), as_published([4, 4, 4], [0.1, 0.1, 0.1])
    assert posterior.choose_least_risk(tied, 1.0, true_negative, 5.0) == 0
    assert posterior.choose_most_unbiased(true_negative) == 0
    assert take.choose_highest(tied, 1, 0.9) == 0


def test_highest_takes_the_top_and_dns_m_n_one_of_the_top():
    x = np.array([0.1, 0.9, 0.5, 0.7])
    assert take.choose_highest(x, 1, 0.99) == 1
    assert [take.choose_highest(x, 2, uniform) for uniform in (0.0, 0.49, 0.5, 0.99)] == [1, 1, 3, 3]


def test_truncated_rank_inverts_the_exponential():
    # n = 2, λ = 1: P(0) = 1/(1 + e⁻¹) = 0.731059
    assert formulas.truncated_rank(0.731058, 1.0, 2) == 0
    assert formulas.truncated_rank(0.731060, 1.0, 2) == 1


def test_rank_counts_unobserved_items_only_and_breaks_ties_by_item_number():
    x = np.array([5.0, 9.0, 7.0, 7.0, 1.0])
    assert [aobpr.choose_at_rank(x, np.array([1]), rank) for rank in range(4)] == [2, 3, 0, 4]


def test_srns_takes_score_plus_weighted_spread_over_time():
    # one factor, user vector 1, positive (item 0) at 0; over two epoch ends item 1 stays at 0 and item 2 goes −2 → 2
    users = np.ones((5, 1, 1), np.float32)
    items = np.zeros((5, 3, 1), np.float32)
    items[0, 2], items[1, 2] = -2.0, 2.0
    x = np.array([0.5, 0.0])  # now: σ(0.5) = 0.6225 against σ(0) = 0.5
    memory = np.array([1, 2])

    def slot(alpha, n_past=2):
        return srns.choose_from_memory(
            srns.FromMemory(memory[None], users, items, n_past, alpha, 1.0), 0, 0, memory, x, 0.0
        )

    # spreads 0 and (σ(2) − σ(−2))/2 = 0.380797
    assert slot(0.3) == 0  # 0.6225 > 0.5 + 0.3·0.3808 = 0.6142
    assert slot(0.4) == 1  # 0.6225 < 0.5 + 0.4·0.3808 = 0.6523
    assert slot(9.9, n_past=1) == 0  # one epoch end has no spread
    assert slot(9.9, n_past=0) == 0


def test_ahns_takes_the_score_nearest_to_a_target_that_falls_with_the_positive_s_score():
    rule, x = ahns.NearestToTarget(shift=1.0, level=6.0, exponent=-2.0), np.array([6.0, 3.0, 1.0])
    assert [ahns.target_score(rule, positive) for positive in (0.0, 1.0, 5.0)] == [6.0, 3.0, 1.0]  # 6 / (x_i + 1)
    assert [ahns.choose_nearest(x, ahns.target_score(rule, positive)) for positive in (0.0, 1.0, 5.0)] == [0, 1, 2]
    assert ahns.choose_nearest(x, 2.0) == 1  # 3 and 1 are as near: the earlier


@pytest.mark.parametrize(("power", "target"), [(-2.0, math.inf), (-1.0, 6.0), (-0.5, 0.0)])
def test_ahns_has_the_target_at_the_limit_for_a_positive_below_the_shift(power, target):
    rule = ahns.NearestToTarget(shift=1.0, level=6.0, exponent=power)
    assert ahns.target_score(rule, -1.0) == ahns.target_score(rule, -7.5) == target
    assert ahns.choose_nearest(np.array([1.0, 3.0, 2.0]), math.inf) == 1  # the highest


def test_resampling_weighs_by_the_softmax_over_the_proposal():
    # x/τ = 0, ln 4; q = 1/4, 1/2: weights 1 · 4 and 4 · 2, so that a third goes to the first
    x, log_q = np.array([0.0, math.log(2.0)]), np.log([0.25, 0.125, 0.5])
    mass = resampled.resampling_mass(x, np.array([0, 2]), 0.5, log_q)
    np.testing.assert_allclose(mass / mass[-1], [1 / 3, 1.0])
    assert [resampled.resample(mass, uniform) for uniform in (0.0, 0.33, 0.34, 0.999)] == [0, 0, 1, 1]
