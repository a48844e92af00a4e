"""ALS against exact least squares in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.linear.als import als
from tests.worlds import interactions

PENALTY, ALPHA, DIM = 2.0, 8.0, 6
WORLD = bn.synthetic(80, 60, seed=0)


def dense(train: bn.Interactions) -> np.ndarray:
    found = np.zeros((train.n_users, train.n_items))
    found[train.users, train.indices] = 1.0
    return found


def exact(observed: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """The rows that minimise the weighted squares, the other side fixed."""
    weights = np.where(observed > 0, ALPHA, 1.0)
    grams = np.einsum("ri,ik,il->rkl", weights, fixed, fixed) + PENALTY * np.eye(DIM)
    return np.linalg.solve(grams, ((weights * observed) @ fixed)[:, :, None])[:, :, 0]


def objective(observed: np.ndarray, users: np.ndarray, items: np.ndarray) -> float:
    errors = np.where(observed > 0, ALPHA, 1.0) * (observed - users @ items.T) ** 2
    return float(errors.sum() + PENALTY * ((users**2).sum() + (items**2).sum()))


def solved(train: bn.Interactions, *, seed: int = 1, iterations: int = 60):
    return als(train, dim=DIM, regularization=PENALTY, alpha=ALPHA, iterations=iterations, seed=seed)


def test_it_ends_where_exact_least_squares_would_move_nothing():
    found, observed = solved(WORLD, iterations=300), dense(WORLD)
    users, items = found.user_vectors.astype(np.float64), found.item_vectors.astype(np.float64)
    np.testing.assert_allclose(users, exact(observed, items), atol=2e-3)
    np.testing.assert_allclose(items, exact(observed.T, users), atol=2e-3)


def test_fifteen_iterations_come_as_low_as_exact_alternations():
    rng, observed = np.random.default_rng(0), dense(WORLD)
    users, items = (rng.normal(0, 0.01, (n, DIM)) for n in observed.shape)
    for _ in range(15):
        users = exact(observed, items)
        items = exact(observed.T, users)
    found = solved(WORLD, iterations=15)
    wanted = objective(observed, users, items)
    assert objective(observed, found.user_vectors, found.item_vectors) == pytest.approx(wanted, rel=0.01)


def test_the_seed_decides():
    one, same, other = (solved(WORLD, seed=seed, iterations=2).user_vectors for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 0


def test_those_without_interactions_have_zeros():
    found = solved(interactions([[0, 1], [], [1, 2]], 5))
    assert not found.user_vectors[1].any()
    assert not found.item_vectors[3:].any()
    assert np.isfinite(found.user_vectors).all()
