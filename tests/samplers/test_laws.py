"""Each sampler draws by its stated law: frequencies against probabilities, chi-square, fixed seeds."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

import bayesneg as bn
from bayesneg.kernels.numba.choices import srns as compiled_srns
from bayesneg.kernels.reference import formulas
from bayesneg.kernels.reference.choices.aobpr import FACTOR_TRIES
from bayesneg.kernels.reference.choices.srns import fresh_for_memory, refresh_memory
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.seeding import stream
from worlds import batch_of, compiled_choice, fixed_scorer, interactions

N_DRAWS = 40_000
# user 0 chose items 1 and 4; the others give the items different popularities, and item 7 has none
TRAIN = interactions([[1, 4], [0, 1, 2], [0, 2, 3], [0, 5], [0, 6], [0, 2, 5]], 8)
FREE = [0, 2, 3, 5, 6, 7]
SCORES = np.zeros((6, 8))
SCORES[0] = [0.3, 2.0, -0.5, 1.2, 1.5, 0.9, -1.0, 0.1]


def assert_follows(picked: np.ndarray, law: dict[int, float]) -> None:
    """``law`` maps every possible item to its probability; nothing else may occur."""
    assert sum(law.values()) == pytest.approx(1.0)
    possible = [item for item, probability in law.items() if probability > 0]
    assert set(picked.tolist()) <= set(possible)
    observed = np.array([(picked == item).sum() for item in possible])
    assert stats.chisquare(observed, len(picked) * np.array([law[item] for item in possible])).pvalue > 1e-3


def draw(sampler, *, train=TRAIN, scorer=None, size=N_DRAWS) -> np.ndarray:
    """What the compiled kernel picks for one pair of user 0, over and over."""
    scorer = fixed_scorer(SCORES) if scorer is None else scorer
    ready = sampler.prepare(train, rng=stream(0, "memory"))
    rng = stream(0, "draws")
    batch = batch_of(train, scorer, rng, size=size, user=0)
    return compiled_choice(ready.rule(batch), ready.draws(batch), batch)[0]


def test_rns_is_uniform_over_the_unobserved_items():
    assert_follows(draw(bn.RNS()), dict.fromkeys(FREE, 1 / 6))


@pytest.mark.parametrize("power", [0.75, 1.0, 0.0])
def test_pns_follows_training_popularity(power):
    weights = {item: TRAIN.popularity[item] ** power for item in FREE if TRAIN.popularity[item] > 0}
    total = sum(weights.values())
    assert 7 not in weights
    assert_follows(draw(bn.PNS(power=power)), {item: weight / total for item, weight in weights.items()})


@pytest.mark.parametrize("m", [1, 2, 5])
def test_candidates_are_a_uniform_ordered_sample_without_replacement(m):
    users = np.zeros(N_DRAWS, dtype=np.int32)
    candidates, sizes = bn.samplers.UniformDraw().draw(users, m, train=TRAIN, rng=stream(0, "draws"))
    assert (sizes == m).all()
    assert all(len(set(row)) == m for row in candidates[:1000].tolist())
    for position in range(m):
        assert_follows(candidates[:, position], dict.fromkeys(FREE, 1 / 6))
    if m == 2:
        pairs = candidates[:, 0] * 10 + candidates[:, 1]
        assert_follows(pairs, {a * 10 + b: 1 / 30 for a in FREE for b in FREE if a != b})


def test_dns_of_two_is_linear_in_relative_rank():
    by_score = sorted(FREE, key=lambda item: -SCORES[0, item])
    law = {item: 2 * (6 - 1 - rank) / (6 * 5) for rank, item in enumerate(by_score)}
    assert law[by_score[-1]] == 0
    assert_follows(draw(bn.DNS(candidates=2)), law)


def test_dns_m_n_draws_uniformly_from_the_top_m():
    law = dict.fromkeys(FREE, 0.0)
    for subset in combinations(FREE, 4):
        for item in sorted(subset, key=lambda item: -SCORES[0, item])[:2]:
            law[item] += 1 / 15 / 2
    assert_follows(draw(bn.DNS(candidates=4, top=2)), law)


@pytest.mark.parametrize("scale", [0.7, 2.0, 50.0])
def test_aobpr_by_score_is_exponential_in_the_true_rank(scale):
    by_score = sorted(FREE, key=lambda item: -SCORES[0, item])
    weights = np.exp(-np.arange(6) / scale)
    assert_follows(draw(bn.AOBPR(scale=scale)), dict(zip(by_score, weights / weights.sum(), strict=True)))


def test_aobpr_takes_its_scale_as_a_fraction_of_the_item_count():
    np.testing.assert_array_equal(draw(bn.AOBPR(fraction=0.25)), draw(bn.AOBPR(scale=2.0)))


def test_aobpr_by_factor_draws_factor_and_rank_and_rejects_positives():
    rng = np.random.default_rng(5)
    scorer = EmbeddingScorer(np.zeros((6, 3), np.float32), rng.normal(size=(8, 3)).astype(np.float32))
    scorer.users[0] = [1.5, -0.7, 0.2]
    ranks = np.exp(-np.arange(8) / 1.5)
    ranks /= ranks.sum()
    factors = np.abs(scorer.users[0]) * scorer.items.std(axis=0)
    factors /= factors.sum()
    law = np.zeros(8)
    for f in range(3):
        order = np.argsort(-scorer.items[:, f] * np.sign(scorer.users[0, f]))
        law[order] += factors[f] * ranks
    rejected = law[[1, 4]].sum()
    assert rejected**FACTOR_TRIES < 1e-4  # so that what happens after the last try cannot be seen here
    law[[1, 4]] = 0
    law /= law.sum()
    assert_follows(draw(bn.AOBPR(scale=1.5, rank="factor"), scorer=scorer), dict(enumerate(law)))


def risks(candidates: tuple[int, ...], weight: float, prior: np.ndarray) -> dict[int, float]:
    population = SCORES[0, FREE]
    values = {}
    for item in candidates:
        F = (population <= SCORES[0, item]).sum() / 7
        values[item] = formulas.risk(
            formulas.info(SCORES[0, 1], SCORES[0, item]), formulas.unbias(F, prior[item]), weight
        )
    return values


@pytest.mark.parametrize("weight", [0.1, 5.0])
def test_bns_picks_the_lowest_risk_of_a_uniform_candidate_set(weight):
    train = interactions([[1], [0, 1, 2], [0, 2, 3], [0, 5], [0, 6], [0, 2, 4, 5]], 8)  # one positive: one known risk
    free = [0, 2, 3, 4, 5, 6, 7]
    prior = train.popularity / len(train)
    population = SCORES[0, free]
    law = dict.fromkeys(free, 0.0)
    for subset in combinations(free, 3):
        F = [(population <= SCORES[0, item]).sum() / 8 for item in subset]
        info = [formulas.info(SCORES[0, 1], SCORES[0, item]) for item in subset]
        risk = [
            i * (1 - (1 + weight) * formulas.unbias(f, prior[item])) for i, f, item in zip(info, F, subset, strict=True)
        ]
        law[subset[int(np.argmin(risk))]] += 1 / 35
    assert_follows(draw(bn.BNS(candidates=3, weight=weight), train=train), law)


def test_posterior_picks_the_most_probable_true_negative_of_a_uniform_candidate_set():
    prior = TRAIN.popularity / len(TRAIN)
    population = SCORES[0, FREE]
    law = dict.fromkeys(FREE, 0.0)
    for subset in combinations(FREE, 3):
        sure = [formulas.unbias((population <= SCORES[0, item]).sum() / 7, prior[item]) for item in subset]
        law[subset[int(np.argmax(sure))]] += 1 / 20
    assert_follows(draw(bn.Posterior(candidates=3)), law)


def test_srns_keeps_memory_by_softmax_without_replacement():
    x = np.array([0.0, 1.0, -1.0, 0.5])  # two in memory, two fresh
    tau = 0.8
    weight = np.exp(x / tau)
    law = {}
    for pair in combinations(range(4), 2):
        a, b = (weight[k] / weight.sum() for k in pair)
        law[10 * pair[0] + pair[1]] = a * b / (1 - a) + a * b / (1 - b)
    rng = np.random.default_rng(0)
    kept = np.empty(N_DRAWS, dtype=int)
    for draw_number in range(N_DRAWS):
        memory = np.array([0, 1], np.int32)
        compiled_srns.refresh_memory(memory, np.array([2, 3], np.int32), x, tau, rng.random(4))
        low, high = sorted(memory.tolist())
        kept[draw_number] = 10 * low + high
    assert_follows(kept, law)


def test_srns_keeps_the_slot_of_an_item_that_stays():
    after = refresh_memory(np.array([3, 5]), np.array([7]), np.array([-50.0, 1.0, 0.0]), 0.1, np.full(3, 0.5))
    assert after.tolist() == [7, 5]


def test_srns_fresh_items_are_uniform_over_what_is_not_in_memory():
    ready = bn.SRNS(memory=2, fresh=1).prepare(TRAIN, rng=stream(0, "memory"))
    batch = batch_of(TRAIN, fixed_scorer(SCORES), stream(0, "draws"), size=N_DRAWS, user=0)
    drawn = ready.draws(batch)
    memory = np.array([0, 5])
    fresh = np.array([fresh_for_memory(row, memory, 1)[0] for row in drawn.candidates])
    assert_follows(fresh, dict.fromkeys([2, 3, 6, 7], 1 / 4))


# ---- AHNS and SIR


def test_ahns_picks_the_nearest_to_the_target_of_a_uniform_candidate_set():
    train = interactions([[1], [0, 1, 2], [0, 2, 3], [0, 5], [0, 6], [0, 2, 4, 5]], 8)  # one positive, scored 2
    free = [0, 2, 3, 4, 5, 6, 7]
    law = dict.fromkeys(free, 0.0)
    for subset in combinations(free, 3):
        law[min(subset, key=lambda item: abs(SCORES[0, item] - 0.85))] += 1 / 35
    assert_follows(draw(bn.samplers.AHNS(candidates=3, shift=2.0, level=3.4), train=train), law)


def softmax_of(items, temperature=1.0):
    weights = np.exp(SCORES[0, list(items)] / temperature)
    return dict(zip(items, weights / weights.sum(), strict=True))


def test_sir_of_all_candidates_draws_from_the_softmax_of_the_scores():
    assert_follows(draw(bn.samplers.SIR(candidates="all", temperature=0.6)), softmax_of(FREE, 0.6))


def test_sir_resamples_a_uniform_candidate_set():
    law = dict.fromkeys(FREE, 0.0)
    for pair in combinations(FREE, 2):
        for item, chance in softmax_of(pair).items():
            law[item] += chance / 15
    assert_follows(draw(bn.samplers.SIR(candidates=2)), law)


def test_sir_divides_by_the_proposal():
    popular = {item: TRAIN.popularity[item] ** 0.5 for item in FREE if TRAIN.popularity[item] > 0}
    total = sum(popular.values())
    law = dict.fromkeys(FREE, 0.0)
    for a, b in product(popular, popular):  # with replacement
        weights = np.exp(SCORES[0, [a, b]]) / [popular[a], popular[b]]
        for item, weight in zip((a, b), weights / weights.sum(), strict=True):
            law[item] += weight * popular[a] * popular[b] / total**2
    assert_follows(draw(bn.samplers.SIR(candidates=2, proposal="popularity", power=0.5)), law)


def test_sir_draws_several_with_replacement_from_one_candidate_set():
    ready = bn.samplers.SIR(candidates="all", temperature=0.6, negatives=2).prepare(TRAIN, rng=stream(0, "memory"))
    found = ready.sample(batch_of(TRAIN, fixed_scorer(SCORES), stream(0, "draws"), size=8000, user=0))
    one = softmax_of(FREE, 0.6)
    pairs = {10 * a + b: one[a] * one[b] for a, b in product(FREE, FREE)}
    assert_follows(found.items[:, 0] * 10 + found.items[:, 1], pairs)
