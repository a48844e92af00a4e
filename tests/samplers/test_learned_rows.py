"""A learned prior as pools read it: the likeliest items of each user and a base rate."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.samplers.priors import learned
from tests.worlds import interactions

KEPT = 7
WORLD = bn.split(bn.synthetic(90, 60, seed=0), test=0.2, seed=0)


@pytest.fixture(scope="module", params=["ease", "neighbours", "als", "rp3beta", "gfcf"])
def fitted(request):
    # rows and pairs of als and gfcf differ in the last bit, which is a step of an isotonic curve now and then
    curve = "logistic" if request.param in ("als", "gfcf") else "isotonic"
    prior = bn.priors.Learned(item_model=request.param, folds=2, neighbours=8, likeliest=KEPT, curve=curve)
    return prior.fit(WORLD.train)


def test_the_likeliest_items_have_their_probability_and_the_others_their_mean(fitted):
    train, form = WORLD.train, fitted.form()
    items = np.arange(train.n_items)
    for user in range(train.n_users):
        free = np.setdiff1d(items, train.row(user))
        p = fitted.probability(np.array([user]), free[None, :])[0]
        row = slice(form.indptr[user], form.indptr[user + 1])
        best = np.argsort(-p, kind="stable")[:KEPT]  # of equal ones those with the lower number
        lowest = fitted.curve(fitted.model.rows(train, np.array([user]))).astype(np.float32).min()
        best = np.sort(best[p[best] > lowest])
        np.testing.assert_array_equal(form.items[row], free[best])
        np.testing.assert_allclose(form.values[row], p[best], rtol=1e-6)
        assert form.base[user] == pytest.approx(np.delete(p, best).mean(), rel=1e-6)
        assert form.of(np.array([user]), free).sum() == pytest.approx(p.sum(), rel=1e-6)  # false negatives expected


def test_blocks_of_users_change_nothing(fitted, monkeypatch):
    whole = fitted._likeliest_items()
    monkeypatch.setattr(learned, "BLOCK", 4 * WORLD.train.n_items)
    for one, other in zip(whole, fitted._likeliest_items(), strict=True):
        np.testing.assert_allclose(one, other, rtol=0 if fitted.model.rows_are_pairs else 1e-5)


def test_it_is_computed_when_a_pool_first_asks_and_never_again(fitted):
    fresh = bn.priors.Learned(folds=2, likeliest=3).fit(WORLD.train)
    assert fresh._form is None
    sampler = bn.BNS(candidates=20, shared=True, weighting="posterior", cdf="pool", prior=fresh)
    ready = sampler.prepare(WORLD.train, rng=np.random.default_rng(0))
    assert ready.parts().prior.form() is fresh.form()


def test_a_user_with_every_item_has_no_row():
    train = interactions([[0, 1, 2], [0, 1], [0, 2], [1, 2]], 3)
    form = bn.priors.Learned(folds=2, item_model="ease").fit(train).form()
    assert form.indptr[1] == 0
    assert form.base[0] == 0.0


def test_likeliest_is_at_least_1():
    with pytest.raises(InputError, match="likeliest must be a whole number of at least 1, got 0"):
        bn.priors.Learned(likeliest=0)
